"""How a guest is: it runs, it stands still and why, or it has ended and QEMU waits for its command to quit."""

import contextlib
from collections.abc import Mapping
from typing import Any

from paddock.base.errors import PaddockError
from paddock.engine.machine import probe, runends
from paddock.engine.machine.argv import names
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.reboots import Reboots


class GuestStatus:
    """The status of one machine's guest, as QEMU tells it."""

    def __init__(self, owner: MachineOwner, reboots: Reboots) -> None:
        self._owner = owner
        self._reboots = reboots
        # how often the guest stood still or went on
        self._turn = 0

    def follow(self, name: str, data: Mapping[str, Any]) -> None:
        """Hear of an event of the guest or its devices."""
        owner = self._owner
        match name:
            case "SHUTDOWN":
                self._shut_down(str(data.get("reason", "")))
            case "STOP":
                self._turn += 1
                owner.background(self.ask())
            case "RESUME":
                self._turn += 1
                owner.observe(paused="", still=False, disk_errors={})
            case "RESET":
                owner.observe(resets=owner.observed.resets + 1)
            case "GUEST_PANICKED":
                owner.quit("panicked")
            case "WATCHDOG" if data.get("action") == "poweroff":
                owner.save(evidence=(*owner.record.evidence, "watchdog"))
            case "BLOCK_IO_ERROR":
                owner.observe(disk_errors=probe.failed(owner.config, owner.observed.disk_errors, data))
            case "MEMORY_DEVICE_SIZE_CHANGE" if data.get("id") == names.VIRTIO_MEM:
                owner.observe(memory=probe.boot_size(owner.started) + int(data.get("size", 0)))

    def _shut_down(self, reason: str) -> None:
        end, evidence = runends.SHUTDOWNS.get(reason, "crashed"), self._owner.record.evidence
        if not (evidence and reason in ("host-qmp-quit", "host-signal")) and not self._reboots.returns(end):
            self._owner.quit(end)

    async def ask(self) -> None:
        """Ask QEMU."""
        turn = self._turn
        with contextlib.suppress(PaddockError):
            answer = await self._owner.execute("query-status")
            # It may have gone on before this answer was read.
            if turn == self._turn:
                self.take(str(answer.get("status", "")))

    def take(self, status: str) -> None:
        """QEMU's run state."""
        owner, record = self._owner, self._owner.record
        if (reason := runends.FINAL_STATES.get(status)) is not None:
            if not self._reboots.returns(reason):
                owner.quit(record.evidence[-1] if record.evidence else reason)
        elif status == "running":
            owner.observe(paused="", still=False)
        elif status == "io-error":
            owner.observe(paused="io-error", still=False)
            owner.timers.after("space", owner.surroundings.times.poll, self._retry_full)
        elif status in ("watchdog", "prelaunch"):
            owner.observe(paused="watchdog" if status == "watchdog" else "start", still=False)
        elif owner.busy or record.goes_on:
            owner.observe(still=True)
        elif status in ("paused", "postmigrate", "suspended", "debug"):
            owner.observe(paused="start" if record.start_paused and not record.paused else "user", still=False)

    def _retry_full(self) -> None:
        """A disk was full: the guest goes on as soon as there is room again, and pauses once more if it was not enough."""
        owner, errors = self._owner, self._owner.observed.disk_errors
        if owner.observed.paused != "io-error" or "enospc" not in errors.values():
            return
        if probe.has_room(owner.config, errors):
            owner.background(owner.attempt("cont"))
        owner.timers.after("space", owner.surroundings.times.poll, self._retry_full)
