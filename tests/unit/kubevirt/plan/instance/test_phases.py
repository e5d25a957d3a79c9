"""The phases of a machine: where it stands, in order, with the times they began."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.engine.machine.observation import EndReason, Observation, Phase, RunEnd
from paddock.kubevirt.plan.instance import phases


@pytest.mark.parametrize(
    ("reason", "acpi", "phase"),
    [
        ("guest-shutdown", True, "Succeeded"),
        ("guest-reboot", True, "Succeeded"),
        ("killed", True, "Failed"),
        ("killed", False, "Succeeded"),
        ("crashed", True, "Failed"),
        ("crashed", False, "Failed"),
        ("panicked", True, "Failed"),
        ("watchdog", True, "Failed"),
        ("internal-error", True, "Failed"),
        ("never-started", True, "Failed"),
        ("host-reboot", True, "Failed"),
    ],
)
def test_ends(reason: EndReason, acpi: bool, phase: str) -> None:
    seen = Observation(phase="ended", end=RunEnd(reason))
    assert phases.phase_of("Running", seen, acpi=acpi, prepared=True) == phase


def test_a_machine_goes_through_all_phases() -> None:
    looks = (
        (None, False),
        (Observation(phase="defined"), True),
        (Observation(phase="queued"), True),
        (Observation(phase="running"), True),
        (Observation(phase="stopping"), True),
        (Observation(phase="ended", end=RunEnd("guest-shutdown")), True),
    )
    phase, seen = "", []
    for observed, prepared in looks:
        phase = phases.phase_of(phase, observed, acpi=True, prepared=prepared)
        seen.append(phase)
    assert seen == ["Pending", "Scheduling", "Scheduled", "Running", "Running", "Succeeded"]


def test_phases_that_were_passed_between_two_looks_have_their_times() -> None:
    one = phases.transitions(None, "Pending", "t0")
    two = phases.transitions(one, "Running", "t1")
    three = phases.transitions(two, "Failed", "t2")
    assert [(each.phase, each.phaseTransitionTimestamp) for each in three] == [
        ("Pending", "t0"),
        ("Scheduling", "t1"),
        ("Scheduled", "t1"),
        ("Running", "t1"),
        ("Failed", "t2"),
    ]


@pytest.mark.parametrize(
    ("milestones", "listed"),
    [
        ((), ["Pending", "Failed"]),
        (("ended",), ["Pending", "Failed"]),
        (("queued", "ended"), ["Pending", "Scheduling", "Scheduled", "Failed"]),
        (("queued", "started", "running", "ended"), ["Pending", "Scheduling", "Scheduled", "Running", "Failed"]),
    ],
)
def test_what_ended_between_two_looks_lists_what_it_reached(milestones: tuple[str, ...], listed: list[str]) -> None:
    found = phases.transitions(phases.transitions(None, "Pending", "t0"), "Failed", "t1", milestones)
    assert [each.phase for each in found] == listed


PHASES: st.SearchStrategy[Phase] = st.sampled_from(("defined", "queued", "starting", "running", "stopping", "ended"))


@given(st.lists(st.tuples(PHASES, st.booleans()), max_size=12))
def test_no_phase_is_gone_back_to_and_what_is_final_stays(looks: list[tuple[Phase, bool]]) -> None:
    order = ["Pending", "Scheduling", "Scheduled", "Running", "Succeeded", "Failed"]
    phase, seen = "", []
    for name, prepared in looks:
        end = RunEnd("crashed") if name == "ended" else None
        phase = phases.phase_of(phase, Observation(phase=name, end=end), acpi=True, prepared=prepared)
        seen.append(phase)
    ranks = [order.index(each) for each in seen]
    assert all(a <= b for a, b in itertools.pairwise(ranks))
    assert len({each for each in seen if each in phases.FINAL}) <= 1
