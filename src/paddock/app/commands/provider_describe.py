"""`paddock provider describe`: shows one Provider with its conditions and capabilities."""

import asyncio

from paddock.app.provider import objects
from paddock.base.clock import SystemClock
from paddock.base.names import check_name
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.fleet.documents import report

TEXT = "Show one Provider: its runtime, conditions, reported capabilities and adoption."
_EXITS = {0: "success", 2: "wrong usage, no such Provider, or no answer from the server"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("provider describe", TEXT, "[OPTIONS] NAME", _EXITS)
    name = options.add_argument("name", metavar="NAME", help="Provider to show")
    arguments.complete_with(name, arguments.KnownNames.PROVIDERS)
    arguments.add_server(options)
    arguments.add_format(options, "table", ("table", "json", "yaml"))
    return options


def run(argv: list[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    for word in (parsed.name, *filter(None, [parsed.namespace])):
        check_name(word)
    found = asyncio.run(objects.get(parsed, console))
    if parsed.output == "table":
        console.out(objects.description(found, SystemClock().seconds()))
    else:
        console.out(report.structured(found, parsed.output))
    return 0
