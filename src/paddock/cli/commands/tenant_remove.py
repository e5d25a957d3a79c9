"""`paddock tenant rm`: deletes a tenant."""

import argparse
from collections.abc import Sequence

from paddock.cli import arguments, confirming, servers
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD
from paddock.fleet.tenants import tenancy

_TEXT = "Delete a tenant with its namespace: its machines, their disks, its user."
_EXITS = {0: "success", 1: "nothing was deleted: the answer was no, or --yes is missing", 2: "wrong usage, or no such tenant"}


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("tenant rm", _TEXT, "[OPTIONS] NAME", _EXITS)
    options.add_argument("name", metavar="NAME", help="Tenant to delete; `paddock tenant ls` lists them")
    arguments.add_dry_run(options)
    arguments.add_yes(options)
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    return servers.serve(_remove(parsed, console))


async def _remove(parsed: argparse.Namespace, console: Console) -> int:
    async with servers.connected(parsed, console) as session:
        await tenancy.remove(session, parsed.name, dry_run=True)
        question = f"Delete the tenant {parsed.name} with all its machines and disks?"
        if not parsed.dry_run and not confirming.agreed(console, question, yes=parsed.yes):
            confirming.refused(console, "nothing was deleted", "--yes deletes without a question")
            return FINDINGS
        if not parsed.dry_run:
            await tenancy.remove(session, parsed.name)
    console.out(f"{parsed.name} {'would be deleted (--dry-run)' if parsed.dry_run else 'is being deleted'}\n")
    return GOOD
