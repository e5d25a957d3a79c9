"""Rules that know a cause by words: of an object, of its conditions, of the events about it.

A saying is given to the first rule of the table that knows it, so that what is said once is one cause. The same words on several
objects (a machine repeats what its disk says) are one cause, too: the one farthest from the object that was asked about.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from paddock.cli.diagnosis import sources
from paddock.cli.diagnosis.rule import CauseDepth, Diagnosis, DiagnosisRule, Mood, RuleView
from paddock.cli.diagnosis.sayings import Statement
from paddock.plan.changes.references import KindId
from paddock.plan.instance.qemulog import legible

# What stands before the words that matter: an event's, a scheduler's on a single host.
_BEFORE = re.compile(
    r"^(The VirtualMachineInstance crashed\. [\w-]+: |0/1 nodes are available: (cannot start the machine on this host: )?)"
)


class EventCause(msgspec.Struct, frozen=True, kw_only=True):
    """A cause and how it is known: `text` is looked for in reason and message, `reason` and `type` are compared whole.

    `cause` and `how` may use the named groups of `text`, {kind}, {name}, {namespace}, {message} and {about} of the object, and {address},
    the field that leads to its image.
    """

    id: str
    title: str
    fix: str
    text: str = ""
    reason: tuple[str, ...] = ()
    type: tuple[str, ...] = ()
    of: tuple[KindId, ...] = ()
    cause: str = ""
    how: str = ""
    mood: Mood = "fails"
    rank: CauseDepth = CauseDepth.SAID

    def knows(self, saying: Statement) -> "re.Match[str] | None":
        """Whether a saying is of this cause."""
        if self.of and saying.node.ref.id not in self.of:
            return None
        if self.reason and saying.reason not in self.reason:
            return None
        if self.type and saying.type not in self.type:
            return None
        return re.search(self.text, saying.text, re.IGNORECASE | re.DOTALL)


def rules(table: Sequence[EventCause]) -> Iterator[DiagnosisRule]:
    """The rules of a table of words."""
    for each in table:
        yield DiagnosisRule(id=each.id, title=each.title, fix=each.fix, mood=each.mood, look=_nothing)


def _nothing(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """Words are matched all together, by `matched`."""
    return iter(())


def matched(table: Sequence[EventCause], view: RuleView) -> Iterator[Diagnosis]:
    """A finding for every saying that the table knows."""
    for saying in view.sayings:
        if saying.former:
            continue
        for words in table:
            match = words.knows(saying)
            if match is not None:
                yield _found(words, saying, match)
                break


def _found(words: EventCause, saying: Statement, match: "re.Match[str]") -> Diagnosis:
    ref = saying.node.ref
    groups: dict[str, Any] = {name: value or "" for name, value in match.groupdict().items()}
    said = legible(_BEFORE.sub("", saying.message or saying.reason))
    given = {
        "kind": ref.kind,
        "name": ref.name,
        "namespace": ref.namespace or "default",
        "message": said,
        "about": str(ref),
        "address": sources.address(saying.node, said),
        **groups,
    }
    rank = max(words.rank, CauseDepth.TOLD) if saying.kind == "event" else words.rank
    return Diagnosis(
        rule=words.id,
        mood=words.mood,
        rank=rank,
        node=saying.node,
        cause=(words.cause or words.title).format_map(given),
        fix=(words.how or words.fix.replace("NAME", ref.name)).format_map(given) + sources.afterwards(saying.node),
        field=saying.field if saying.kind != "condition" else f"{saying.field}.{'message' if saying.message else 'reason'}",
        quote=saying.message or saying.reason,
        since=saying.since,
    )
