"""Rules that know a cause by what an object, its conditions and the events about it say: by reason codes first.

The first rule of the table that knows a text decides, so that one text is one cause. The same words on several
objects (a machine repeats what its disk says) are one cause, too: the one farthest from the object that was asked about.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from string import Formatter
from typing import Any, Literal

import msgspec

from paddock.fleet.diagnosis import sources
from paddock.fleet.diagnosis.rule import CauseDepth, Diagnosis, DiagnosisRule, Mood, RuleView
from paddock.fleet.diagnosis.sayings import Statement
from paddock.fleet.diagnosis.walk import WalkNode
from paddock.kubevirt.plan.instance import ends
from paddock.kubevirt.plan.instance.qemulog import legible

# What the scheduler's form of a message puts before the words that matter.
_BEFORE = re.compile(r"^0/\d+ nodes are available: (\d+ Insufficient \S+: )?(cannot start the machine on this host: )?")
# What every text may name.
GIVEN = frozenset(("kind", "name", "namespace", "message", "about", "address"))


class EventCause(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of rules.toml (its head explains the members). The first entry of an id has the title, the fix and the group."""

    id: str
    group: str = ""
    title: str = ""
    fix: str = ""
    cause: str = ""
    kinds: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    within: str = ""
    sentence: str = ""
    own: str = ""
    values: str = ""
    depth: Literal["said", "told", "vague"] = "said"
    mood: Mood = "fails"

    @property
    def matches(self) -> bool:
        """True if it recognizes a cause by a statement; looks find the others."""
        return bool(self.kinds or self.types or self.reasons or self.sentence or self.own)

    @property
    def placeholders(self) -> frozenset[str]:
        """The placeholders in its texts."""
        return frozenset(name for text in (self.fix, self.cause) for _, name, _, _ in Formatter().parse(text) if name)

    @property
    def offered(self) -> frozenset[str]:
        """The placeholders that its texts may use."""
        groups = (re.compile(each).groupindex for each in (self.within, self.sentence, self.own, self.values))
        return GIVEN.union(*groups)

    def knows(self, saying: Statement) -> Mapping[str, str] | None:
        """The values that a saying of this cause gives to the texts; None for other sayings."""
        group, kind = saying.node.ref.id
        if self.kinds and not {f"{kind}.{group}" if group else kind, f"*.{group}"} & set(self.kinds):
            return None
        if self.types and saying.type not in self.types:
            return None
        match = None
        if not any(code in self.reasons for code in saying.codes) or (self.within and not (match := _search(self.within, saying))):
            match = next((found for each in (self.sentence, self.own) if (found := _search(each, saying))), None)
            if match is None and (self.reasons or self.sentence or self.own):
                return None
        groups = (each.groupdict() for each in (match, _search(self.values, saying)) if each is not None)
        return {name: value or "" for each in groups for name, value in each.items()}


def _search(pattern: str, saying: Statement) -> "re.Match[str] | None":
    return None if not pattern else re.search(pattern, saying.text, re.IGNORECASE | re.DOTALL)


def matched(table: Sequence[EventCause], rules: Mapping[str, DiagnosisRule], view: RuleView) -> Iterator[Diagnosis]:
    """A finding for every saying that the table knows."""
    for saying in view.sayings:
        if saying.former:
            continue
        for entry in table:
            values = entry.knows(saying)
            if values is not None:
                yield _found(entry, rules[entry.id], saying, values)
                break


def _found(entry: EventCause, rule: DiagnosisRule, saying: Statement, values: Mapping[str, str]) -> Diagnosis:
    node = sources.written(saying.node)
    ref = node.ref
    said = legible(_BEFORE.sub("", ends.detail(saying.message or saying.reason)))
    given: dict[str, Any] = {
        "kind": ref.kind,
        "name": ref.name,
        "namespace": ref.namespace or "default",
        "message": said,
        "about": str(ref),
        "address": sources.address(node, said),
        **values,
    }
    # A sentence that lacks a name is none.
    cause = entry.cause if all(given.get(name) for _, name, _, _ in Formatter().parse(entry.cause) if name) else ""
    rank = CauseDepth[entry.depth.upper()]
    return Diagnosis(
        rule=entry.id,
        mood=entry.mood,
        rank=max(rank, CauseDepth.TOLD) if saying.kind == "event" else rank,
        node=node,
        cause=rule.filled(cause or rule.title, given),
        fix=rule.filled(entry.fix, given) + sources.afterwards(node),
        field=_field(saying, node),
        quote=saying.message or saying.reason,
        since=saying.since,
    )


def _field(saying: Statement, node: WalkNode) -> str:
    field = saying.field if saying.kind != "condition" else f"{saying.field}.{'message' if saying.message else 'reason'}"
    return field if node is saying.node else f"{field} of {saying.node.ref}"
