"""`paddock plan`: predicts what each change of a manifest does to the machine, before it is applied."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from paddock.cli import arguments, planlines, report, targets
from paddock.cli.console import Console, one_line
from paddock.cli.exits import FINDINGS, GOOD, UNUSABLE
from paddock.cli.inputobjects import gather
from paddock.cli.objects import InputReader
from paddock.cli.planlines import NEW, REFUSED, PlanLine
from paddock.cli.rendering import RenderSummary
from paddock.cli.verdicts import FAILS
from paddock.plan.changes.differences import ABSENT, format_named
from paddock.plan.changes.effects import Effect

_TEXT = """Show the effect of each changed field on the machine: none, live, restart, recreate or data loss. Changes that
validation refuses or that cannot be carried out are listed, too."""
_EXITS = {0: "success", 1: "a change is refused, fails or loses data", 2: "wrong usage or unreadable input"}


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("plan", _TEXT, "[OPTIONS] -f FILE... --against OLD...", _EXITS)
    arguments.add_files(options)
    options.add_argument(
        "--against", metavar="OLD", nargs="+", required=True, help="Manifests as they were applied before: files, directories or -"
    )
    targets.add_target(options)
    arguments.add_format(options)
    return options


def run(argv: Sequence[str], console: Console) -> int:
    """Run the command."""
    options = parser()
    parsed = options.parse_args(argv)
    settings = targets.settings(parsed, console)
    reader = InputReader(console, settings)
    old = gather(reader, parsed.against, console)
    new = gather(reader, arguments.files(options, parsed), console)
    if reader.unusable:
        return UNUSABLE
    if old.refused or new.refused:
        return FINDINGS
    steps = planlines.lines(old, new, RenderSummary(console), settings)
    _print(steps, parsed.output, console)
    return FINDINGS if any(step.effect in (REFUSED, FAILS, Effect.LOSS) for step in steps) else GOOD


def _print(steps: Sequence[PlanLine], output: str, console: Console) -> None:
    if output != "text":
        console.out(report.structured({"changes": [_as_data(step) for step in steps]}, output))
        return
    for step in steps:
        parts = [f"{step.source}:{step.line}:{step.column}", step.effect, step.title, step.change, step.why]
        console.out(one_line(": ".join(part for part in parts if part)) + "\n")
    counts = Counter(step.effect for step in steps)
    order = [*map(str, Effect), FAILS, REFUSED, NEW, "unknown"]
    console.say(", ".join(f"{counts[effect]} {effect}" for effect in order if counts[effect]) or "nothing changes")


def _as_data(step: PlanLine) -> dict[str, Any]:
    data: dict[str, Any] = {"object": step.title, "effect": step.effect}
    if step.difference is not None:
        data["field"] = format_named(step.difference.named)
        values = {"before": step.difference.before, "after": step.difference.after}
        data.update({name: value for name, value in values.items() if value is not ABSENT})
    elif step.change:
        data["field"] = step.change
    return {**data, "why": step.why, "file": step.source, "line": step.line, "column": step.column}
