"""The way of a machine to a usable guest, and the time that each phase takes."""

from typing import Any

import pytest

from paddock.fleet.creation import readiness
from paddock.fleet.creation.readiness import GuestView, Phase, Timings

VM = {"status": {"printableStatus": "Starting"}}
READY = {"status": {"phase": "Succeeded"}}
RUNNING = {"status": {"phase": "Running", "interfaces": [{}, {"ipAddress": "10.0.0.5"}]}}
CONNECTED = {"status": {"phase": "Running", "conditions": [{"type": "AgentConnected", "status": "True"}]}}
UNPREPARED = {
    "status": {"phase": "Scheduling", "conditions": [{"type": "Synchronized", "status": "False", "message": "no such directory"}]}
}

WAYS: dict[str, tuple[GuestView, Phase]] = {
    "a front is not translated yet": (GuestView(), "making"),
    "no disk yet": (GuestView(vm=VM), "making"),
    "the image comes": (GuestView(vm=VM, volumes=({"status": {"phase": "ImportInProgress", "progress": "41.5%"}},)), "image"),
    "the image has no length": (GuestView(vm=VM, volumes=({"status": {"phase": "ImportScheduled", "progress": "N/A"}},)), "image"),
    "the disk is there": (GuestView(vm=VM, volumes=(READY,)), "starting"),
    "the process starts": (GuestView(vm=VM, vmi={"status": {"phase": "Scheduled"}}, volumes=(READY,)), "starting"),
    "an address is no answer": (GuestView(vm=VM, vmi=RUNNING), "booting"),
    "the agent is connected": (GuestView(vm=VM, vmi=CONNECTED), "usable"),
    "its ssh server answers": (GuestView(vm=VM, vmi=RUNNING, answers=True), "usable"),
    "it ended": (GuestView(vm=VM, vmi={"status": {"phase": "Failed"}}), "ended"),
    "no room for it": (GuestView(vm={"status": {"printableStatus": "ErrorUnschedulable"}}, volumes=(READY,)), "trouble"),
    "the server cannot start it": (GuestView(vm=VM, vmi=UNPREPARED, volumes=(READY,)), "trouble"),
    "its disk cannot be made": (
        GuestView(vm={"status": {"printableStatus": "DataVolumeError"}}, volumes=({"status": {"phase": "ImportInProgress"}},)),
        "trouble",
    ),
}


@pytest.mark.parametrize(("seen", "phase"), WAYS.values(), ids=WAYS)
def test_phases(seen: GuestView, phase: Phase) -> None:
    found = readiness.standing(seen)
    assert (found.phase, found.is_final) == (phase, phase in ("usable", "ended"))


def test_the_progress_of_an_image() -> None:
    def at(progress: Any) -> float | None:
        volume = {"status": {"phase": "ImportInProgress", "progress": progress}}
        return readiness.standing(GuestView(vm=VM, volumes=(volume,))).fraction

    assert (at("41.5%"), at("100.0%"), at("N/A"), at(None)) == (0.415, 1.0, None, None)


def test_the_address() -> None:
    assert (readiness.address(RUNNING), readiness.address(CONNECTED), readiness.address(None)) == ("10.0.0.5", "", "")


def test_timings_tell_our_own_share_from_the_images_and_the_guests() -> None:
    timings = Timings(10.0)
    for phase, now in (("making", 10.2), ("image", 10.3), ("image", 11.0), ("starting", 13.3), ("booting", 13.5), ("usable", 17.5)):
        timings.enter(phase, now)  # type: ignore[arg-type]  # a table of phases
    assert [line.split("  ")[0] for line in timings.lines()] == [
        "server's answer", "machine and disk", "image", "process start", "guest's boot", "together", "Paddock's own share",
    ]  # fmt: skip
    assert timings.lines()[-2:] == ["together               7.50 s", "Paddock's own share    0.50 s"]
