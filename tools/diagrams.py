"""The diagrams of the pages for users: networks, layers of a disk, a move, the operator, and who is trusted with what."""

import itertools
from collections.abc import Mapping

from tools.drawing import ACTS, BASE, LINE, PLAIN, PURE, SMALL, TITLE, Box, arrow, caption, picture


def _frame(x: float, y: float, width: float, height: float, title: str) -> list[str]:
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    box = f'<rect {place} rx="10" fill="none" stroke="{LINE}" stroke-dasharray="5 4"/>'
    return [box, caption(x + 14, y + 24, title, TITLE, anchor="start")]


def _all(*boxes: Box) -> list[str]:
    return [part for box in boxes for part in box.svg()]


def networks() -> str:
    """Draw the network of machines as root, and that of a user."""
    clients = Box(20, 90, 130, 70, "clients", ("of other hosts",), BASE)
    services = Box(200, 90, 130, 70, "Services", ("node ports,", "load balancers"), ACTS)
    bridge = Box(380, 60, 130, 130, "pod network", ("bridge, DHCP,", "names, policies,", "nftables"), ACTS)
    guests = [Box(560, 46 + 58 * number, 120, 44, name, (), PURE) for number, name in enumerate(("web", "db", "cache"))]
    named = Box(380, 214, 130, 50, "your bridge", ("multus network",), ACTS)
    routed = [
        *_frame(180, 14, 520, 266, "with or without root: one routed network"),
        *_all(clients, services, bridge, *guests, named),
        arrow(clients.right, services.left),
        arrow(services.right, (380, 125)),
        *(arrow((510, box.left[1]), box.left, both=True) for box in guests),
        arrow((620, 206), (510, 239), both=True),
        caption(560, 258, "DHCP of your LAN", SMALL, anchor="start"),
    ]
    alone = [Box(560, 330 + 58 * number, 120, 44, name, (), PURE) for number, name in enumerate(("web", "db"))]
    users = [Box(380, 330 + 58 * number, 130, 44, "user mode", (), ACTS) for number in range(2)]
    ports = Box(200, 346, 130, 70, "host ports", ("forwarded",), ACTS)
    user = [
        *_frame(180, 296, 520, 150, ""),
        caption(194, 318, "user mode: each alone", TITLE, anchor="start"),
        *_all(ports, *users, *alone),
        *(arrow((330, 381), box.left) for box in users),
        *(arrow(mode.right, box.left, both=True) for mode, box in zip(users, alone, strict=True)),
        arrow((150, 140), (198, 370)),
    ]
    return picture(720, 460, "Networks of machines", [*routed, *user])


def disks() -> str:
    """Draw the layers of a disk: the image, frozen layers of snapshots, and the layer that the guest writes."""
    source = Box(20, 200, 170, 60, "registry, web, file", ("fetched once",), BASE)
    image = Box(260, 200, 190, 60, "image", ("read-only, by its SHA-256",), PURE)
    frozen = Box(260, 110, 190, 60, "layer of a snapshot", ("read-only",), PURE)
    top = Box(260, 20, 190, 60, "disk of web", ("the guest writes here",), ACTS)
    other = Box(520, 110, 190, 60, "disk of db", ("another machine",), ACTS)
    restored = Box(520, 20, 190, 60, "restored disk", ("or that of a clone",), ACTS)
    parts = [
        *_all(source, image, frozen, top, other, restored),
        arrow(source.right, image.left),
        arrow(frozen.bottom, image.top),
        arrow(top.bottom, frozen.top),
        arrow((520, 140), (450, 215)),
        arrow((520, 62), (450, 125)),
        caption(20, 300, "An arrow leads to the layer below. A layer holds only what its machine wrote.", PLAIN, anchor="start"),
    ]
    return picture(730, 320, "Layers of a disk", parts)


# what happens, on which side (source, command, target)
_MOVE = (
    ("plan", "rights, room, addresses", 1),
    ("stop", "the guest shuts down", 0),
    ("carry", "disks and Secrets", 1),
    ("hand over", "the source stays off", 0),
    ("start", "the guest boots at the target", 2),
)


