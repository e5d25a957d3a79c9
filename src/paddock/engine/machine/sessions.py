"""The connections to a guest: its agent, its console, its display, and ports for USB devices. The end of a run closes them."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from paddock.base.errors import PaddockError
from paddock.engine.machine.agent import Agent
from paddock.engine.machine.argv import names
from paddock.engine.machine.errors import RequestRefused
from paddock.engine.machine.identities import GuestIdentities
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.pipes import Pipe, SessionSlot
from paddock.engine.machine.qmp import open_socket
from paddock.engine.machine.renewal import MOVED

_SCREEN_BYTES = 16_384
_DATE_SECONDS = 10.0


class GuestSessions:
    """The connections to one machine's guest. A new session of a console or display ends the old one."""

    def __init__(self, owner: MachineOwner) -> None:
        self._owner = owner
        self.agent = Agent(f"machine {owner.id}", lambda: open_socket(owner.directory.run, names.AGENT))
        self.identities = GuestIdentities(owner, self.agent)
        self._console, self._vnc = SessionSlot(), SessionSlot()
        self._usb: dict[int, SessionSlot] = {}

    def console(self, *, screen: bool = True) -> Pipe:
        """The serial console, from its last screen on, or from what the guest writes next."""
        if not self._owner.started.devices.serial:
            raise self._lacks("open the console of", "NoConsole", "it has no serial console")
        return self._session(self._console, names.SERIAL, lambda: self._owner.directory.serial_tail(_SCREEN_BYTES), screen=screen)

    def vnc(self) -> Pipe:
        """The display, as RFB."""
        if not self._owner.started.devices.graphics:
            raise self._lacks("open the display of", "NoDisplay", "it has no display")
        return self._session(self._vnc, names.VNC)

    def usb(self) -> Pipe:
        """A free port that a client redirects a USB device to."""
        ports = self._owner.started.devices.usb_redirections
        if not ports:
            raise self._lacks("redirect USB to", "NoUsb", "it has no ports for that")
        for index in range(ports):
            slot = self._usb.setdefault(index, SessionSlot())
            if not slot.taken:
                return self._session(slot, names.usb_socket(index))
        raise RequestRefused(
            f"cannot redirect USB to machine {self._owner.id}",
            reason="AllTaken",
            why=f"its {ports} ports are in use",
            fix="end a session",
        )

    def demand_no_usb(self, action: str) -> None:
        """Raise while a client's USB device is redirected to the machine."""
        if any(slot.taken for slot in self._usb.values()):
            why = "a USB device of a client is redirected to it, and would be torn off"
            raise RequestRefused(f"cannot {action} machine {self._owner.id}", reason="Busy", why=why, fix="end that session")

    def close(self) -> None:
        """End all of them; the guest does not notice."""
        self.agent.close()
        for slot in (self._console, self._vnc, *self._usb.values()):
            slot.clear()

    def follow(self, name: str, data: Mapping[str, Any]) -> None:
        """Hear of an event of the machine."""
        if name == "VSERPORT_CHANGE" and data.get("id") == "agent0":
            self._agent_is(data.get("open") is True)
        elif name in ("", MOVED):
            self.close()

    async def find_agent(self) -> None:
        """Ask a QEMU that was found whether the guest's agent has its channel open."""
        for device in await self._owner.execute("query-chardev"):
            if device.get("label") == "qga0":
                self._agent_is(device.get("frontend-open") is True)

    def _agent_is(self, there: bool) -> None:
        self.agent.opened(there)
        if there and self.identities.due:
            # Until then it answers as the guest of another machine.
            self._owner.background(self._identify())
            return
        if there and self._owner.record.clock_due:
            self._owner.background(self._set_time())
        if there and "agent" not in self._owner.observed.times:
            self._owner.observe(agent=True, milestone="agent")
            self._owner.booted()
        else:
            self._owner.observe(agent=there)

    async def _identify(self) -> None:
        if await self.identities.give() and self.agent.open:
            self._agent_is(True)

    async def _set_time(self) -> None:
        """Set the clock of a guest that comes out of a snapshot. If its agent cannot, its time service does."""
        clock = self._owner.surroundings.clock
        try:
            await self.agent.set_time(clock.seconds())
        except PaddockError:
            # The agent wants hwclock for that, which small guests do not have.
            with contextlib.suppress(PaddockError):
                await self.agent.execute(["date", "-s", f"@{int(clock.seconds())}"], _DATE_SECONDS)
        self._owner.save(clock_due=False)

    def _session(self, slot: SessionSlot, name: str, log: Callable[[], bytes] | None = None, *, screen: bool = True) -> Pipe:
        try:
            return slot.give(lambda: open_socket(self._owner.directory.run, name), log, screen=screen)
        except OSError as error:
            why = f"{name}: {error.strerror or error}"
            raise RequestRefused(f"cannot reach machine {self._owner.id}", reason="NoSocket", why=why, fix="try again") from error

    def _lacks(self, action: str, reason: str, why: str) -> RequestRefused:
        fix = "change the machine and start it anew"
        return RequestRefused(f"cannot {action} machine {self._owner.id}", reason=reason, why=why, fix=fix)
