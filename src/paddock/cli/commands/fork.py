"""`paddock fork`: makes machines that continue from the memory of a running one."""

import argparse
import asyncio
from collections.abc import Sequence

from paddock.cli import arguments, servers
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.fleet.machines import finding, forks

_TEXT = """Make machines that continue where a running machine is, with its memory and layers over its disks. The machine runs on. A fork
has MAC addresses, addresses and a firmware UUID of its own, and its guest agent gives the guest a host name, machine id, SSH host keys and
entropy of its own before it has a network. Forks are called NAME-fork-1 and so on. `paddock clone` copies a machine that is off."""
_EXITS = {
    0: "success",
    2: "wrong usage, or a fork failed",
}


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("fork", _TEXT, "[OPTIONS] [KIND/]NAME", _EXITS)
    arguments.add_machine(options, "Machine to fork")
    text = "Number of forks, all of the same moment (default: 1)"
    options.add_argument("--count", metavar="N", type=int, default=1, help=text)
    text = "Keep the forks until ctrl+C, then delete them with their disks"
    options.add_argument("--rm", action="store_true", help=text)
    arguments.add_dry_run(options)
    arguments.add_wait(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    _check(options, parsed)
    return servers.serve(_fork(parsed, console))


def _check(options: Parser, parsed: argparse.Namespace) -> None:
    """Refuse options that exclude each other."""
    if parsed.count < 1:
        options.error("--count must be at least 1")
    if parsed.rm and (parsed.dry_run or not parsed.wait):
        options.error("--rm waits for the forks: leave out --dry-run and --no-wait")
    if parsed.count > 1 and not parsed.wait:
        options.error("--count takes one snapshot for all forks and waits for them: leave out --no-wait")


async def _fork(parsed: argparse.Namespace, console: Console) -> int:
    if parsed.rm:
        servers.end_as_by_interrupt()
    async with servers.connected(parsed, console) as server:
        machine = await finding.find(server.client, parsed.name, server.namespace)
        wanted = await forks.wishes(server, machine, parsed.count)
        if forks.shares_identity(machine):
            console.say("paddock: the guest has no agent: a fork keeps its host name, machine id, SSH host keys and random numbers")
        names = forks.names_of(wanted)
        if parsed.dry_run:
            await forks.rehearse(server, wanted)
            console.say(f"paddock: the server would fork {machine} as {', '.join(names)}; nothing was changed (--dry-run)")
            return GOOD
        try:
            await forks.make(server, wanted, parsed.timeout if parsed.wait else 0.0)
            for name in names:
                console.out(f"vm/{name} forked from {machine}\n")
            if parsed.rm:
                console.say("paddock: ctrl+C deletes what was made")
                await asyncio.Event().wait()
        finally:
            if parsed.rm:
                await forks.delete(server, wanted)
                console.say(f"paddock: {', '.join(names)} deleted")
    return GOOD
