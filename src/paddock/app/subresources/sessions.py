"""Sessions of consoles and displays, open now and last opened, for metrics."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from paddock.base.clock import Clock
from paddock.kubevirt.kinds.instance import VirtualMachineInstance

Kind = Literal["console", "vnc", "usbredir", "portforward"]


class Sessions:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[Kind, int] = {"console": 0, "vnc": 0, "usbredir": 0, "portforward": 0}
        # by UID of the instance
        self._last: dict[str, float] = {}

    @contextmanager
    def during(self, kind: Kind, instance: VirtualMachineInstance) -> Iterator[None]:
        """A stream is open meanwhile."""
        self._last[instance.metadata.uid or ""] = self._clock.seconds()
        self._open[kind] += 1
        try:
            yield
        finally:
            self._open[kind] -= 1

    @property
    def open(self) -> Mapping[Kind, int]:
        """The number of open sessions by kind."""
        return self._open

    def last(self, uid: str) -> float | None:
        """Return the time of the last session with this instance, or None."""
        return self._last.get(uid)

    def keep(self, uids: set[str]) -> None:
        """Forget all other instances: they are gone."""
        self._last = {uid: at for uid, at in self._last.items() if uid in uids}
