"""`paddock exec`: runs a command in a guest by its agent; the guest needs no network."""

import argparse
import sys
from collections.abc import Sequence

from paddock.base.descriptors import write_all
from paddock.base.errors import PaddockError
from paddock.cli import arguments, servers
from paddock.cli import guestcommands as commandline
from paddock.cli.console import Console
from paddock.fleet.guests.guest import INPUT_BYTES, CommandOutcome, GuestAccess, GuestRefused

_TEXT = """Run a command in a guest by its guest agent, as root, and end with its exit code. The guest needs no network; it needs
qemu-guest-agent. The agent gives the output when the command has ended, and no terminal: use `paddock ssh` or `paddock console` for
programs that want one. A shell is not involved: `paddock exec web -- sh -c "ls /tmp | wc -l"` runs one."""
_TIMEOUT, _FAILED, _NOT_FOUND, _SIGNAL = 124, 125, 127, 128
_EXITS = {
    0: "the command succeeded; other codes are the command's own",
    124: "the command did not end within --timeout, and continues in the guest",
    125: "Paddock could not run it: no such machine, no agent, no server",
    127: "the guest has no such program",
    128: "and more: 128 and the number of the signal that ended it",
    2: "wrong usage, or the command's own code",
}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("exec", _TEXT, "[OPTIONS] [KIND/]NAME -- CMD [ARGS]", _EXITS)
    arguments.add_machine(options, commandline.MACHINE_TEXT)
    commandline.add_command(options, "Program and its arguments")
    options.add_argument("-i", "--stdin", action="store_true", help="Pass standard input, up to 1 MiB; it is read to its end first")
    options.add_argument("-t", "--tty", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("-e", "--env", metavar="NAME=VALUE", action="append", default=[], help="Set a variable; repeatable")
    options.add_argument("-w", "--workdir", metavar="PATH", default="", help="Directory of the guest to run in")
    arguments.add_timeout(options, None, "Longest time to wait for the end")
    arguments.add_server(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    options = parser()
    parsed = commandline.parse(options, argv)
    if not parsed.command:
        options.error("name a command: paddock exec NAME -- CMD")
    if parsed.tty:
        options.error("the guest agent gives no terminal; leave -t out, or use `paddock ssh` or `paddock console`")
    if wrong := [each for each in parsed.env if "=" not in each or each.startswith("=")]:
        options.error(f'-e "{wrong[0]}" is not NAME=VALUE')
    try:
        outcome = servers.serve(_outcome(parsed, console))
    except GuestRefused as error:
        console.say(f"paddock: {error}")
        return _NOT_FOUND if "No such file" in error.why or "not found" in error.why else _FAILED
    except PaddockError as error:
        console.say(f"paddock: {error}")
        return _FAILED
    if outcome is None:
        console.say(f"paddock: {parsed.command[0]} did not end within {parsed.timeout:g} s, and continues in the guest")
        return _TIMEOUT
    console.flush()
    write_all(sys.stdout.fileno(), outcome.out)
    write_all(sys.stderr.fileno(), outcome.err)
    if outcome.truncated:
        console.say("paddock: the output was cut off at 2 MiB; write it to a file in the guest and fetch that with `paddock cp`")
    return outcome.code if outcome.code >= 0 else min(255, _SIGNAL - outcome.code)


async def _outcome(parsed: argparse.Namespace, console: Console) -> CommandOutcome | None:
    async with commandline.reached(parsed, console, "run a command in the guest") as guest:
        return await guest.run(wrapped(parsed.command, parsed.workdir, parsed.env), _input(parsed, guest), seconds=parsed.timeout)


def wrapped(command: Sequence[str], directory: str, variables: Sequence[str]) -> list[str]:
    """Return the command with what the agent cannot do itself: a directory, and variables besides those there are."""
    changed = ["env", *variables, *command] if variables else list(command)
    return ["/bin/sh", "-c", 'cd -- "$0" && exec "$@"', directory, *changed] if directory else changed


def _input(parsed: argparse.Namespace, guest: GuestAccess) -> bytes:
    if not parsed.stdin:
        return b""
    data = sys.stdin.buffer.read(INPUT_BYTES + 1)
    if len(data) > INPUT_BYTES:
        fix = f"copy it to the guest first: `paddock cp FILE {guest.name}:PATH`"
        raise GuestRefused("cannot pass standard input", why="it is longer than 1 MiB", fix=fix)
    return data
