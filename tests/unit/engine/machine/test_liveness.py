"""A QEMU that is asked whether it answers, a process that is stopped, a guest that resets itself for ever."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from paddock.engine.machine import liveness
from paddock.engine.machine.directory import RunRecord
from paddock.engine.machine.errors import Unanswered
from paddock.engine.machine.host import Timeouts
from paddock.engine.machine.liveness import Liveness, silence
from paddock.engine.machine.observation import GuestFault, Observation
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.requests import Verb, admit
from paddock.engine.machine.timers import Timers
from tests import virtualtime
from tests.coroutines import played_by

TIMES = Timeouts()
RESET = ("RESET", {"guest": True, "reason": "guest-reset"})


class Qmp:
    """A monitor that answers while it may."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.answers.set()
        self.asked = 0
        self.closed = False

    async def execute(self, command: str, *, patience: float | None) -> dict[str, str]:
        assert (command, patience) == ("query-status", None)
        self.asked += 1
        await self.answers.wait()
        if self.closed:
            raise Unanswered("QEMU did not answer query-status", why="it is gone")
        return {"status": "running"}


class Fake:
    """An owner, as far as its liveness needs one."""

    def __init__(self) -> None:
        self.run = SimpleNamespace(qmp=Qmp(), process=SimpleNamespace(pid=7))
        self.timers = Timers()
        self.surroundings = SimpleNamespace(times=TIMES)
        self.directory = SimpleNamespace(serial_tail=lambda size: b"Kernel panic - not syncing: IO-APIC + timer\r\nReboot\r\n")
        self.record, self.observed = RunRecord(), Observation(phase="running", pid=7)
        self.busy = self.looks = 0
        self.log: list[str] = []
        self.liveness = Liveness(cast(MachineOwner, self))
        self.liveness.arm()

    def observe(self, **changes: Any) -> None:
        self.observed = replace(self.observed, **changes)
        self.log.append(self.observed.fault.reason if self.observed.fault is not None else "")

    def background(self, work: Any) -> "asyncio.Task[None]":
        return asyncio.create_task(work)

    async def look_at_status(self) -> None:
        self.looks += 1

    def tell(self, name: str, data: dict[str, Any]) -> None:
        self.liveness.follow(name, data)

    @property
    def reason(self) -> str:
        return self.observed.fault.reason if self.observed.fault is not None else ""


