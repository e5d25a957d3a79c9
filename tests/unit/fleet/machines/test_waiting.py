"""The states of machines that commands wait for."""

import asyncio

import pytest

from paddock.fleet.kinds import VM
from paddock.fleet.machines import finding, waiting
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.waiting import MachineWaiter
from paddock.kubernetes.client.errors import Unreachable
from tests import virtualtime
from tests.unit.fleet.machines.examples import vm, vmi


@pytest.mark.parametrize(
    ("phase", "deleted", "stopped"),
    [
        ("Running", False, False),
        ("Running", True, False),
        ("Succeeded", False, True),
        # A restore that came now would find an instance.
        ("Succeeded", True, False),
        ("Failed", True, False),
    ],
)
def test_a_machine_has_stopped_when_its_instance_is_not_on_its_way_out(phase: str, deleted: bool, stopped: bool) -> None:
    machine, run = vm(), vmi(phase=phase)
    if deleted:
        run["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert waiting.is_stopped(MachineView(kind=VM, data=machine, vm=machine, vmi=run)) is stopped


def test_without_an_instance_it_has_stopped() -> None:
    machine = vm()
    assert waiting.is_stopped(MachineView(kind=VM, data=machine, vm=machine))
    assert waiting.is_stopped(None)


def wait(monkeypatch: pytest.MonkeyPatch, silent: tuple[float, float], seconds: float) -> float:
    """Wait for a stop that comes after 100 s, with a server that is silent for some time; return when the wait ended."""

    async def find(*_: object) -> MachineView:
        now, machine = asyncio.get_running_loop().time(), vm()
        if silent[0] <= now < silent[1]:
            raise Unreachable("cannot connect to the source https://there", sent=False)
        return MachineView(kind=VM, data=machine, vm=machine, vmi=None if now >= 100 else vmi(phase="Running"))

    async def script() -> None:
        waiter = MachineWaiter(None, virtualtime.Clock(), lambda line: None)  # type: ignore[arg-type]
        if silent[1] > seconds:
            with pytest.raises(Unreachable, match="cannot connect to the source"):
                await waiter.until(await find(), waiting.is_stopped, seconds, "stopped")
        else:
            await waiter.until(await find(), waiting.is_stopped, seconds, "stopped")

    monkeypatch.setattr(finding, "find", find)
    return virtualtime.run(script())


def test_a_server_that_restarts_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 100 <= wait(monkeypatch, (10, 60), 300) < 102


@pytest.mark.parametrize(("seconds", "ended"), [(300, 70), (30, 30)])
def test_a_server_that_answers_no_more_ends_the_wait(monkeypatch: pytest.MonkeyPatch, seconds: float, ended: float) -> None:
    assert ended - 1 <= wait(monkeypatch, (10, 1000), seconds) <= ended + 1
