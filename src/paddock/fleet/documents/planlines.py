"""The lines of a plan: each change between two sets of manifests, with its place and its effect."""

from collections.abc import Iterator, Sequence

import msgspec

from paddock.fleet.documents.comparison import ObjectPair, pair, place, text
from paddock.fleet.documents.inputobjects import InputObjects
from paddock.fleet.documents.rendering import RenderSummary
from paddock.fleet.documents.verdicts import ChangeVerdict, ObjectChange, object_change
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.plan.changes.differences import FieldDifference, ValueChange
from paddock.kubevirt.plan.changes.effects import Effect
from paddock.kubevirt.plan.quotas.forecast import LackingObject, QuotaForecast

REFUSED = "refused"
NEW = "created"
# A quota has no room; it happens when there is.
WAITS = "waits"
NOT_IN_MANIFESTS, NOT_ON_SERVER = "it is not in the old manifests", "it is not on the server"
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


def lines(
    old: InputObjects, new: InputObjects, outcome: RenderSummary, settings: AdmissionSettings, absent: str = NOT_IN_MANIFESTS
) -> list[PlanLine]:
    """Return the lines for all objects of both sides. `absent` explains objects that the old side lacks."""
    pairs = pair(old, new, outcome, crossing=False)
    return [step for each in pairs for step in _steps(object_change(each, (old.object_set, new.object_set), settings), absent)]


def lacking(objects: InputObjects, forecast: QuotaForecast) -> list[PlanLine]:
    """Return the lines for objects that quotas have no room for."""
    documents = [(each, objects.titles[each.title].document) for each in forecast.lacking]
    return [
        PlanLine(document.source, *document.start, WAITS if each.waits else REFUSED, each.title, _count(each), each.why)
        for each, document in documents
    ]


def outlook(forecast: QuotaForecast) -> Iterator[str]:
    """Yield the outlook of quotas for people: the objects without room, and each quota."""
    for each in forecast.lacking:
        yield ": ".join(part for part in (WAITS if each.waits else REFUSED, each.title, _count(each), each.why) if part)
    yield from quotas(forecast)


def _count(lacking_object: LackingObject) -> str:
    return f"{lacking_object.count} of its objects" if lacking_object.count > 1 else ""


def quotas(forecast: QuotaForecast) -> Iterator[str]:
    """Yield the outlook of each quota for people, and what it does not count."""
    yield from (each.line() for each in forecast.bounds)
    yield from (f"quota: {title} is not counted whole: {why}" for title, why in forecast.unclear)


def _steps(change: ObjectChange, absent: str) -> Iterator[PlanLine]:
    pair = change.pair
    side = pair.side
    start = side.document.start
    if pair.old is None:
        yield PlanLine(side.document.source, *start, NEW, side.title, "", absent)
        return
    if pair.new is None:
        yield PlanLine(side.document.source, *start, str(Effect.NONE), side.title, _GONE, "it stays as it is; delete it if it is to go")
        return
    refused = change.refusals()
    reported: set[Finding] = set()
    found = list(pair.differences())
    verdicts = change.settle([change.verdict(each) for each in found])
    for each, verdict in zip(found, verdicts, strict=True):
        against = [finding for finding in refused if _meets(finding, each)]
        reported.update(against)
        yield _step(pair, each, against, verdict)
    for finding in refused:
        if finding not in reported:
            position = side.document.position(finding.path)
            yield PlanLine(side.document.source, *position, REFUSED, side.title, finding.field, f"{finding.message} ({finding.rule})")


def _meets(finding: Finding, difference: FieldDifference) -> bool:
    """Return True if a finding concerns a difference: at its path, above or below it."""
    shorter = min(len(finding.path), len(difference.path))
    if difference.how is ValueChange.REMOVED and any(isinstance(part, int) for part in finding.path):
        # The one counts the entries of the new form, the other those of the old.
        return False
    return finding.path[:shorter] == difference.path[:shorter]


def _step(pair: ObjectPair, difference: FieldDifference, against: Sequence[Finding], verdict: ChangeVerdict) -> PlanLine:
    at = place(pair, difference)
    effect, why = verdict.effect, verdict.why
    if against:
        rules = "; ".join(f"{found.message} ({found.rule})" for found in against)
        why = f"{rules}; made anew it would be: {effect}: {why}" if effect == Effect.LOSS else rules
        effect = REFUSED
    return PlanLine(at.source, *at.position, effect, at.title, text(difference), why, difference)
