"""Reboots of a guest that only knows its power button: it is pressed, and once the guest has shut down it is reset and goes on.

The process stays, and with it the disks, the cards and who is connected. A guest that does not obey within a while keeps running, and
its next shutdown is one again.
"""

from paddock.base.errors import PaddockError
from paddock.engine.machine.owner import MachineOwner

# A guest that has not shut down after so long does not mean this button any more.
PATIENCE_SECONDS = 180.0
_NAME = "reboot"


class Reboots:
    """The reboots of one machine."""

    def __init__(self, owner: MachineOwner) -> None:
        self._owner = owner
        self._returning = False

    async def begin(self) -> None:
        """Press the button; the rest follows."""
        self._owner.timers.after(_NAME, PATIENCE_SECONDS, lambda: None)
        try:
            await self._owner.execute("system_powerdown")
        except PaddockError:
            self._owner.timers.cancel(_NAME)
            raise

    def returns(self, reason: str) -> bool:
        """Return whether an end by the guest is half of a reboot; the other half then follows."""
        if reason != "guest-shutdown" or self._owner.record.stop is not None:
            return False
        if not self._returning and not self._owner.timers.pending(_NAME):
            return False
        if not self._returning:
            self._returning = True
            self._owner.timers.cancel(_NAME)
            self._owner.background(self._go_on())
        return True

    async def _go_on(self) -> None:
        with self._owner.occupied():
            try:
                # Without a reset a machine that has shut down cannot go on.
                await self._owner.execute("system_reset")
                await self._owner.execute("cont")
            except PaddockError:
                self._owner.quit("guest-shutdown")
            finally:
                self._returning = False
