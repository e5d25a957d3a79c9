"""`paddock plan`: predicts what each change of a manifest does to the machine, before it is applied."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from paddock.cli import arguments, report
from paddock.cli.comparison import ObjectPair, pair, place, text
from paddock.cli.console import Console, one_line
from paddock.cli.exits import FINDINGS, GOOD, UNUSABLE
from paddock.cli.inputobjects import gather
from paddock.cli.objects import InputReader
from paddock.cli.rendering import RenderSummary
from paddock.cli.verdicts import FAILS, ChangeVerdict, ObjectChange, object_change
from paddock.plan.changes.differences import ABSENT, FieldDifference, ValueChange, format_named
from paddock.plan.changes.effects import Effect
from paddock.schema.finding import Finding
from paddock.schema.kind import AdmissionSettings

_TEXT = """Show the effect of each changed field on the machine: none, live, restart, recreate or data loss. Changes that
validation refuses or that cannot be carried out are listed, too."""
_EXITS = {0: "success", 1: "a change is refused, fails or loses data", 2: "wrong usage or unreadable input"}
REFUSED = "refused"
_NEW = "created"
_GONE = "not in the new manifests"


class PlanLine(msgspec.Struct, frozen=True):
    """One line of a plan."""

    source: str
    line: int
    column: int
    effect: str
    title: str
    change: str
    why: str
    difference: FieldDifference | None = None


def parser() -> arguments.Parser:
    """Return the parser of the command."""
    options = arguments.parser("plan", _TEXT, "[OPTIONS] -f FILE... --against OLD...", _EXITS)
    arguments.add_files(options)
    options.add_argument(
        "--against", metavar="OLD", nargs="+", required=True, help="Manifests as they were applied before: files, directories or -"
    )
    arguments.add_choice(
        options,
        ("--target",),
        ("embedded", "cluster"),
        "Where the machines run: Paddock's own engine, or a KubeVirt cluster (default: embedded)",
        "embedded",
    )
    arguments.add_format(options)
    return options


def run(given: Sequence[str], console: Console) -> int:
    """Run the command."""
    options = parser()
    parsed = options.parse_args(given)
    settings = AdmissionSettings(target=parsed.target)
    reader = InputReader(console, settings)
    old = gather(reader, parsed.against, console)
    new = gather(reader, arguments.files(options, parsed), console)
    if reader.unusable:
        return UNUSABLE
    if old.refused or new.refused:
        return FINDINGS
    pairs = pair(old, new, RenderSummary(console), crossing=False)
    steps = [step for each in pairs for step in _steps(object_change(each, (old.world, new.world), settings))]
    _print(steps, parsed.output, console)
    return FINDINGS if any(step.effect in (REFUSED, FAILS, Effect.LOSS) for step in steps) else GOOD


def _steps(change: ObjectChange) -> Iterator[PlanLine]:
    pair = change.pair
    side = pair.new or pair.old
    assert side is not None
    start = side.document.start
    if pair.old is None:
        yield PlanLine(side.document.source, *start, _NEW, side.title, "", "it is not in the old manifests")
        return
    if pair.new is None:
        yield PlanLine(side.document.source, *start, str(Effect.NONE), side.title, _GONE, "it stays as it is; delete it if it is to go")
        return
    refused = change.refusals()
    told: set[Finding] = set()
    found = list(pair.differences())
    verdicts = change.settle([change.verdict(each) for each in found])
    for each, verdict in zip(found, verdicts, strict=True):
        against = [finding for finding in refused if _meets(finding, each)]
        told.update(against)
        yield _step(pair, each, against, verdict)
    for finding in refused:
        if finding not in told:
            position = side.document.position(finding.path)
            yield PlanLine(side.document.source, *position, REFUSED, side.title, finding.field, f"{finding.message} ({finding.rule})")


def _meets(found: Finding, difference: FieldDifference) -> bool:
    """Return True if a finding concerns a difference: at its path, above or below it."""
    shorter = min(len(found.path), len(difference.path))
    if difference.how is ValueChange.REMOVED and any(isinstance(part, int) for part in found.path):
        # The one counts the entries of the new form, the other those of the old.
        return False
    return found.path[:shorter] == difference.path[:shorter]


def _step(pair: ObjectPair, difference: FieldDifference, against: Sequence[Finding], verdict: ChangeVerdict) -> PlanLine:
    at = place(pair, difference)
    effect, why = verdict.effect, verdict.why
    if against:
        rules = "; ".join(f"{found.message} ({found.rule})" for found in against)
        why = f"{rules}; made anew it would be: {effect}: {why}" if effect == Effect.LOSS else rules
        effect = REFUSED
    return PlanLine(at.source, *at.position, effect, at.title, text(difference), why, difference)


def _print(steps: Sequence[PlanLine], output: str, console: Console) -> None:
    if output != "text":
        console.out(report.structured({"changes": [_as_data(step) for step in steps]}, output))
        return
    for step in steps:
        parts = [f"{step.source}:{step.line}:{step.column}", step.effect, step.title, step.change, step.why]
        console.out(one_line(": ".join(part for part in parts if part)) + "\n")
    counts = Counter(step.effect for step in steps)
    order = [*map(str, Effect), FAILS, REFUSED, _NEW, "unknown"]
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
