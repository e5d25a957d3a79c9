"""`paddock tenant ls`: lists tenants."""

import argparse
from collections.abc import Sequence

from paddock.cli import arguments, servers
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.cli.exits import GOOD
from paddock.cli.machineviews import shown
from paddock.fleet.tenants import tenancy, tenant
from paddock.kubernetes.meta.ages import age

_TEXT = "List the tenants, with what each uses of what it may use."


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("tenant ls", _TEXT)
    arguments.add_views(options, ("json", "yaml", "name"))
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    return servers.serve(_list(parsed, console))


async def _list(parsed: argparse.Namespace, console: Console) -> int:
    async with servers.connected(parsed, console) as session:
        rows = await tenancy.listed(session)
        now = session.clock.seconds()
    titles = ("NAME", *(title for title, _ in tenant.SHARES), "AGE")
    cells = [(row.name, *tenancy.shares_of(row), age(row.created, now) if row.created else "") for row in rows]
    data = [{"name": row.name, "created": row.created, "used": row.used, "hard": row.hard} for row in rows]
    console.out(shown(parsed.output, titles, cells, data))
    return GOOD
