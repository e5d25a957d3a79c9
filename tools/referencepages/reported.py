"""docs/reference/events.md and conditions.md, from the tables beside this module."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from paddock.base import reasons
from paddock.fleet.diagnosis.table import UNRULED, WORDS
from paddock.kubernetes.schema.generate import reference
from paddock.kubevirt.translate.limits import Code, Weight
from tools.referencepages.tables import table

_FOLDER = Path(__file__).parent
_EVENTS = f"""# Events

{reference.HEADER}

Every reason of the events that Paddock's controllers write, by the kind that an event is about. `paddock events NAME` shows the events of a
machine and of what belongs to it. A warning may also have one of the [reason codes](#reason-codes).
"""
_CODES = """## Reason codes

One word for one cause. It is the reason of an event of type Warning, or of a condition that is False.
[`paddock why`](why.md) names the fix.
"""
_CONDITIONS = f"""# Conditions

{reference.HEADER}

Every type of the conditions that Paddock's controllers write into `status.conditions`, by kind, and what it means when it is True. The
reason of a condition that is False is one of the [reason codes](events.md#reason-codes), or a word that the kind's specification gives.
"""


class KindEvents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The events about a kind, or about several that share them: meanings by reason."""

    title: str
    text: str = ""
    normal: Mapping[str, str] = msgspec.field(default_factory=dict, name="Normal")
    warning: Mapping[str, str] = msgspec.field(default_factory=dict, name="Warning")


class KindConditions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The conditions of a kind, or of several that share them: meanings by type."""

    title: str
    conditions: Mapping[str, str]
    text: str = ""


def events() -> Mapping[str, KindEvents]:
    """Return the declared events."""
    return msgspec.toml.decode((_FOLDER / "events.toml").read_bytes(), type=dict[str, KindEvents])


def conditions() -> Mapping[str, KindConditions]:
    """Return the declared conditions."""
    return msgspec.toml.decode((_FOLDER / "conditions.toml").read_bytes(), type=dict[str, KindConditions])


def codes() -> Mapping[str, str]:
    """Return the reason codes, those of limits of machines included, each with the title of its rule, or why it has none."""
    titles: dict[str, str] = {}
    for entry in WORDS:
        for code in entry.reasons:
            titles.setdefault(code, entry.title)
    limits = {each.reason for each in Code if each.weight is not Weight.NOTE}
    return {code: titles.get(code) or UNRULED[code] for code in sorted(reasons.codes() | limits)}


def events_page() -> str:
    """Return the page of events."""
    return "\n".join([_EVENTS, *_events(), _CODES, *table(("reason", "meaning"), [(f"`{code}`", text) for code, text in codes().items()])])


def _events() -> Iterator[str]:
    for each in events().values():
        yield from _head(each.title, each.text)
        rows = [(f"`{reason}`", "Normal", text) for reason, text in sorted(each.normal.items())]
        rows += [(f"`{reason}`", "Warning", text) for reason, text in sorted(each.warning.items())]
        yield from table(("reason", "type", "meaning"), rows)


def conditions_page() -> str:
    """Return the page of conditions."""
    return "\n".join([_CONDITIONS, *_conditions()])


def _conditions() -> Iterator[str]:
    for each in conditions().values():
        yield from _head(each.title, each.text)
        yield from table(("type", "meaning"), [(f"`{type_}`", text) for type_, text in sorted(each.conditions.items())])


def _head(title: str, text: str) -> Iterator[str]:
    yield f"## {title}\n"
    if text:
        yield f"{text}\n"
