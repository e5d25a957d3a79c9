"""`paddock disk grow`: makes a disk of a machine larger."""

import argparse
from collections.abc import Sequence

from paddock.cli import arguments, changing, servers
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.fleet.machines import claims, disks, edits
from paddock.fleet.machines.finding import MachineView

_TEXT = """Make a disk larger. The guest sees the new size at once where the disk can grow while it runs, and has to grow its file
system itself; cloud-init does that for the root disk at the next boot. A disk never shrinks."""


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("disk grow", _TEXT, "[OPTIONS] [KIND/]NAME DISK SIZE", arguments.CHANGE_EXITS)
    arguments.add_machine(options, "Machine to change")
    options.add_argument("disk", metavar="DISK", help="Disk to grow; root is the root disk of Stakater's and Vitistack's machines")
    options.add_argument("size", metavar="SIZE", help="New size, such as 40Gi, or what to add, such as +20Gi")
    arguments.add_dry_run(options)
    arguments.add_yes(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    return servers.serve(_grow(parsed, console))


async def _grow(parsed: argparse.Namespace, console: Console) -> int:
    # Computed once: a second attempt must not add `+20Gi` to the size that the first has written to one of the objects.
    size = ""

    async with servers.connected(parsed, console) as server:

        async def attempt(machine: MachineView) -> int:
            nonlocal size
            size = size or disks.target_size(await claims.sized(server.client, machine, disks.listed(machine)), parsed.disk, parsed.size)
            data, claim = disks.grown(machine, parsed.disk, size)
            changes = [edits.edit(machine, data)]
            if claim:
                changes.append(await claims.growth(server.client, machine, claim, size))
            done = changing.options_of(parsed, f"has {size} on the disk {parsed.disk}")
            return await changing.carry_out(server, machine, changes, done, console)

        return await changing.repeated(server, parsed.name, attempt)
