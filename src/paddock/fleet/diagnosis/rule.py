"""A cause, how it is found, and what it says."""

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Any, Literal, NamedTuple

import msgspec

from paddock.fleet.diagnosis.sayings import Statement
from paddock.fleet.diagnosis.scene import ObjectSnapshot
from paddock.fleet.diagnosis.walk import WalkNode

# fails: it stays so until somebody does something; waits: it goes on by itself; notice: it works, but not as it should;
# hint: it works, and this is worth knowing
Mood = Literal["fails", "waits", "notice", "hint"]


class CauseDepth(IntEnum):
    """The distance of a finding from the root: smaller is nearer."""

    # a fact that explains everything above it: what is named is not there
    ROOT = 0
    # an object says what is wrong with it, now
    SAID = 1
    # the text is old
    TOLD = 2
    # something is wrong, and nobody says what
    VAGUE = 3
    # words that no rule knows
    UNKNOWN = 4


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """A cause. `field` and `quote` are the evidence: what was read there, of the object `node`."""

    rule: str
    mood: Mood
    rank: CauseDepth
    node: WalkNode
    cause: str
    fix: str
    field: str = ""
    quote: str = ""
    since: float | None = None


class Evidence(NamedTuple):
    """A quote, the field that holds it, and its date."""

    field: str = ""
    quote: str = ""
    since: float | None = None


_NOTHING = Evidence()


class RuleView(msgspec.Struct, frozen=True):
    """The input of rules: the objects on the way, and all their statements."""

    scene: ObjectSnapshot
    nodes: Sequence[WalkNode]
    sayings: Sequence[Statement]

    @property
    def start(self) -> WalkNode:
        """The object that was asked about."""
        return self.nodes[0]


class _Names(dict[str, str]):
    """The placeholders of a text that names no object yet."""

    def __missing__(self, key: str) -> str:
        return {"address": "the image's address", "file": "the file"}.get(key, key.upper())


class DiagnosisRule(msgspec.Struct, frozen=True, kw_only=True):
    """One cause. `title` and `fix` are what the guide lists; `template` is the fix with its placeholders."""

    id: str
    title: str
    template: str
    group: str
    mood: Mood = "fails"

    @property
    def fix(self) -> str:
        """The fix of an object that is not named."""
        return self.template.format_map(_Names())

    def found(
        self, node: WalkNode, cause: str = "", *, fix: str = "", rank: CauseDepth = CauseDepth.ROOT, seen: Evidence = _NOTHING
    ) -> Diagnosis:
        """A finding of this rule."""
        return Diagnosis(
            rule=self.id,
            mood=self.mood,
            rank=rank,
            node=node,
            cause=cause or self.title,
            fix=fix or self.filled(self.template, {"name": node.ref.name, "namespace": node.ref.namespace}),
            field=seen.field,
            quote=seen.quote,
            since=seen.since,
        )

    def filled(self, text: str, values: dict[str, Any]) -> str:
        """The text with its placeholders; the names of those that have no value."""
        return text.format_map(_Names({name: value for name, value in values.items() if value}))


Look = Callable[[DiagnosisRule, RuleView], Iterator[Diagnosis]]
