"""Conditions after a look: times of transitions, order, and no difference where there is none."""

from paddock.kubernetes.meta.conditions import Condition, holds, settled

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"
READY = Condition(type="Ready", status="True", reason="Up", lastTransitionTime=THEN)
OTHER = Condition(type="Theirs", status="False", lastTransitionTime=THEN)


def test_nothing_differs_when_nothing_changed() -> None:
    before = [READY, OTHER]
    assert settled(before, [Condition(type="Ready", status="True", reason="Up")], NOW) == before


def test_a_transition_has_its_time_and_another_reason_has_none() -> None:
    (same, _) = settled([READY, OTHER], [Condition(type="Ready", status="True", reason="StillUp")], NOW)
    assert (same.reason, same.lastTransitionTime) == ("StillUp", THEN)
    (down, _) = settled([READY, OTHER], [Condition(type="Ready", status="False", reason="Down")], NOW)
    assert (down.status, down.lastTransitionTime) == ("False", NOW)


def test_new_ones_come_last() -> None:
    found = settled(None, [Condition(type="A", status="True"), Condition(type="B", status="Unknown")], NOW)
    assert [(each.type, each.lastTransitionTime) for each in found] == [("A", NOW), ("B", NOW)]
    assert [each.type for each in settled(found, [READY], NOW)] == ["A", "B", "Ready"]


def test_holds() -> None:
    assert holds([READY, OTHER], "Ready")
    assert not holds([READY, OTHER], "Theirs")
    assert not holds(None, "Ready")


def test_a_reason_that_is_too_long_is_cut() -> None:
    (found,) = settled(None, [Condition(type="A", status="True", reason="x" * 2000)], NOW)
    assert found.reason == "x" * 1024
