"""New processors that the firmware waits for, where QEMU emulates them."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from paddock.engine.machine.arrivals import CpuArrivals, waits
from paddock.engine.machine.errors import Unanswered
from paddock.engine.machine.owner import MachineOwner
from tests import virtualtime
from tests.coroutines import played_by

CALM = "CPU#0\nRIP=1 CPL=0 II=0 A20=1 SMM=0 HLT=1\nCPU#1\nEIP=0 CPL=3 II=0 A20=1 SMM=0 HLT=0\n"
STUCK = "CPU#0\nRIP=1 CPL=0 II=0 A20=1 SMM=1 HLT=0\nCPU#1\nEIP=0000000c CPL=0 II=0 A20=1 SMM=0 HLT=1\n"
ARRIVED = ("ACPI_DEVICE_OST", {"info": {"slot-type": "CPU", "slot": "1", "source": 1, "status": 0}})


class Fake:
    """An owner, as far as arrivals need one. The firmware waits until the interrupt is sent again."""

    def __init__(self, accelerator: str = "tcg", *, secure: bool = True) -> None:
        self.observed = SimpleNamespace(accelerator=accelerator)
        self.started = SimpleNamespace(firmware=SimpleNamespace(secure_boot=secure), architecture="amd64")
        self.run = SimpleNamespace(process=object())
        self.registers = CALM
        self.lines: list[str] = []
        self.arrivals = CpuArrivals(cast(MachineOwner, self))

    def background(self, work: Any) -> "asyncio.Task[None]":
        return asyncio.create_task(work)

    async def execute(self, command: str, arguments: dict[str, str]) -> str:
        line = arguments["command-line"]
        self.lines.append(line)
        if line.startswith("o/"):
            self.registers = CALM
        elif not self.registers:
            raise Unanswered("QEMU did not answer")
        return self.registers

    @property
    def sent(self) -> int:
        return sum(line == "o/b 0xb2 4" for line in self.lines)

    def tell(self, name: str, data: Any) -> None:
        self.arrivals.follow(name, data)


def perform(script: Callable[[], Awaitable[None]]) -> None:
    async def inside() -> None:
        await script()

    virtualtime.run(inside())


@pytest.mark.parametrize(
    ("registers", "waiting"),
    [(CALM, False), (STUCK, True), ("", False), (STUCK.replace("SMM=0 HLT=1", "SMM=1 HLT=0"), False)],
)
def test_what_a_firmware_that_waits_looks_like(registers: str, waiting: bool) -> None:
    assert waits(registers) is waiting


@pytest.mark.spec("kubevirt", 115)
@played_by(perform)
async def test_the_interrupt_is_sent_again_for_each_processor_until_all_have_arrived() -> None:
    fake = Fake()
    fake.arrivals.expect(1)
    fake.arrivals.expect(1)
    await asyncio.sleep(30)
    # The guest has not heard of them yet.
    assert fake.sent == 0
    for count in (1, 2):
        fake.registers = STUCK
        await asyncio.sleep(3)
        assert fake.sent == count
        fake.tell(*ARRIVED)
    await asyncio.sleep(2)
    asked = len(fake.lines)
    await asyncio.sleep(60)
    assert len(fake.lines) == asked


@played_by(perform)
async def test_a_moment_in_system_management_mode_is_no_wait() -> None:
    fake = Fake()
    fake.arrivals.expect(1)
    for _ in range(10):
        fake.registers = STUCK
        await asyncio.sleep(1)
        fake.registers = CALM
        await asyncio.sleep(1)
    assert fake.sent == 0
    # One that does not answer for a moment is asked again.
    fake.registers = ""
    await asyncio.sleep(5)
    fake.registers = STUCK
    await asyncio.sleep(3)
    assert fake.sent == 1


@pytest.mark.parametrize(("accelerator", "secure"), [("kvm", True), ("tcg", False)])
@played_by(perform)
async def test_where_it_is_not_needed_nobody_is_asked(accelerator: str, secure: bool) -> None:
    fake = Fake(accelerator, secure=secure)
    fake.arrivals.expect(3)
    await asyncio.sleep(60)
    assert fake.lines == []


@pytest.mark.parametrize("name", ["RESET", ""])
@played_by(perform)
async def test_a_guest_that_starts_anew_waits_for_nobody(name: str) -> None:
    fake = Fake()
    fake.arrivals.expect(1)
    await asyncio.sleep(3)
    fake.tell(name, {})
    await asyncio.sleep(2)
    asked = len(fake.lines)
    await asyncio.sleep(60)
    assert len(fake.lines) == asked
