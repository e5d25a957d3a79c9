"""`paddock forward`: ports of this host that lead to ports of a guest; no route to the guest is needed."""

import argparse
import asyncio
from collections.abc import Sequence

from paddock.cli import arguments, servers
from paddock.cli import guestcommands as commandline
from paddock.cli.console import Console
from paddock.fleet.guests import forwarding

_TEXT = """Forward ports of this host to ports of a guest, over the server, until ctrl+C. PORT alone is the same port on both sides, and
:PORT takes any free port here. The guest's network needs no route from here."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("forward", _TEXT, "[OPTIONS] [KIND/]NAME [[ADDRESS:]HOST:]GUEST[/udp] ...")
    arguments.add_machine(options, commandline.MACHINE_TEXT)
    options.add_argument("ports", metavar="[[ADDRESS:]HOST:]GUEST[/udp]", nargs="*", help="Ports, such as 8080:80 or 5353:53/udp")
    options.add_argument("--address", metavar="ADDRESS", default="127.0.0.1", help="Address to listen on (default: 127.0.0.1)")
    options.add_argument("--stdio", metavar="GUEST", type=int, help="Connect standard input and output with this port of the guest")
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    if bool(parsed.ports) == (parsed.stdio is not None):
        options.error("name ports to forward, such as 8080:80, or --stdio PORT")
    if parsed.stdio is not None and not 1 <= parsed.stdio <= 65535:
        options.error(f"--stdio {parsed.stdio} is no port")
    try:
        servers.serve(_forward(parsed, console))
    except KeyboardInterrupt:
        # That is how it ends.
        return 0
    return 0


async def _forward(parsed: argparse.Namespace, console: Console) -> None:
    forwards = [forwarding.parse(text, parsed.address) for text in parsed.ports]
    async with commandline.reached(parsed, console, "forward ports") as guest:
        if parsed.stdio is not None:
            await forwarding.stdio(guest, parsed.stdio)
            return
        async with forwarding.listening(guest, forwards, lambda line: console.say(f"paddock: {line}")) as taken:
            for each in taken:
                address = f"[{each.address}]" if ":" in each.address else each.address
                console.out(f"{address}:{each.outside} -> {guest.name}:{each.inside}/{each.protocol}\n")
            console.flush()
            await asyncio.Event().wait()
