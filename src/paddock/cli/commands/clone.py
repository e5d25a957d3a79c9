"""`paddock clone`: makes a machine with copies of another machine's disks."""

import argparse
from collections.abc import Sequence

from paddock.base.names import check_name
from paddock.cli import arguments, servers
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.fleet.machines import clones
from paddock.fleet.machines.finding import find

_TEXT = """Make a machine with copies of another machine's disks, running or not. The clone has a firmware UUID and MAC addresses of its
own; what the guest keeps in its disks, such as a host name or SSH host keys, is the same. The clone starts with --start."""
_EXITS = {0: "success", 2: "wrong usage, or the clone failed"}


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("clone", _TEXT, "[OPTIONS] [KIND/]NAME NEW", _EXITS)
    arguments.add_machine(options, "Machine to clone")
    options.add_argument("new", metavar="NEW", help="Name of the clone")
    options.add_argument("--start", action="store_true", help="Start the clone (default: it stays off)")
    text = "Make a VirtualMachine of KubeVirt, of a machine whose dialect has no clones"
    arguments.add_choice(options, ("--dialect",), ("kubevirt",), text)
    arguments.add_dry_run(options)
    arguments.add_wait(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    check_name(parsed.new)
    return servers.serve(_clone(parsed, console))


async def _clone(parsed: argparse.Namespace, console: Console) -> int:
    async with servers.connected(parsed, console) as server:
        machine = await find(server.client, parsed.name, server.namespace)
        options = clones.MachineCloneOptions(
            as_kubevirt=parsed.dialect == "kubevirt",
            start=parsed.start,
            seconds=parsed.timeout if parsed.wait else 0.0,
            dry_run=parsed.dry_run,
        )
        made = await clones.carry_out(server, machine, parsed.new, options)
    if parsed.dry_run:
        console.say(f"paddock: the server would clone {machine} as {made}; nothing was changed (--dry-run)")
        return GOOD
    console.out(f"{made} cloned from {machine}\n")
    if not parsed.start:
        console.say(f"paddock: it is off; `paddock start {parsed.new}` starts it")
    return GOOD
