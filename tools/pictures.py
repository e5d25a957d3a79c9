"""Draws the pictures of the documents: `make gen` writes them below docs/pictures.

The rooms come from .importlinter, and the states of a machine from the engine's table; the other two are drawn from the lists here.
"""

import configparser
from collections.abc import Mapping
from pathlib import Path
from textwrap import wrap

from paddock.engine.machine.requests import STATES
from tools import diagrams
from tools.drawing import ACTS, BASE, LINE, PALE, PLAIN, PURE, SMALL, TITLE, WIDE, Box, arrow, caption, picture

ROOT = Path(__file__).resolve().parent.parent
# What each room holds, in a few words that fit below its name.
ROLES: Mapping[str, str] = {
    "app": "composition root: settings, wiring, programs",
    "web": "the console's server",
    "cli": "commands and printers",
    "fleet": "machines of every dialect: find, create, change, explain, move",
    "dialects": "Stakater, VirtRigaud, Vitistack, Kubermatic: kinds, translation, decisions, controllers",
    "kubevirt": "the hub: kinds, rules, decisions, controllers",
    "server": "the Kubernetes API: HTTP, store, security, admission",
    "contract": "what a driver promises",
    "engine": "QEMU, disks, networks",
    "kubernetes": "kinds and schemas, client, machinery of controllers",
    "base": "quantities, clock, errors; images of disks and seeds of guests",
}


# The package beside the rooms.
WING = ("paddock_drivers", "other hypervisors; on contract, kubernetes, kinds of kubevirt, base; app serves them")


def contracts(root: Path = ROOT) -> configparser.ConfigParser:
    """Return the import contracts."""
    parser = configparser.ConfigParser(inline_comment_prefixes=None)
    parser.read(root / ".importlinter", encoding="utf-8")
    return parser


def rows(parser: configparser.ConfigParser) -> list[list[str]]:
    """Return the rooms from top to bottom."""
    lines = parser["importlinter:contract:rooms"]["layers"].split("\n")
    return [[each.strip() for each in line.split("|")] for line in lines if line.strip()]


def layers() -> str:
    """Draw the rooms, with those of machines in a colour of their own."""
    parser = contracts()
    floored = {
        name.strip().removeprefix("paddock.").split(".")[0] for name in parser["importlinter:contract:floors"]["containers"].split("\n")
    }
    width, high, gap, margin, aside = 980, 60, 12, 20, 180
    parts: list[str] = []
    y = 56.0
    found = rows(parser)
    tall = (len(found) - 2) * (high + gap) - gap
    parts += Box(width - margin - aside, y + high + gap, aside, tall, WING[0], tuple(wrap(WING[1], int(aside / WIDE))), ACTS).svg()
    for number, row in enumerate(found):
        # The composition root stands above the drivers, and the base below them.
        across = width - 2 * margin - (aside + gap if 0 < number < len(found) - 1 else 0)
        wide = (across - gap * (len(row) - 1)) / len(row)
        for column, name in enumerate(row):
            fill = PURE if name in floored else BASE if name == "base" else ACTS
            parts += Box(margin + column * (wide + gap), y, wide, high, name, tuple(wrap(ROLES[name], int(wide / WIDE))), fill).svg()
        y += high + gap
    legend = ((PURE, "has floors: kinds, rules, translate, plan (pure), controllers"),)
    for number, (fill, text) in enumerate(legend):
        parts.append(f'<rect x="{margin + number * 240}" y="20" width="18" height="18" rx="4" fill="{fill}" stroke="{LINE}"/>')
        parts.append(caption(margin + 26 + number * 240, 34, text, PLAIN, anchor="start"))
    parts.append(caption(width - margin, 34, "A room imports the rooms below it, never one beside or above.", PLAIN, anchor="end"))
    return picture(width, int(y) + 8, "Rooms of Paddock", parts)


