"""The reasons of events and the types of conditions that controllers write in tests: each must be declared for the reference."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from paddock.kubernetes.runtime import statuses
from paddock.kubernetes.runtime.recorder import Recorder
from tools.referencepages import reported


@cache
def declared_events() -> frozenset[tuple[str, str]]:
    """Return type and reason of every event of docs/reference/events.md."""
    found = {("Normal", reason) for each in reported.events().values() for reason in each.normal}
    found |= {("Warning", reason) for each in reported.events().values() for reason in each.warning}
    return frozenset(found | {("Warning", code) for code in reported.codes()})


@cache
def declared_conditions() -> frozenset[str]:
    """Return every type of docs/reference/conditions.md."""
    return frozenset(type_ for each in reported.conditions().values() for type_ in each.conditions)


@pytest.fixture
def reported_words(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fails a test in which a controller writes an event or a condition that the reference does not have."""
    undeclared: set[tuple[str, ...]] = set()
    tell, difference = Recorder.tell, statuses._difference

    def told(recorder: Recorder, about: Any, kind: str, reason: str, note: str, **more: Any) -> None:
        if (kind, reason) not in declared_events():
            undeclared.add((about.kind, kind, reason))
        tell(recorder, about, kind, reason, note, **more)

    def compared(before: Any, wanted: Any) -> Any:
        change = difference(before, wanted)
        for each in change.get("conditions") or ():
            if each["type"] not in declared_conditions():
                undeclared.add((each["type"], each.get("reason") or ""))
        return change

    monkeypatch.setattr(Recorder, "tell", told)
    monkeypatch.setattr(statuses, "_difference", compared)
    yield
    assert sorted(undeclared) == [], "declare them in tools/referencepages/events.toml or conditions.toml"
