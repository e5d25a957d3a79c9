"""`paddock protect` and `unprotect` differ in one word; what they share is here."""

import argparse
from collections.abc import Sequence

from paddock.cli import arguments, servers, several
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.fleet.machines import facts, writing
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.errors import ApiError, Forbidden, Invalid
from paddock.kubernetes.client.options import DeletionOptions


def parser(command: str, text: str) -> Parser:
    """Return a parser with the options that the two share."""
    options = arguments.parser(command, text, "[OPTIONS] [KIND/]NAME...")
    several.add_names(options)
    arguments.add_dry_run(options)
    arguments.add_server(options)
    return options


def carry_out(options: Parser, given: Sequence[str], console: Console, *, protected: bool) -> int:
    """Protect the machines that are named, or take their protection off."""
    return servers.serve(_work(options.parse_args(given), console, protected))


async def _work(parsed: argparse.Namespace, console: Console, protected: bool) -> int:
    async with servers.connected(parsed, console) as session:

        async def one(machine: MachineView) -> str:
            return await protect(session, machine, protected=protected, dry_run=parsed.dry_run)

        return await several.each(session, parsed.names, console, one)


async def protect(session: ServerSession, machine: MachineView, *, protected: bool, dry_run: bool) -> str:
    """Set or remove the label, and try whether the server enforces it. Return the outcome for people."""
    if not protected and not facts.is_protected(machine.data):
        return "is not protected"
    value = facts.PROTECTED if protected else None
    await writing.send(session.client, writing.member(machine, ("metadata", "labels", facts.PROTECTION), value), dry_run=dry_run)
    if not protected or dry_run:
        return f"{'protected' if protected else 'unprotected'}{' (dry run)' if dry_run else ''}"
    try:
        # A dry run of a deletion shows whether anything refuses it.
        await session.client.delete(machine.kind.target, machine.key, DeletionOptions(dry_run=True))
    except (Forbidden, Invalid):
        return "protected: the server refuses to delete it"
    except ApiError as error:
        return f"labelled {facts.PROTECTION}; whether the server enforces that is not known: {error}"
    return f"labelled {facts.PROTECTION}: `paddock rm` refuses to delete it, but this server has no policy against other deletions"