def overview() -> str:
    """Draw what Paddock is: tools on the left, the process in the middle, guests on the right."""
    tools = Box(
        20,
        60,
        180,
        210,
        "your tools",
        ("kubectl, virtctl, helm", "client libraries", "paddock console, why", "", "manifests of", "five dialects"),
        BASE,
    )
    server = Box(300, 60, 170, 90, "API server", ("Kubernetes API", "RBAC, watch, webhooks"), ACTS)
    store = Box(300, 180, 170, 90, "store", ("one SQLite file", ""), ACTS)
    control = Box(520, 60, 170, 90, "controllers", ("other dialects become", "KubeVirt objects"), ACTS)
    engine = Box(520, 180, 170, 90, "engine", ("images, disks,", "networks, QMP"), ACTS)
    guests = Box(790, 60, 170, 210, "QEMU guests", ("one process each", "they outlive", "Paddock"), PURE)
    frame = [
        f'<rect x="280" y="20" width="430" height="270" rx="10" fill="none" stroke="{LINE}" stroke-dasharray="5 4"/>',
        caption(495, 44, "paddock up: one process on one Linux host", TITLE),
    ]
    parts = [part for box in (tools, server, store, control, engine, guests) for part in box.svg()]
    arrows = [
        arrow((200, 105), (298, 105)),
        arrow((470, 105), (518, 105), both=True),
        arrow((385, 150), (385, 178), both=True),
        arrow((605, 150), (605, 178), both=True),
        arrow((690, 225), (788, 225), both=True),
    ]
    return picture(980, 310, "What Paddock is", [*frame, *parts, *arrows])


# title, what happens, where
_STEPS = (
    ("kubectl apply", "a Stakater VirtualMachine arrives over HTTPS", "server/edge"),
    ("authenticate, authorize, queue", "certificate or token, RBAC, priority level", "server/security"),
    ("default and validate", "declared fields, rules, webhooks, policies", "dialects/stakater, server/admission, kubevirt/admission"),
    ("store", "one transaction, one revision; watchers see it", "server/store"),
    ("translate", "to KubeVirt's VirtualMachine, DataVolumes and Secrets", "dialects/stakater"),
    ("keep the run strategy", "VirtualMachine to VirtualMachineInstance", "kubevirt/controllers/virtualmachine"),
    ("fill the disks", "download, verify, convert, clone", "kubevirt/controllers/storage, base/images"),
    ("configure the machine", "VirtualMachineInstance to MachineConfig", "kubevirt/translate"),
    ("start QEMU", "MachineConfig to arguments; one owner per process", "engine/machine"),
    ("report", "status, conditions and events, back up to the Stakater object", "kubevirt, dialects/stakater"),
)


def manifest() -> str:
    """Draw the way of one manifest from `kubectl apply` to a running guest."""
    parts: list[str] = []
    high, gap, y = 46, 16, 20.0
    for number, (title, text, place) in enumerate(_STEPS, 1):
        fill = PURE if title in ("translate", "configure the machine") else ACTS
        parts += Box(60, y, 330, high, title, (), fill).svg()
        parts.append(caption(36, y + high / 2 + 5, str(number), TITLE))
        parts.append(caption(410, y + 20, text, PLAIN, anchor="start"))
        parts.append(caption(410, y + 37, place, SMALL, anchor="start"))
        if number < len(_STEPS):
            parts.append(arrow((225, y + high), (225, y + high + gap - 1)))
        y += high + gap
    return picture(930, int(y) + 4, "The way of one manifest", parts)


# state -> its column, its row, and what is true in it
_PLACES: Mapping[str, tuple[int, int, str]] = {
    "defined": (0, 0, "it has a directory"),
    "queued": (1, 0, "it waits for its turn"),
    "starting": (2, 0, "QEMU sets up devices"),
    "running": (3, 0, "the guest runs"),
    "paused": (3, 1, "the CPUs stand still"),
    "stopping": (4, 0, "ACPI, then SIGKILL"),
    "suspended": (2, 1, "memory is on disk"),
    "ended": (4, 1, "the reason is on disk"),
    "offered": (3, 2, "given to another host"),
    "moved": (4, 2, "the guest runs there"),
}


