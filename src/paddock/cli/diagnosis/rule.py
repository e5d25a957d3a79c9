"""What a rule is, and what it finds."""

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Literal, NamedTuple

import msgspec

from paddock.cli.diagnosis.sayings import Statement
from paddock.cli.diagnosis.scene import ObjectSnapshot
from paddock.cli.diagnosis.walk import WalkNode

# fails: it stays so until somebody does something; waits: it goes on by itself; notice: it works, but not as it should;
# hint: it works, and this is worth knowing
Mood = Literal["fails", "waits", "notice", "hint"]


class CauseDepth(IntEnum):
    """How near a finding is to the root: smaller is nearer."""

    # a fact that explains everything above it: what is named is not there
    ROOT = 0
    # an object says what is wrong with it, now
    SAID = 1
    # it was said some time ago
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
    """What was read where, and since when it is so."""

    field: str = ""
    quote: str = ""
    since: float | None = None


_NOTHING = Evidence()


class RuleView(msgspec.Struct, frozen=True):
    """What rules look at: the objects on the way, and all that they say."""

    scene: ObjectSnapshot
    nodes: Sequence[WalkNode]
    sayings: Sequence[Statement]

    @property
    def start(self) -> WalkNode:
        """The object that was asked about."""
        return self.nodes[0]


Look = Callable[["DiagnosisRule", RuleView], Iterator[Diagnosis]]


class DiagnosisRule(msgspec.Struct, frozen=True, kw_only=True):
    """One cause. `title` and `fix` are what the guide lists; `look` finds it."""

    id: str
    title: str
    fix: str
    look: Look
    mood: Mood = "fails"

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
            fix=fix or self.fix.replace("NAME", node.ref.name),
            field=seen.field,
            quote=seen.quote,
            since=seen.since,
        )
