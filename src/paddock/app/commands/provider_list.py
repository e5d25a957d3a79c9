"""`paddock provider ls`: lists the Provider objects of a server."""

import asyncio

from paddock.app.provider import objects
from paddock.base.clock import SystemClock
from paddock.base.names import check_name
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.fleet.documents import report
from paddock.kubernetes.meta.manifests import write

TEXT = "List the Provider objects of a server: type, endpoint, health and machines."
_EXITS = {0: "success", 2: "wrong usage, or no answer from the server"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("provider ls", TEXT, exits=_EXITS)
    options.add_argument("-A", "--all-namespaces", action="store_true", help="List the Providers of every namespace")
    arguments.add_server(options)
    arguments.add_format(options, "table", ("table", "json", "yaml"))
    return options


def run(argv: list[str], console: Console) -> int:
    parsed = parser().parse_args(argv)
    if parsed.namespace:
        check_name(parsed.namespace)
    found = asyncio.run(objects.listed(parsed, console))
    if parsed.output == "table":
        console.out(objects.table(found, SystemClock().seconds(), namespaced=parsed.all_namespaces))
        if not found:
            console.say("paddock: there are no Providers")
    elif parsed.output == "json":
        console.out(write.to_json({"apiVersion": "v1", "kind": "List", "items": found}))
    else:
        console.out(report.structured({"apiVersion": "v1", "kind": "List", "items": found}, "yaml"))
    return 0