def states() -> str:
    """Draw the states of a machine in the engine, as `engine/machine/requests.py` names them."""
    wide, high, across, down = 150, 64, 194, 150
    boxes: dict[str, Box] = {
        name: Box(20 + column * across, 40 + row * down, wide, high, name, (text,), ACTS)
        for name, (column, row, text) in ((each, _PLACES[each]) for each in STATES)
    }
    parts = [part for box in boxes.values() for part in box.svg()]
    for before, after, label in (
        ("defined", "queued", "start"),
        ("queued", "starting", "turn"),
        ("starting", "running", "cont"),
        ("running", "stopping", "stop"),
    ):
        start, end = boxes[before].right, boxes[after].left
        parts += [arrow(start, end), caption((start[0] + end[0]) / 2, start[1] - 8, label, SMALL)]
    running, paused, suspended, ended = boxes["running"], boxes["paused"], boxes["suspended"], boxes["ended"]
    parts += [
        arrow((running.bottom[0] - 30, running.bottom[1]), (paused.top[0] - 30, paused.top[1])),
        caption(running.bottom[0] - 38, running.bottom[1] + 46, "pause", SMALL, anchor="end"),
        arrow((paused.top[0] + 30, paused.top[1]), (running.bottom[0] + 30, running.bottom[1])),
        caption(running.bottom[0] + 38, running.bottom[1] + 46, "resume", SMALL, anchor="start"),
        arrow((running.bottom[0] - 60, running.bottom[1]), (suspended.right[0], suspended.top[1] + 16)),
        caption(suspended.right[0] - 8, suspended.top[1] - 8, "suspend", SMALL, anchor="end"),
        arrow(suspended.left, (boxes["queued"].bottom[0] + 30, boxes["queued"].bottom[1])),
        caption(suspended.left[0] - 12, suspended.left[1] + 16, "start", SMALL, anchor="end"),
        arrow(boxes["stopping"].bottom, ended.top),
        caption(ended.top[0] + 10, ended.top[1] - 38, "the process ends", SMALL, anchor="start"),
        arrow(boxes["offered"].right, boxes["moved"].left),
        caption((boxes["offered"].right[0] + boxes["moved"].left[0]) / 2, boxes["moved"].left[1] - 8, "taken", SMALL),
        caption(boxes["offered"].left[0] - 12, boxes["offered"].left[1] + 4, "running, and sent to another host", SMALL, anchor="end"),
        arrow(paused.right, (boxes["stopping"].left[0], boxes["stopping"].bottom[1] - 8)),
        caption(paused.right[0] + 4, paused.right[1] - 76, "stop", SMALL, anchor="start"),
    ]
    first = boxes["defined"]
    low = ended.bottom[1] + 36
    again = f"M{ended.bottom[0]:g} {ended.bottom[1]:g} V{low:g} H{boxes['queued'].bottom[0]:g} V{first.bottom[1]:g}"
    parts += [
        f'<path d="{again}" stroke="{PALE}" stroke-width="1.5" fill="none" marker-end="url(#tip)"/>',
        caption(boxes["starting"].bottom[0], low - 8, "start again: a new run", SMALL),
        caption(
            20,
            low + 30,
            "From every state, the end of the process leads to ended, and the record says why it ended.",
            PLAIN,
            anchor="start",
        ),
    ]
    return picture(1010, int(boxes["moved"].bottom[1]) + 24, "The states of a machine", parts)


def pictures() -> Mapping[str, str]:
    """Return every picture by its file name."""
    own = {"layers.svg": layers(), "overview.svg": overview(), "manifest.svg": manifest(), "states.svg": states()}
    return {**own, **diagrams.pictures()}
