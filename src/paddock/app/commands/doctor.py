"""`paddock doctor`: checks what this host can do for machines, and what limits them."""

import asyncio
import json
import os
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from paddock.app.doctor import gather, judge, repair
from paddock.app.doctor.check import HostCheck
from paddock.app.doctor.repair import ChangeDone
from paddock.base.directories import default_root
from paddock.base.errors import Terminal
from paddock.base.lines import Colour
from paddock.cli import arguments, terminal
from paddock.cli.arguments import Parser
from paddock.cli.console import Console
from paddock.cli.exits import FINDINGS, GOOD
from paddock.cli.terminal import Screen

TEXT = """Check what this host can do for machines: programs, accelerator, networks, room, limits, kernel, clock. Each check is ok,
limited (machines run, with a limit) or broken (machines do not run), and says what that means and one way to mend it. Nothing is
changed without --fix."""
_INDENT = 9
# Long lines are hard to read.
_WIDEST = 100
_COLOURS: Mapping[str, Colour] = {"ok": "green", "limited": "yellow", "broken": "red"}
_EXITS = {0: "no check is broken", 1: "a check is broken", 2: "failure, or wrong usage"}


def parser() -> Parser:
    """Return the parser of the command."""
    options = arguments.parser("doctor", TEXT, exits=_EXITS)
    words = "As root, make the changes that are safe, and report each: load kernel modules, correct a sysctl, a group or a directory's mode"
    options.add_argument("--fix", action="store_true", help=words)
    arguments.add_format(options, formats=("text", "json"))
    options.add_argument("-q", "--quiet", action="store_true", help="Show only what is not ok")
    arguments.add_directory(options)
    return options


def run(argv: list[str], console: Console) -> int:
    """Print the report; return 1 when a check is broken."""
    parsed = parser().parse_args(argv)
    if parsed.fix and os.geteuid() != 0:
        fix = "sudo paddock doctor --fix, or do what each check says"
        raise Terminal("--fix changes the host", why="Paddock does not run as root", fix=fix)
    root = (parsed.dir or default_root()).absolute()
    checks = judge.judge(asyncio.run(gather.gather(root)))
    done: list[ChangeDone] = []
    if parsed.fix:
        done = repair.carry_out(repair.proposed(checks), repair.by_command)
        checks = judge.judge(asyncio.run(gather.gather(root))) if done else checks
    state = judge.worst(checks)
    if parsed.output == "json":
        console.out(json.dumps(_document(checks, done, state), indent=2) + "\n")
    else:
        _report(checks, done, parsed.quiet, console)
    return FINDINGS if state == "broken" else GOOD


def _report(checks: Sequence[HostCheck], done: Sequence[ChangeDone], quiet: bool, console: Console) -> None:
    screen = terminal.current()
    for each in done:
        outcome = f"failed to {each.change.text}: {each.error}" if each.error else f"changed: {each.change.text}"
        console.out(f"{outcome} ({' '.join(each.change.argv)})\n")
    width = max(len(each.id) for each in checks) + 2
    for check in checks:
        if quiet and check.outcome.state == "ok":
            continue
        console.out(_entry(check, width, screen))
    counts = {state: sum(each.outcome.state == state for each in checks) for state in ("ok", "limited", "broken")}
    console.say(f"{len(checks)} checks: " + ", ".join(f"{count} {state}" for state, count in counts.items() if count))


def _entry(check: HostCheck, width: int, screen: Screen) -> str:
    given = check.outcome
    indent = " " * _INDENT
    columns = min(screen.width, _WIDEST)
    head = f"{given.state:<{_INDENT}}{check.id:<{width}}"
    lines = [textwrap.fill(given.found, columns, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False)]
    more = filter(None, (given.effect, f"fix: {given.fix}" if given.fix else ""))
    lines += [textwrap.fill(line, columns, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False) for line in more]
    text = "\n".join(lines)
    return screen.paint(given.state, _COLOURS[given.state]) + text[len(given.state) :] + "\n"


def _document(checks: Sequence[HostCheck], done: Sequence[ChangeDone], state: str) -> dict[str, Any]:
    entries = [
        {
            "id": each.id,
            "subject": each.subject,
            "state": each.outcome.state,
            "found": each.outcome.found,
            "means": each.outcome.effect,
            "fix": each.outcome.fix,
            "fixable": each.outcome.change is not None,
        }
        for each in checks
    ]
    changes = [{"command": list(each.change.argv), "change": each.change.text, "error": each.error} for each in done]
    return {"state": state, "checks": entries, "changes": changes}
