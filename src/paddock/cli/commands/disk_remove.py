"""`paddock disk rm`: takes a disk out of a machine."""

import argparse
from collections.abc import Sequence

from paddock.cli import arguments, changing, confirming, servers
from paddock.cli.arguments import Parser
from paddock.cli.changing import repeated
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD
from paddock.fleet.machines import claims, disks, edits, waiting
from paddock.fleet.machines.finding import MachineView, find
from paddock.fleet.servers.session import ServerSession

_TEXT = """Take a disk out of a machine. Its data stays on its claim unless --purge is given, and another machine can use it. Unmount it
in the guest first."""
# A guest lets go of a disk within seconds, or not at all.
_UNPLUG_SECONDS = 60.0


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("disk rm", _TEXT, "[OPTIONS] [KIND/]NAME DISK", arguments.CHANGE_EXITS)
    arguments.add_machine(options, "Machine to change")
    options.add_argument("disk", metavar="DISK", help="Disk to take out")
    options.add_argument("--purge", action="store_true", help="Delete the disk's claim, too, with all data (KubeVirt)")
    options.add_argument("--restart", action="store_true", help="Restart the guest if it keeps the disk otherwise")
    arguments.add_dry_run(options)
    arguments.add_yes(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    return servers.serve(_remove(parsed, console))


async def _remove(parsed: argparse.Namespace, console: Console) -> int:
    # the claims that a person agreed to delete
    agreed: set[str] = set()
    async with servers.connected(parsed, console) as server:
        return await repeated(server, parsed.name, lambda machine: _attempt(server, machine, parsed, agreed, console))


async def _attempt(server: ServerSession, machine: MachineView, parsed: argparse.Namespace, agreed: set[str], console: Console) -> int:
    data, claim = disks.removed(machine, parsed.disk)
    if parsed.purge and not claim:
        raise edits.ChangeRefused(
            f'cannot delete the data of the disk "{parsed.disk}" of {machine}',
            why="its source has no claim"
            if machine.kind.plural == "virtualmachines" and not machine.kind.front
            else "its controller keeps it",
            fix="leave --purge out; the data goes with the machine",
        )
    if parsed.purge and not parsed.dry_run:
        question = f"Delete the claim {claim} with all data of the disk {parsed.disk}?"
        if not confirming.agreed(console, question, yes=parsed.yes or claim in agreed):
            confirming.refused(console, "nothing was changed", "--yes removes the disk and its data without a question")
            return FINDINGS
        agreed.add(claim)
    done = changing.options_of(parsed, f"no longer has the disk {parsed.disk}")
    code = await changing.carry_out(server, machine, [edits.edit(machine, data)], done, console)
    if code != GOOD or parsed.dry_run:
        return code
    if parsed.purge:
        return await _purge(server, machine, claim, console)
    if claim:
        console.say(
            f"paddock: the claim {claim} keeps the data; `paddock disk add {machine.name} {parsed.disk} --claim {claim}` brings it back"
        )
    return code


async def _purge(server: ServerSession, machine: MachineView, claim: str, console: Console) -> int:
    async def free() -> bool:
        return not claims.is_in_use(await find(server.client, str(machine), machine.namespace), claim)

    if not await waiting.until(free, _UNPLUG_SECONDS):
        console.say(f"paddock: the guest still uses the claim {claim}, so it was not deleted; restart the machine and repeat the command")
        return FINDINGS
    await claims.purge(server.client, machine, claim)
    console.out(f"claim/{claim} deleted\n")
    return GOOD