def perform(script: Callable[[Fake], Awaitable[None]]) -> None:
    async def inside() -> None:
        await script(Fake())

    virtualtime.run(inside())


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The state of the process, which a test may replace."""
    found = ["S"]
    monkeypatch.setattr(liveness, "state_of", lambda pid: found[0])
    return found


@pytest.mark.parametrize(
    ("seconds", "letter", "reason"),
    [
        (5.0, "S", ""),
        (19.9, "R", ""),
        (20.0, "S", "MonitorUnresponsive"),
        (20.0, "D", "MonitorUnresponsive"),
        (5.0, "T", "ProcessStopped"),
        (5.0, "t", "ProcessStopped"),
        # Gone just now: its end tells more.
        (5.0, "", ""),
    ],
)
def test_what_silence_means(seconds: float, letter: str, reason: str) -> None:
    found = silence(seconds, letter, 20.0)
    assert (found.reason if found is not None else "") == reason
    # The same cause, the same words, however long it takes.
    assert found is None or found == silence(seconds + 1000, letter, 20.0)


@played_by(perform)
async def test_a_monitor_that_answers_is_asked_seldom(fake: Fake, /, state: list[str]) -> None:
    await asyncio.sleep(3600)
    assert fake.run.qmp.asked == 3600 / TIMES.beat - 1
    assert fake.log == []


@pytest.mark.spec("kubevirt", 113)
@played_by(perform)
async def test_a_stopped_process_is_seen_within_a_quarter_of_a_minute_and_its_going_on_too(fake: Fake, /, state: list[str]) -> None:
    state[0] = "T"
    fake.run.qmp.answers.clear()
    await asyncio.sleep(TIMES.beat + TIMES.suspicion)
    await asyncio.sleep(0)
    assert fake.reason == "ProcessStopped"
    await asyncio.sleep(3600)
    # One question waits; a hundred would be answered one after another.
    assert fake.run.qmp.asked == 1
    state[0] = "S"
    fake.run.qmp.answers.set()
    await asyncio.sleep(0.1)
    assert fake.reason == "" and fake.looks == 1
    await asyncio.sleep(60)
    assert fake.run.qmp.asked > 3 and fake.reason == ""


@played_by(perform)
async def test_a_monitor_that_hangs_is_not_one_that_is_slow(fake: Fake, /, state: list[str]) -> None:
    fake.run.qmp.answers.clear()
    await asyncio.sleep(TIMES.beat + TIMES.silence - 1)
    assert fake.reason == ""
    await asyncio.sleep(TIMES.suspicion)
    assert fake.reason == "MonitorUnresponsive"


@played_by(perform)
async def test_while_it_does_something_long_for_us_only_a_stopped_process_counts(fake: Fake, /, state: list[str]) -> None:
    fake.busy = 1
    fake.run.qmp.answers.clear()
    await asyncio.sleep(600)
    assert fake.reason == ""
    state[0] = "T"
    await asyncio.sleep(TIMES.suspicion)
    assert fake.reason == "ProcessStopped"


@played_by(perform)
async def test_a_lost_connection_is_no_answer_and_a_new_one_is_asked(fake: Fake, /, state: list[str]) -> None:
    old = fake.run.qmp
    old.answers.clear()
    await asyncio.sleep(TIMES.beat + TIMES.silence + TIMES.suspicion)
    assert fake.reason == "MonitorUnresponsive"
    old.closed, fake.run.qmp = True, None
    old.answers.set()
    fake.liveness.unreachable()
    await asyncio.sleep(60)
    assert fake.reason == "MonitorUnresponsive"
    fake.run.qmp = Qmp()
    await asyncio.sleep(TIMES.beat)
    assert fake.reason == ""


@played_by(perform)
async def test_an_unanswered_command_is_looked_into_at_once(fake: Fake, /, state: list[str]) -> None:
    state[0] = "T"
    fake.run.qmp.answers.clear()
    fake.liveness.suspect()
    assert fake.reason == "ProcessStopped"


@played_by(perform)
async def test_one_that_is_being_killed_is_not_reported(fake: Fake, /, state: list[str]) -> None:
    fake.record = RunRecord(evidence=("killed",))
    fake.run.qmp.answers.clear()
    await asyncio.sleep(600)
    assert fake.log == []


@pytest.mark.spec("kubevirt", 114)
@played_by(perform)
async def test_a_guest_that_resets_itself_for_ever_is_seen_with_its_panic(fake: Fake, /, state: list[str]) -> None:
    for _ in range(TIMES.resets - 1):
        fake.tell(*RESET)
        await asyncio.sleep(30)
    assert fake.reason == ""
    fake.tell(*RESET)
    assert fake.observed.fault is not None and fake.reason == "GuestRebootLoop"
    assert '"Kernel panic - not syncing: IO-APIC + timer"' in fake.observed.fault.message
    said = fake.observed.fault
    await asyncio.sleep(60)
    fake.tell(*RESET)
    # Nothing new is said while it goes on.
    assert fake.observed.fault is said
    fake.tell("VSERPORT_CHANGE", {"id": "agent0", "open": True})
    assert fake.reason == ""


@pytest.mark.parametrize(
    "between",
    [
        ("VSERPORT_CHANGE", {"id": "agent0", "open": True}, 1.0),
        ("", {}, 1.0),
        # It is up for longer than any boot takes.
        ("NIC_RX_FILTER_CHANGED", {}, TIMES.boot),
    ],
)
@played_by(perform)
async def test_a_guest_that_gets_up_in_between_may_reset_itself_often(
    fake: Fake, /, state: list[str], between: tuple[str, dict[str, Any], float]
) -> None:
    for _ in range(3 * TIMES.resets):
        fake.tell(*RESET)
        name, data, pause = between
        fake.tell(name, data)
        await asyncio.sleep(pause)
    assert fake.log == []


@played_by(perform)
async def test_a_reset_from_outside_is_no_loop(fake: Fake, /, state: list[str]) -> None:
    for _ in range(3 * TIMES.resets):
        fake.tell("RESET", {"guest": False, "reason": "host-qmp-system-reset"})
    assert fake.log == []


def test_a_console_without_a_panic() -> None:
    assert "console tells more" in liveness.loop(b"BIOS\r\n")


@pytest.mark.parametrize("verb", [Verb.PAUSE, Verb.RESUME, Verb.RESET, Verb.PRESS, Verb.RENEW, Verb.CHANGE, Verb.LOOK])
def test_a_silent_qemu_is_told_nothing_that_it_would_do_later(verb: Verb) -> None:
    silent = Observation(phase="running", fault=GuestFault("ProcessStopped", "QEMU does not answer."))
    with pytest.raises(Unanswered, match="it was not told"):
        admit(verb, silent, "a")


def test_a_silent_qemu_is_stopped_and_a_guest_in_a_loop_is_reset() -> None:
    assert admit(Verb.STOP, Observation(phase="running", fault=GuestFault("MonitorUnresponsive", "")), "a")
    assert admit(Verb.RESET, Observation(phase="running", fault=GuestFault("GuestRebootLoop", "")), "a")
