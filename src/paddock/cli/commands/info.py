"""`paddock info`: shows one machine at a glance."""

import argparse
from collections.abc import Iterator, Sequence

from paddock.base.lines import one_line
from paddock.cli import arguments, explanations, servers, terminal
from paddock.cli.commands import ls
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.cli.terminal import Screen
from paddock.fleet.diagnosis.explain import explain
from paddock.fleet.diagnosis.scene import at, holds, texts
from paddock.fleet.documents import report
from paddock.fleet.machines import facts, finding, parts, shares
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.shares import MachineShare
from paddock.fleet.servers.serverreader import ServerReader
from paddock.kubernetes.meta import ages

_TEXT = """Show a machine at a glance: its state, addresses, sizes, disks and networks. If it is not well, the cause stands below, as of
`paddock why`."""
_FORMATS = ("json", "yaml", "name")
_LABEL = 11
_MOST_LABELS = 6


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("info", _TEXT, "[OPTIONS] [KIND/]NAME")
    arguments.add_machine(options, arguments.MACHINE_TEXT)
    arguments.add_views(options, _FORMATS)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    servers.serve(_show(parsed, console))
    return GOOD


async def _show(parsed: argparse.Namespace, console: Console) -> None:
    async with servers.connected(parsed, console) as session:
        machine = await finding.find(session.client, parsed.name, session.namespace)
        if parsed.output == "name":
            console.out(f"{machine}\n")
            return
        if parsed.output:
            console.out(report.structured(ls.as_data(machine), parsed.output))
            return
        scene = await ServerReader(session.client, session.clock).gather(machine.ref)
        shared = await shares.of(session.client, machine)
    console.out("".join(f"{line}\n" for line in _lines(machine, scene.now, terminal.current(), shared)))
    answer = explain(scene, machine.ref)
    if answer.state not in ("good", "unknown"):
        console.out("\n" + "".join(f"{line}\n" for line in explanations.lines(answer, scene.now)))


def _lines(machine: MachineView, now: float, screen: Screen, shared: Sequence[MachineShare] = ()) -> Iterator[str]:
    for label, text in _facts(machine, shared, now, screen):
        if text:
            yield f"{f'{label}:' if label else '':<{_LABEL}} {text}"


def _facts(machine: MachineView, shared: Sequence[MachineShare], now: float, screen: Screen) -> Iterator[tuple[str, str]]:
    found = facts.of(machine)
    status = screen.paint(found.status, found.colour)
    running = f" for {ages.age(found.since, now)}" if found.since and found.status == "Running" else ""
    yield "machine", f"{machine.name} in namespace {machine.namespace}"
    yield "dialect", f"{machine.dialect} ({machine.kind.qualified})"
    yield "status", f"{status}{running}{', protected from deletion' if found.protected else ''}"
    key = machine.vm_key
    if machine.kind.front:
        given = texts(machine.data, "status", "id")
        yield "made", f"VirtualMachine {key.name}" if key else f"{given} at its Provider" if given else "no VirtualMachine yet"
    yield (
        "size",
        f"{found.cpus or '?'} {'CPU' if found.cpus == 1 else 'CPUs'}, {facts.size(found.memory) if found.memory else '?'} of memory",
    )
    yield "addresses", ", ".join(found.ips)
    yield "node", found.node
    yield "console", one_line(found.console)
    yield "image", one_line(found.image)
    yield "guest", one_line(" ".join(filter(None, (found.guest, texts(machine.vmi, "status", "guestOSInfo", "kernelRelease")))))
    if machine.vmi is not None:
        yield "agent", "connected" if holds(machine.vmi, "AgentConnected") else "not connected"
    for index, disk in enumerate(parts.disks(machine)):
        yield ("disks" if index == 0 else ""), str(disk)
    for index, share in enumerate(shared):
        yield ("shared" if index == 0 else ""), str(share)
    for index, nic in enumerate(parts.nics(machine)):
        yield ("networks" if index == 0 else ""), str(nic)
    labels = at(machine.data, "metadata", "labels") or {}
    yield "labels", ", ".join(f"{name}={value}" for name, value in sorted(labels.items())[:_MOST_LABELS])
    if found.created:
        yield "created", f"{ages.age(found.created, now)} ago"
