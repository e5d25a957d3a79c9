"""Checks that a machine's QEMU and its guest make progress, beyond the life of their process.

QEMU is asked for its state every few seconds. One question at a time: an answer that does not come is waited for, and its coming ends
the fault. So a QEMU that hangs for hours is not told hundreds of things that it would do afterwards.

A guest that resets itself again and again, and has no agent in between, does not get up: mostly its kernel panics.
"""

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from paddock.base.errors import PaddockError
from paddock.engine.machine.observation import GuestFault
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.process import STOPPED, state_of

_WAY_OUT = "A stop without a grace period always works."
_PANIC = re.compile(rb"(Kernel panic[^\r\n\x1b]{0,200})")
_CONSOLE_BYTES = 32_768


def silence(seconds: float, state: str, patience: float) -> GuestFault | None:
    """Return the fault of a QEMU that did not answer for so long and whose process is in this state; None if it may only be slow."""
    if state in STOPPED:
        by = "a debugger" if state == "t" else "a signal (SIGSTOP)"
        return GuestFault(
            "ProcessStopped", f"QEMU does not answer: its process is stopped by {by}, and the guest with it; `kill -CONT` lets it go on."
        )
    if seconds < patience:
        return None
    if state == "D":
        return GuestFault(
            "MonitorUnresponsive", f"QEMU does not answer: it waits for a disk or a device of the host; look at dmesg. {_WAY_OUT}"
        )
    return GuestFault("MonitorUnresponsive", f"QEMU does not answer; the guest may go on. {_WAY_OUT}")


class Liveness:
    """Watches one machine's QEMU and guest."""

    def __init__(self, owner: MachineOwner) -> None:
        self._owner = owner
        self._asking: asyncio.Task[None] | None = None
        # when the question was asked that waits for its answer
        self._asked_at = 0.0
        self._resets = 0

    def arm(self) -> None:
        """Ask regularly from now on, while there is a QEMU."""
        if not self._owner.timers.pending("monitor"):
            self._owner.timers.after("monitor", self._owner.surroundings.times.beat, self._beat)

    def suspect(self) -> None:
        """Somebody else got no answer: look at once."""
        self._beat()
        self._judge()

    def unreachable(self) -> None:
        """There is no connection to QEMU, and none could be made."""
        self._put(silence(self._owner.surroundings.times.silence, state_of(self._owner.observed.pid), 0.0))

    def _beat(self) -> None:
        if self._owner.run.qmp is not None and self._asking is None:
            self._asked_at = asyncio.get_running_loop().time()
            self._asking = self._owner.background(self._ask())
            self._asking.add_done_callback(self._over)
            self._owner.timers.after("silence", self._owner.surroundings.times.suspicion, self._judge)
        self.arm()

    async def _ask(self) -> None:
        qmp = self._owner.run.qmp
        if qmp is None:
            return
        try:
            await qmp.execute("query-status", patience=None)
        except PaddockError:
            # Its connection ended: whoever makes a new one says how it is.
            return
        if self._clear("ProcessStopped", "MonitorUnresponsive"):
            # What was asked of it meanwhile may have been done.
            await self._owner.look_at_status()

    def _over(self, task: "asyncio.Task[None]") -> None:
        self._asking = None
        self._owner.timers.cancel("silence")

    def _judge(self) -> None:
        owner, times = self._owner, self._owner.surroundings.times
        if self._asking is None:
            return
        # While QEMU does something long for us its answers may take long, too.
        seconds = 0.0 if owner.busy else asyncio.get_running_loop().time() - self._asked_at
        if owner.run.process is not None:
            self._put(silence(seconds, state_of(owner.run.process.pid), times.silence))
        owner.timers.after("silence", times.suspicion, self._judge)

    def _put(self, fault: GuestFault | None) -> None:
        if fault is not None and not self._owner.record.evidence:
            self._owner.observe(fault=fault)

    def _clear(self, *reasons: str) -> bool:
        fault = self._owner.observed.fault
        if fault is None or fault.reason not in reasons:
            return False
        self._owner.observe(fault=None)
        return True

    # --- resets -----------------------------------------------------------------------------------------------------------

    def follow(self, name: str, data: Mapping[str, Any]) -> None:
        """Hear of an event of the machine."""
        if name == "RESET" and data.get("guest"):
            self._resets += 1
            self._owner.timers.after("resets", self._owner.surroundings.times.boot, self._up)
            if self._resets >= self._owner.surroundings.times.resets and self._owner.observed.fault is None:
                self._put(GuestFault("GuestRebootLoop", loop(self._owner.directory.serial_tail(_CONSOLE_BYTES))))
        elif name == "" or (name == "VSERPORT_CHANGE" and data.get("open") is True):
            self._up()

    def _up(self) -> None:
        """The guest came up, stayed up, or was reset by somebody else."""
        self._resets = 0
        self._owner.timers.cancel("resets")
        self._clear("GuestRebootLoop")


def loop(console: bytes) -> str:
    """Return the fault of a guest that resets itself again and again; `console` is the end of its output."""
    found = _PANIC.findall(console)
    said = found[-1].decode("utf-8", "replace").strip() if found else ""
    cause = f'its kernel panics: "{said}"' if said else "its console tells more, if it has one"
    return f"The guest resets itself again and again before it is up: {cause}."
