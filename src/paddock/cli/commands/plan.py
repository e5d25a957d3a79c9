"""`paddock plan`: what each change of a manifest does to the machine, before it is applied."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from paddock.base.errors import PaddockError
from paddock.cli import arguments, report
from paddock.cli.compared import Pair, pair, place, text
from paddock.cli.console import Console, one_line
from paddock.cli.exits import FINDINGS, GOOD, UNUSABLE
from paddock.cli.gather import gather
from paddock.cli.objects import Reader
from paddock.cli.rendered import Outcome
from paddock.dialects import admission
from paddock.meta.rendering import Rendering
from paddock.meta.wire import to_data
from paddock.meta.world import World
from paddock.plan import changes
from paddock.plan.differences import ABSENT, Difference, How, format_named
from paddock.plan.effects import Effect, Row
from paddock.schema.finding import Finding, Severity
from paddock.schema.kind import Settings
from paddock.translate import catalog

_TEXT = """Tell for each changed field whether the change has no effect, is live, waits for a restart, makes the machine anew or
loses data, and which changes are refused. Exit code 1: something is refused, or data is lost."""
REFUSED = "refused"
_NEW = "created"
_GONE = "not in the new manifests"
_SAME = Row("", Effect.NONE, "it becomes the same objects as before")


class Step(msgspec.Struct, frozen=True):
    """One line of a plan."""

    source: str
    line: int
    column: int
    effect: str
    title: str
    change: str
    why: str
    difference: Difference | None = None


def run(given: Sequence[str], console: Console) -> int:
    """The command."""
    options = arguments.parser("plan", _TEXT)
    arguments.add_files(options)
    options.add_argument("--against", metavar="OLD", nargs="+", required=True, help="the manifests as they were applied")
    arguments.add_choice(options, ("--target",), ("embedded", "cluster"), "where the machines run (default: embedded)", "embedded")
    arguments.add_format(options)
    parsed = options.parse_args(given)
    settings = Settings(target=parsed.target)
    reader = Reader(console, settings)
    old = gather(reader, parsed.against, console)
    new = gather(reader, arguments.files(options, parsed), console)
    if reader.unusable:
        return UNUSABLE
    if old.refused or new.refused:
        return FINDINGS
    pairs = pair(old, new, Outcome(console), crossing=False)
    steps = [step for each in pairs for step in _steps(each, settings, same=_becomes_the_same(each, old.world, new.world))]
    _print(steps, parsed.output, console)
    return FINDINGS if any(step.effect in (REFUSED, Effect.LOSS) for step in steps) else GOOD


def _becomes_the_same(pair: Pair, before: World, after: World) -> bool:
    """Whether two forms that differ are the same on KubeVirt's side: a default that depends on other fields was spelled out."""
    kind = pair.kind
    if pair.old is None or pair.new is None or kind is None or not catalog.is_all_in_kubevirt(kind.group, kind.kind):
        return False
    translate = catalog.to_kubevirt(kind.dialect)
    sides = ((pair.old.admission.value, before), (pair.new.admission.value, after))
    try:
        old, new = ([to_data(each) for each in translate(value, world, Rendering()).value] for value, world in sides)
    except PaddockError:
        return False
    return old == new


def _steps(pair: Pair, settings: Settings, *, same: bool) -> Iterator[Step]:
    side = pair.new or pair.old
    assert side is not None
    start = side.document.start
    if pair.old is None:
        yield Step(side.document.source, *start, _NEW, side.title, "", "it is not in the old manifests")
        return
    if pair.new is None:
        yield Step(side.document.source, *start, str(Effect.NONE), side.title, _GONE, "it stays as it is; delete it if it is to go")
        return
    refused = list(_refused(pair, settings))
    told: set[Finding] = set()
    for each in pair.differences():
        against = [found for found in refused if _meets(found, each)]
        told.update(against)
        yield _step(pair, each, against, _SAME if same else None)
    for found in refused:
        if found not in told:
            position = side.document.position(found.path)
            yield Step(side.document.source, *position, REFUSED, side.title, found.field, f"{found.message} ({found.rule})")


def _refused(pair: Pair, settings: Settings) -> Iterator[Finding]:
    """What the rules about changes say against it."""
    assert pair.old is not None and pair.new is not None
    before = pair.old.admission.value
    if before is None:
        return
    already = len(pair.new.admission.findings)
    for found in admission.admit_change(before, pair.new.admission, settings).findings[already:]:
        if found.severity is Severity.ERROR:
            yield found


def _meets(found: Finding, difference: Difference) -> bool:
    """Whether a finding is about a difference: at its place, above or below it."""
    shorter = min(len(found.path), len(difference.path))
    if difference.how is How.REMOVED and any(isinstance(part, int) for part in found.path):
        # The one counts the entries of the new form, the other those of the old.
        return False
    return found.path[:shorter] == difference.path[:shorter]


def _step(pair: Pair, difference: Difference, against: Sequence[Finding], same: Row | None) -> Step:
    at = place(pair, difference)
    row = same or (changes.judge(pair.kind, difference) if pair.kind is not None else None)
    effect = str(row.effect) if row else "unknown"
    why = row.why if row else "Paddock does not know this kind"
    if against:
        rules = "; ".join(f"{found.message} ({found.rule})" for found in against)
        effect, why = REFUSED, f"{rules}; made anew it would be: {effect}: {why}" if row and row.effect is Effect.LOSS else rules
    return Step(at.source, *at.position, effect, at.title, text(difference), why, difference)


def _print(steps: Sequence[Step], output: str, console: Console) -> None:
    if output != "text":
        console.out(report.structured({"changes": [_as_data(step) for step in steps]}, output))
        return
    for step in steps:
        parts = [f"{step.source}:{step.line}:{step.column}", step.effect, step.title, step.change, step.why]
        console.out(one_line(": ".join(part for part in parts if part)) + "\n")
    counts = Counter(step.effect for step in steps)
    order = [*map(str, Effect), REFUSED, _NEW, "unknown"]
    console.say(", ".join(f"{counts[effect]} {effect}" for effect in order if counts[effect]) or "nothing changes")


def _as_data(step: Step) -> dict[str, Any]:
    data: dict[str, Any] = {"object": step.title, "effect": step.effect}
    if step.difference is not None:
        data["field"] = format_named(step.difference.named)
        values = {"before": step.difference.before, "after": step.difference.after}
        data.update({name: value for name, value in values.items() if value is not ABSENT})
    elif step.change:
        data["field"] = step.change
    return {**data, "why": step.why, "file": step.source, "line": step.line, "column": step.column}
