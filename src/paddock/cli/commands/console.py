"""`paddock console`: connects the terminal to the serial console of a machine; no virtctl is needed."""

import argparse
import sys
from collections.abc import Sequence

from paddock.base.clock import SystemClock
from paddock.cli import arguments, servers
from paddock.cli import guestcommands as commandline
from paddock.cli.console import Console
from paddock.fleet.guests import consoles
from paddock.fleet.guests import guest as guests
from paddock.fleet.guests.consoles import ConsoleWish
from paddock.fleet.guests.guest import GuestAccess
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.access import Access
from paddock.kubernetes.client.client import Client, ClientSettings
from paddock.kubernetes.client.http.https import Https

_TEXT = """Connect to the serial console of a machine. Ctrl+] disconnects. The session begins with the last screen and outlives a restart of
the machine. One session at a time has the console: a new one ends the old."""


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("console", _TEXT, "[OPTIONS] [KIND/]NAME")
    arguments.add_machine(options, commandline.MACHINE_TEXT)
    options.add_argument("--wait", action="store_true", help="Wait for a machine that is starting, and for each next start")
    options.add_argument("--replay", action="store_true", help="Show the log of this boot first")
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    """Connect the terminal with the console until either side ends."""
    parsed = parser().parse_args(argv)
    servers.serve(_talk(parsed, console))
    console.say("\r" if sys.stdin.isatty() else "")
    return 0


async def _talk(parsed: argparse.Namespace, console: Console) -> None:
    async with commandline.reached(parsed, console, "open the console", running=not parsed.wait) as guest:
        await _at_terminal(guest, console, ConsoleWish(wait=parsed.wait, replay=parsed.replay))


async def attach(access: Access, namespace: str, name: str, console: Console) -> None:
    """Connect the terminal with the console of a VirtualMachine, until either side ends this session."""
    async with Client(Https(access), ClientSettings(warnings=False)) as client:
        server = ServerSession(client, access, namespace, SystemClock())
        guest = await guests.access(server, f"vm/{name}", "open the console")
        await _at_terminal(guest, console, ConsoleWish(restarts=False))
    console.say("\r")


async def _at_terminal(guest: GuestAccess, console: Console, wish: ConsoleWish) -> None:
    console.say("paddock: ctrl+] leaves, Enter shows a prompt")
    keyboard = consoles.Keyboard(sys.stdin.fileno())
    with consoles.raw(sys.stdin.fileno()):
        keyboard.open()
        try:
            await consoles.attach(guest, keyboard, sys.stdout.fileno(), wish)
        finally:
            keyboard.close()
