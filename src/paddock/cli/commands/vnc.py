"""`paddock vnc`: shows the display of a machine in a viewer of this host."""

import argparse
import asyncio
import sys
from collections.abc import Sequence

from paddock.cli import arguments, servers
from paddock.cli import guestcommands as commandline
from paddock.cli.console import Console
from paddock.fleet.guests import viewers

_TEXT = """Show the display of a machine in the first VNC viewer that this host has: remote-viewer, TigerVNC, vncviewer, gvncviewer and
others. With --proxy, print the address of a loopback port for a viewer of your own, and serve it until ctrl+C. There is no password: every
user of this host can connect to the port while it is open."""
_EXITS = {0: "success", 1: "the viewer failed", 2: "failure, or wrong usage"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("vnc", _TEXT, "[OPTIONS] [KIND/]NAME", _EXITS)
    arguments.add_machine(options, commandline.MACHINE_TEXT)
    options.add_argument("--proxy", "--proxy-only", action="store_true", help="Start no viewer; print the address to connect to")
    options.add_argument("--port", metavar="PORT", type=int, default=0, help="Port of loopback to listen on (default: any)")
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    if not 0 <= parsed.port <= 65535:
        options.error(f"--port {parsed.port} is no port")
    try:
        return servers.serve(_show(parsed, console))
    except KeyboardInterrupt:
        return 0


async def _show(parsed: argparse.Namespace, console: Console) -> int:
    viewer = None if parsed.proxy else viewers.choose()
    async with (
        commandline.reached(parsed, console, "show the display") as guest,
        viewers.served(guest, parsed.port, lambda line: console.say(f"paddock: {line}")) as port,
    ):
        if viewer is None:
            console.out(f"127.0.0.1:{port}\n")
            console.flush()
            await asyncio.Event().wait()
            return 0
        process = await asyncio.create_subprocess_exec(*viewer.command(port), stdout=sys.stderr)
        try:
            return 1 if await process.wait() else 0
        finally:
            if process.returncode is None:
                process.terminate()
