"""Events of libvirt: a domain stops, is defined anew, or gets another device. They wake those that wait for a domain."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import libvirt

_LOG = logging.getLogger(__name__)
# Kinds of events after which what was read of a domain is old. Drivers lack some of them.
_KINDS = ("LIFECYCLE", "REBOOT", "DEVICE_ADDED", "DEVICE_REMOVED", "BALLOON_CHANGE", "METADATA_CHANGE", "AGENT_LIFECYCLE", "TUNABLE")
_RESTART = "REBOOT"


class DomainEvents:
    """Events of the domains of one connection. `revision` rises when events may have been missed."""

    def __init__(self) -> None:
        self.revision = 0
        self.attached = False
        self._waiting: dict[str, list[asyncio.Event]] = {}
        self._listeners: list[Callable[[str], None]] = []
        self._restarts: dict[str, int] = {}
        # of callbacks, by the connection that has them
        self._numbers: dict[int, list[int]] = {}

    def listen(self, listener: Callable[[str], None]) -> None:
        """Call a function with the UUID of each domain that changes, and with the empty text when any may have changed."""
        self._listeners.append(listener)

    @contextmanager
    def watch(self, uuid: str) -> Iterator[asyncio.Event]:
        """Have an event that is set whenever the domain changes, or the connection ends. Whoever waits clears it."""
        event = asyncio.Event()
        self._waiting.setdefault(uuid, []).append(event)
        try:
            yield event
        finally:
            self._waiting[uuid].remove(event)
            if not self._waiting[uuid]:
                del self._waiting[uuid]
                self._restarts.pop(uuid, None)

    def restarts(self, uuid: str) -> int:
        """Return how often a guest has restarted, as far as somebody watches it."""
        return self._restarts.get(uuid, 0)

    def restarted(self, uuid: str) -> None:
        """Report that a guest restarted. Of the event loop."""
        if uuid in self._waiting:
            self._restarts[uuid] = self._restarts.get(uuid, 0) + 1
        self.changed(uuid)

    def changed(self, uuid: str) -> None:
        """Report that a domain changed. Of the event loop."""
        for event in self._waiting.get(uuid, ()):
            event.set()
        for listener in self._listeners:
            listener(uuid)

    def lost(self) -> None:
        """Report that events may have been missed. Of the event loop."""
        self.revision += 1
        self.attached = False
        for events in self._waiting.values():
            for event in events:
                event.set()
        for listener in self._listeners:
            listener("")

    def attach(self, conn: Any, loop: asyncio.AbstractEventLoop) -> None:
        """Receive the events of a virConnect. In a thread."""

        def received(_: Any, domain: Any, *given: Any) -> None:
            report = self.restarted if given[-1] == _RESTART else self.changed
            try:
                loop.call_soon_threadsafe(report, domain.UUIDString())
            except (RuntimeError, libvirt.libvirtError):
                # The event loop has ended, and everybody who could wait with it.
                _LOG.debug("libvirt event without a listener")

        attached, numbers = False, self._numbers.setdefault(id(conn), [])
        for kind in _KINDS:
            try:
                number = conn.domainEventRegisterAny(None, getattr(libvirt, f"VIR_DOMAIN_EVENT_ID_{kind}"), received, kind)
                numbers.append(number)
                attached = attached or kind == "LIFECYCLE"
            except (AttributeError, libvirt.libvirtError):
                continue
        self.attached = attached

    def detach(self, conn: Any) -> None:
        """Receive no more events of a virConnect, which lives on as long as it sends some. In a thread."""
        for number in self._numbers.pop(id(conn), ()):
            with suppress(libvirt.libvirtError):
                conn.domainEventDeregisterAny(number)


async def wait(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event of `watch`, but not longer than this."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