def move() -> str:
    """Draw the five steps of `paddock move`."""
    columns = (("source", 20), ("paddock move", 290), ("target", 560))
    parts = [part for name, x in columns for part in _frame(x, 14, 240, 420, name)]
    boxes = [
        Box(columns[side][1] + 10, 54 + 76 * (number - 1), 220, 58, f"{number} {title}", (text,), ACTS)
        for number, (title, text, side) in enumerate(_MOVE, 1)
    ]
    parts += _all(*boxes)
    parts += [arrow(_edge(before, after), _edge(after, before)) for before, after in itertools.pairwise(boxes)]
    return picture(820, 448, "A move in five steps", parts)


def _edge(box: Box, other: Box) -> tuple[float, float]:
    if other.x == box.x:
        return box.bottom if other.y > box.y else box.top
    return box.right if other.x > box.x else box.left


def operator() -> str:
    """Draw `paddock up` and the operator side by side."""
    manifest = Box(295, 14, 170, 50, "your manifest", ("one of five dialects",), BASE)
    parts = [*_frame(20, 90, 340, 300, "one host: paddock up"), *_frame(400, 90, 340, 300, "a cluster: paddock operator")]
    left = [
        Box(40, 130, 300, 50, "API server and store", ("of Paddock",), ACTS),
        Box(40, 220, 140, 70, "controllers", ("of the dialect", "(Paddock)"), ACTS),
        Box(200, 220, 140, 70, "controllers", ("of KubeVirt's kinds", "(Paddock)"), ACTS),
        Box(200, 330, 140, 50, "QEMU", ("a process",), PURE),
    ]
    right = [
        Box(420, 130, 300, 50, "kube-apiserver and etcd", ("of the cluster",), BASE),
        Box(420, 220, 140, 70, "controllers", ("of the dialect", "(Paddock, the same)"), ACTS),
        Box(580, 220, 140, 70, "KubeVirt, CDI", ("of the cluster",), BASE),
        Box(580, 330, 140, 50, "QEMU", ("in a Pod",), PURE),
    ]
    parts += _all(manifest, *left, *right)
    parts += [arrow((340, 64), (250, 128)), arrow((420, 64), (510, 128))]
    for server, *controllers, guest in (left, right):
        parts += [arrow((each.top[0], server.bottom[1]), each.top, both=True) for each in controllers]
        parts.append(arrow(controllers[-1].bottom, guest.top))
    return picture(760, 412, "Paddock on a host and on a cluster", parts)


def trust() -> str:
    """Draw who is trusted with what: each frame is a boundary."""
    user = Box(20, 60, 150, 56, "a user", ("RBAC: a namespace",), BASE)
    image = Box(20, 150, 150, 56, "an image", ("untrusted bytes",), BASE)
    provider = Box(20, 240, 150, 56, "a hypervisor", ("of a Provider",), BASE)
    api = Box(240, 60, 170, 56, "API server", ("TLS, RBAC, limits, audit",), ACTS)
    parser = Box(240, 150, 170, 56, "parsers", ("then a confined qemu-img",), ACTS)
    driver = Box(240, 240, 170, 56, "a driver", ("a process of its own",), ACTS)
    store = Box(450, 60, 180, 56, "store and keys", ("for the server's user only",), ACTS)
    guest = Box(680, 60, 170, 56, "guest", ("its disks and networks",), PURE)
    qemu = Box(680, 150, 170, 56, "QEMU", ("user, namespaces, filter",), PURE)
    parts = [
        *_frame(220, 14, 420, 302, "the server's user, or root"),
        *_frame(660, 14, 210, 216, "each machine's user"),
        *_all(user, image, provider, api, parser, driver, store, guest, qemu),
        arrow(user.right, api.left),
        arrow(image.right, parser.left),
        arrow(driver.left, provider.right),
        arrow(api.right, store.left),
        arrow(guest.bottom, qemu.top),
        arrow((410, 178), (678, 178)),
        caption(20, 346, "Without root, guests run as the server's user: both frames are then one.", PLAIN, anchor="start"),
    ]
    return picture(890, 362, "Trust boundaries", parts)


def pictures() -> Mapping[str, str]:
    """Return every diagram by its file name."""
    return {"networks.svg": networks(), "disks.svg": disks(), "move.svg": move(), "operator.svg": operator(), "trust.svg": trust()}
