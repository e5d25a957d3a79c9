"""The parts of a command line that commands about one guest share."""

import argparse
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from paddock.cli import arguments, servers
from paddock.cli.console import Console
from paddock.fleet.guests import guest
from paddock.fleet.guests.guest import GuestAccess

MACHINE_TEXT = "Machine, by the name of its object in any dialect"


def add_command(options: arguments.Parser, text: str) -> None:
    """Add a command with its own options, after the machine. `parse` reads it."""
    options.add_argument("command", metavar="CMD", nargs="*", help=text)


def parse(options: arguments.Parser, given: Sequence[str]) -> argparse.Namespace:
    """Parse the command line. What follows `--` is the command; without it, everything after the machine's name is."""
    before, after = list(given), []
    command = next(action for action in options._get_positional_actions() if action.dest == "command")
    if "--" in before:
        place = before.index("--")
        before, after = before[:place], before[place + 1 :]
    else:
        command.nargs = argparse.REMAINDER
    parsed = options.parse_args(before)
    if parsed.command and after:
        # A command with a -- of its own: git log -- FILE.
        after = ["--", *after]
    parsed.command = [*parsed.command, *after]
    return parsed


def server_options(parsed: argparse.Namespace, environ: Mapping[str, str] = os.environ) -> list[str]:
    """Return the options by which another paddock finds the same server and namespace, also where the environment is another."""
    options = ["-n", parsed.namespace] if parsed.namespace else []
    given = environ.get("KUBECONFIG", "")
    # Several files have no place in one option.
    named = parsed.kubeconfig or (Path(given) if given and os.pathsep not in given else None)
    options += ["--kubeconfig", str(named.absolute())] if named else []
    return [*options, *(["--context", parsed.context] if parsed.context else [])]


@asynccontextmanager
async def reached(parsed: argparse.Namespace, console: Console, what: str, *, running: bool = True) -> AsyncIterator[GuestAccess]:
    """Connect to the server, and find the machine that the command line names. `what` is for errors: "open the console".

    With `running`, raise `NotRunning` for a machine without a running guest.
    """
    async with servers.connected(parsed, console) as server:
        found = await guest.access(server, parsed.name, what)
        if running:
            guest.check_running(found, what)
        yield found
