"""`paddock logs`: what a guest wrote to its serial console, and its cloud-init's logs."""

import argparse
import asyncio
import sys
from collections.abc import Sequence

from paddock.cli import arguments, servers
from paddock.cli import guestcommands as commandline
from paddock.cli.console import Console
from paddock.fleet.guests import guestlogs
from paddock.fleet.guests.guest import GuestAccess

_TEXT = """Print what the guest of a machine wrote to its serial console: firmware, boot loader, kernel, and everything that logs there.
Paddock keeps the last 2 MiB of the present run and the last 512 KiB of the one before, also of a machine that is stopped. On a terminal,
control characters are left out. --cloud-init reads cloud-init's own logs by the guest agent."""
_EXITS = {0: "success", 2: "failure, wrong usage, or no log"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("logs", _TEXT, "[OPTIONS] [KIND/]NAME", _EXITS)
    arguments.add_machine(options, commandline.MACHINE_TEXT)
    options.add_argument("--boot", action="store_true", help="The log of the serial console (default)")
    options.add_argument("--cloud-init", action="store_true", help="/var/log/cloud-init.log and cloud-init-output.log of the guest")
    options.add_argument("-f", "--follow", action="store_true", help="Print what comes, over restarts too, until ctrl+C")
    options.add_argument("--tail", metavar="LINES", type=int, default=-1, help="Print the last lines only")
    options.add_argument("-p", "--previous", action="store_true", help="The log of the run before the present one")
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = options.parse_args(argv)
    if parsed.cloud_init and (parsed.boot or parsed.previous or parsed.follow):
        options.error("--cloud-init goes with --tail alone")
    if parsed.follow and parsed.previous:
        options.error("a run that is over says no more; leave -f or --previous out")
    try:
        servers.serve(_print(parsed, console))
    except KeyboardInterrupt:
        return 0
    return 0


async def _print(parsed: argparse.Namespace, console: Console) -> None:
    clean = sys.stdout.isatty()
    async with commandline.reached(parsed, console, "read the log", running=parsed.cloud_init) as guest:
        if parsed.cloud_init:
            for path, data in await guestlogs.cloud_init(guest):
                console.say(f"paddock: {path}")
                _out(guestlogs.tail(data, parsed.tail), clean)
            return
        data = await guestlogs.boot(guest, previous=parsed.previous)
        _out(guestlogs.tail(data, parsed.tail), clean)
        if parsed.follow:
            await _follow(guest, data, console, clean)


async def _follow(guest: GuestAccess, data: bytes, console: Console, clean: bool) -> None:
    follower = guestlogs.LogFollower(guest, data)
    while True:
        await asyncio.sleep(guestlogs.PAUSE_SECONDS)
        new, is_anew = await follower.news()
        if is_anew:
            console.say(f"paddock: {guest.name} was started anew")
        _out(new, clean)


def _out(data: bytes, clean: bool) -> None:
    sys.stdout.buffer.write(guestlogs.cleaned(data) if clean else data)
    sys.stdout.buffer.flush()
