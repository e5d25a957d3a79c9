"""The answer: what an object is, and why it is not what it should be, the cause first."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from paddock.fleet.diagnosis import reported, sayings, verdict
from paddock.fleet.diagnosis.rule import CauseDepth, Diagnosis, RuleView
from paddock.fleet.diagnosis.scene import Ask, EventQuery, ObjectPlace, ObjectSnapshot, at, texts
from paddock.fleet.diagnosis.table import LOOKING, WORDS, every
from paddock.fleet.diagnosis.walk import walk
from paddock.kubevirt.plan.changes.references import INSTANCE, MACHINE
from paddock.kubevirt.plan.diagnosis import kinddiagnosis

# good: nothing to do; notice: it works, but not as it should; unknown: nothing was found, and not all was there to be judged
# Remarks that leave a question open, by rule: with one of them nothing is all clear.
GAPS: Mapping[str, str] = {"disks-blank": "whether the guest boots (its disks were made empty, or it has none)"}
State = Literal["good", "notice", "waits", "fails", "unknown"]
_OWN_WORDS = "said-by-object"
_ORDER = {"fails": 0, "waits": 1, "notice": 2, "hint": 3}


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The answer. `word` goes on after the object's name; `findings` begins with the cause."""

    ref: ObjectPlace
    state: State
    word: str
    findings: tuple[Diagnosis, ...] = ()
    # worth knowing of something that works
    hints: tuple[Diagnosis, ...] = ()
    blind: tuple[tuple[Ask, str], ...] = ()
    # why this is no all-clear although nothing was found
    gaps: tuple[str, ...] = ()

    @property
    def cause(self) -> Diagnosis | None:
        """The first of the causes."""
        return self.findings[0] if self.findings else None


def explain(scene: ObjectSnapshot, start: ObjectPlace) -> Explanation:
    """Return the explanation of an object's state. The object has to be in the scene."""
    nodes = walk(scene, start)
    view = RuleView(scene, nodes, [each for node in nodes for each in sayings.of(scene, node)])
    rules = every()
    found = _ranked([*reported.matched(WORDS, rules, view), *(each for name, search in LOOKING for each in search(rules[name], view))])
    judged = _judged(scene, start)
    causes = [each for each in found if each.mood != "hint"]
    if judged.state in ("good", "off"):
        # What failed on the way to something that works is over; only what is wrong now counts.
        causes = [each for each in causes if _counts(each, start)]
    hints = tuple(each for each in found if each.mood == "hint" and each.rank is not CauseDepth.TOLD)
    blind = tuple(sorted(scene.blind.items(), key=str))
    state = _state(judged, causes)
    gaps = tuple(_gaps(judged, hints, blind)) if state == "good" else ()
    return Explanation(
        ref=start,
        state="unknown" if gaps else state,
        word=judged.word,
        findings=tuple(causes),
        hints=hints,
        blind=blind,
        gaps=gaps,
    )


def _gaps(judged: verdict.ObjectVerdict, hints: Sequence[Diagnosis], blind: Sequence[tuple[Ask, str]]) -> Iterator[str]:
    """Yield the things that nothing checked, which an all-clear would cover."""
    if judged.state == "unknown":
        yield "its state (it has no condition Ready, and no rule knows its kind)"
    yield from (GAPS[each.rule] for each in hints if each.rule in GAPS)
    if kinds := sorted({"events" if isinstance(asked, EventQuery) else f"{asked.kind}s" for asked, _ in blind}):
        yield f"{', '.join(kinds)} (your rights do not reach there)"


def _judged(scene: ObjectSnapshot, start: ObjectPlace) -> verdict.ObjectVerdict:
    """The verdict on the object. A machine at rest whose last run failed did not stop because somebody wanted it."""
    found = verdict.of(start, scene.objects.get(start) or {})
    instance = scene.objects.get(ObjectPlace(*INSTANCE, start.namespace, start.name))
    if start.id == MACHINE and found.state == "off" and texts(instance, "status", "phase") == "Failed":
        return verdict.ObjectVerdict("bad", "has stopped")
    polls = kinddiagnosis.of(start.id).polls
    return _of_provider(scene, start, found, polls) if polls is not None and found.state in ("good", "off") else found


def _of_provider(
    scene: ObjectSnapshot, start: ObjectPlace, object_verdict: verdict.ObjectVerdict, polls: tuple[float, float]
) -> verdict.ObjectVerdict:
    """The verdict on a machine of a Provider that is well by its Provider's last word. What KubeVirt says now of its own counts more."""
    made = at(scene.objects.get(start), "status", "provider")
    place = ObjectPlace(*MACHINE, texts(made, "namespace"), texts(made, "name"))
    if place in scene.objects:
        now = _judged(scene, place)
        return object_verdict if now.state in ("good", "off") else now
    running, off = polls
    seconds = off if object_verdict.state == "off" else running
    return verdict.ObjectVerdict(object_verdict.state, f"{object_verdict.word} (its Provider's word, up to {seconds // 60:g} minutes old)")


def _counts(finding: Diagnosis, start: ObjectPlace) -> bool:
    """Return whether a finding counts against an object that reports no problem itself."""
    if finding.mood == "notice":
        return finding.rank is not CauseDepth.TOLD or finding.rule == "crashed-lately"
    return (finding.rule in _OUTSIDE and finding.node.ref == start) or finding.rule in _BELOW


# What an object is not told of: others have it.
_OUTSIDE = ("service-without-machine", "port-taken")
# Where nobody looks after an object, its own word is an old one.
_BELOW = ("host-not-ready",)


def _state(judged: verdict.ObjectVerdict, causes: Sequence[Diagnosis]) -> State:
    if judged.state in ("good", "off"):
        return "notice" if causes else "good"
    if judged.state == "unknown" and not causes:
        return "good"
    if not causes:
        return "fails" if judged.state == "bad" else "waits"
    return {"fails": "fails", "waits": "waits", "notice": "notice", "hint": "good"}[causes[0].mood]  # type: ignore[return-value]


def _ranked(diagnosis: Sequence[Diagnosis]) -> list[Diagnosis]:
    """The cause first, each cause once. What works, only not as it should, may be what others wait for; it explains no failure."""
    fails = any(each.mood == "fails" and each.rank <= CauseDepth.TOLD and not _past(each) for each in diagnosis)
    return list(_once(sorted(diagnosis, key=lambda each: (fails and each.mood == "notice", *_key(each)))))


def _past(finding: Diagnosis) -> bool:
    """Return whether it is known by an event alone."""
    return finding.field.startswith("event ")


def _key(finding: Diagnosis) -> tuple[int, int, int, int, int, str]:
    # A root explains everything. Among texts, a failure explains a wait; the farthest object says it in its own words; and what
    # holds now goes before what events report.
    far = finding.node.depth if finding.rank is CauseDepth.ROOT else -finding.node.depth
    # Of two that are equally far, one that is named is there for others, too.
    made = 1 if finding.node.how == "made" else 0
    return (finding.rank, _ORDER[finding.mood], int(_past(finding)), far, made, finding.rule)


def _once(diagnosis: Sequence[Diagnosis]) -> Iterator[Diagnosis]:
    seen: set[str] = set()
    quotes: set[str] = set()
    for each in diagnosis:
        # An object's own words are no second cause where a rule has explained them.
        if each.rule not in seen and not (each.rule == _OWN_WORDS and each.quote in quotes):
            seen.add(each.rule)
            quotes.add(each.quote)
            yield each
