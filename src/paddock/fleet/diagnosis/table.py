"""All rules: rules.toml, read once, and the functions that look for what nobody says."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from paddock.fleet.diagnosis import boots, disks, fronts, guests, hosts, objects, operations
from paddock.fleet.diagnosis.reported import EventCause
from paddock.fleet.diagnosis.rule import DiagnosisRule, Look


class CauseTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of rules.toml: the entries in the order in which they are tried, and the groups of the page of all causes."""

    groups: tuple[str, ...]
    rule: tuple[EventCause, ...]
    # reason codes of Paddock that need no rule, and why
    unruled: Mapping[str, str]
    # reason codes of rules that only others write, and who
    foreign: Mapping[str, str]


def _whole(entries: tuple[EventCause, ...]) -> Iterator[EventCause]:
    """A later entry of an id has what the first one has and it does not."""
    first: dict[str, EventCause] = {}
    for each in entries:
        head = first.setdefault(each.id, each)
        yield msgspec.structs.replace(each, group=head.group, title=head.title, fix=each.fix or head.fix, mood=head.mood)


_TABLE = msgspec.toml.decode(Path(__file__).with_name("rules.toml").read_bytes(), type=CauseTable)
ENTRIES: tuple[EventCause, ...] = tuple(_whole(_TABLE.rule))
UNRULED: Mapping[str, str] = _TABLE.unruled
FOREIGN: Mapping[str, str] = _TABLE.foreign
# The entries that match words, in the order in which `why` tries them.
WORDS: tuple[EventCause, ...] = tuple(each for each in ENTRIES if each.matches)
_RULES: Mapping[str, DiagnosisRule] = {
    each.id: DiagnosisRule(id=each.id, title=each.title, template=each.fix, group=each.group, mood=each.mood) for each in reversed(ENTRIES)
}
# The functions that look, each with the cause that it looks for.
LOOKING: tuple[tuple[str, Look], ...] = tuple(
    pair for module in (objects, disks, boots, hosts, guests, operations, fronts) for pair in module.LOOKS.items()
)


def every() -> Mapping[str, DiagnosisRule]:
    """The rules by id. A cause that is known by words and by looking is one."""
    return _RULES


# The causes by what they are about, for people.
GROUPS: Mapping[str, tuple[str, ...]] = {
    title: tuple(dict.fromkeys(each.id for each in ENTRIES if each.group == title)) for title in _TABLE.groups
}
