"""New processors under Secure Boot where QEMU emulates them: the firmware takes each one in before the guest may use it.

The firmware (OVMF) does so in System Management Mode: it wakes the new processor with INIT, and waits until that has taken the interrupt
(SMI) that was sent to all processors before. QEMU's emulation forgets that interrupt at INIT (`do_cpu_init`, seen with 7.2), so the
processor halts, and the others wait for it for ever. Sent again, it is taken. To a firmware that does not wait it says nothing new: it
finds no processor to take in.
"""

import asyncio
import contextlib
import re
from collections.abc import Mapping
from typing import Any

from paddock.base.errors import PaddockError
from paddock.engine.machine.owner import MachineOwner

# Writes the command "processors were plugged" into the port that raises the interrupt (ICH9_APM_CNT, 4), as the guest's ACPI tables do.
_AGAIN = "o/b 0xb2 4"
_LOOK_SECONDS, _LATER_SECONDS = 1.0, 5.0
_EAGER_SECONDS = 60.0
# A guest that hears of its new processors that late has to wait for its next start.
_LONGEST_SECONDS = 1800.0
_STATE = re.compile(r"\bSMM=(\d) HLT=(\d)")


class CpuArrivals:
    """Sees to it that new processors of one machine arrive."""

    def __init__(self, owner: MachineOwner) -> None:
        self._owner = owner
        self._expected = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def needed(self) -> bool:
        """The firmware takes part, and QEMU emulates."""
        owner = self._owner
        return owner.started.firmware.secure_boot and owner.started.architecture == "amd64" and owner.observed.accelerator == "tcg"

    def expect(self, count: int) -> None:
        """So many more were plugged."""
        self._expected += count
        if self.needed and (self._task is None or self._task.done()):
            self._task = self._owner.background(self._help())

    async def _help(self) -> None:
        waited, before = 0.0, False
        while self._expected > 0 and waited < _LONGEST_SECONDS and self._owner.run.process is not None:
            pause = _LOOK_SECONDS if waited < _EAGER_SECONDS else _LATER_SECONDS
            await asyncio.sleep(pause)
            waited += pause
            with contextlib.suppress(PaddockError):
                now = waits(str(await self._say("info registers -a")))
                # For a moment it may look so while all is well.
                if now and before:
                    await self._say(_AGAIN)
                before = now and not before

    async def _say(self, line: str) -> Any:
        return await self._owner.execute("human-monitor-command", {"command-line": line})

    def follow(self, name: str, data: Mapping[str, Any]) -> None:
        """Hear of an event of the machine."""
        info = data.get("info")
        if name == "ACPI_DEVICE_OST" and isinstance(info, dict) and info.get("slot-type") == "CPU":
            # The guest has heard of it, and with that the firmware is through.
            self._expected = max(0, self._expected - 1)
        elif name in ("", "RESET"):
            self._expected = 0


def waits(registers: str) -> bool:
    """Return True if `info registers -a` shows a busy processor in System Management Mode while another has halted outside."""
    states = set(_STATE.findall(registers))
    return ("1", "0") in states and ("0", "1") in states
