"""`paddock snap`: takes a snapshot of a machine. `snap ls` and `snap rm` stand below it, as with images and disks."""

import argparse
from collections.abc import Sequence
from importlib import import_module

from paddock.base.names import check_name
from paddock.cli import arguments, servers
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.fleet.machines import snapshots
from paddock.fleet.machines.finding import find
from paddock.kubernetes.client.options import WriteOptions

_TEXT = """Take a snapshot of all disks of a machine, running or not. With a guest agent the file systems of the guest are frozen for
it. With --memory it has the memory of the running guest, too, and a restore continues the guest there. `paddock snap ls` lists
snapshots, `paddock snap rm` deletes one, `paddock restore` brings a machine back. A machine called ls or rm is vm/ls or vm/rm here."""
_EXITS = {0: "success", 2: "wrong usage, or the snapshot failed"}
# verb -> its module and its summary
COMMANDS = {
    "ls": ("paddock.cli.commands.snap_list", "List the snapshots of machines"),
    "rm": ("paddock.cli.commands.snap_remove", "Delete a snapshot of a machine"),
}
_ALIASES = {"list": "ls", "remove": "rm", "delete": "rm"}


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("snap", _TEXT, "[OPTIONS] [KIND/]NAME [SNAPSHOT]", _EXITS)
    arguments.add_machine(options, "Machine to take a snapshot of")
    text = "Name of the snapshot (default: the machine's name and the time)"
    options.add_argument("snapshot", metavar="SNAPSHOT", nargs="?", default="", help=text)
    options.add_argument("--memory", action="store_true", help="Keep the memory of the running guest, too")
    arguments.add_wait(options)
    arguments.add_dry_run(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    """Take a snapshot, or run one of the verbs."""
    verb = _ALIASES.get(argv[0], argv[0]) if argv else ""
    if verb in COMMANDS:
        code: int = import_module(COMMANDS[verb][0]).run(list(argv[1:]), console)
        return code
    parsed = parser().parse_args(argv)
    return servers.serve(_take(parsed, console))


async def _take(parsed: argparse.Namespace, console: Console) -> int:
    async with servers.connected(parsed, console) as server:
        machine = await find(server.client, parsed.name, server.namespace)
        name = parsed.snapshot or snapshots.default_name(machine.name, server.clock.seconds())
        check_name(name)
        if parsed.dry_run:
            key = snapshots.place_of(machine, name)
            wanted = snapshots.wish(machine, name, memory=parsed.memory)
            await server.client.create(snapshots.kind_of(machine.kind), wanted, key.namespace, WriteOptions(dry_run=True))
            console.say(f"paddock: the server would take the snapshot {name} of {machine}; nothing was changed (--dry-run)")
            return GOOD
        taken = await snapshots.take(server, machine, name, parsed.timeout if parsed.wait else 0.0, memory=parsed.memory)
    row = snapshots.row(taken)
    if row.consistency == "like a power cut":
        console.say("paddock: the guest has no agent that freezes its file systems; they are as after a power cut")
    if row.memory:
        console.say(f"paddock: the memory of the guest takes {row.memory.replace(', ', '; the guest stood still for ')}")
    console.out(f"{name}\n")
    return GOOD
