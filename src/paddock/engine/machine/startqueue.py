"""The queue of machines to start. Pure: time is a parameter, and so is the CPU demand of guests.

A guest that boots takes all the CPU it gets. Started together, fifty of them are each ready after fifty seconds; a few at a time,
the first is ready after one and the last no later than before. So a start holds a place until its guest has become quiet, or has
had its time. After a reboot of the host the machines arrive within a moment, in no order: nobody starts before all are there.

    offer -> waiting -- take --> booting -- quiet, ended or overdue --> done
"""

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, field

# A guest is quiet when it wants less than this share of one CPU for so long. What it waits for counts as well: on a host that is busy with
# others a guest that boots gets as little as one that sleeps.
QUIET_SHARE = 0.35
QUIET_SECONDS = 1.5
# A guest that never becomes quiet gives its place up after this time.
LONGEST = {"kvm": 30.0, "tcg": 90.0}
# Who has waited so long is served next, whatever its priority.
PATIENCE = 120.0
# After a reboot of the host: from the first offer until the first start, so that those that arrive in between are sorted as well.
GATHERING = 2.0


def places(cpus: int, accelerator: Literal["kvm", "tcg"]) -> int:
    """Return the number of guests that may boot at once. An emulated one has a CPU busy all the time; others wait for disks in between."""
    return max(cpus, 1) * 2 if accelerator == "kvm" else max(cpus, 1) + 1


class _Waiting(Struct):
    priority: int
    since: float
    number: int


class _Booting(Struct):
    since: float
    looked: float
    cpu: float | None = None
    quiet_since: float | None = None


class StartQueue(Struct):
    """The waiting and the booting machines."""

    size: int
    longest: float = LONGEST["kvm"]
    _waiting: dict[str, _Waiting] = field(default_factory=dict)
    _booting: dict[str, _Booting] = field(default_factory=dict)
    _offered: int = 0
    _gathers: bool = False
    _opens: float = 0.0

    def gather(self) -> None:
        """Sort those that are offered in the next moment before the first of them starts."""
        self._gathers = True

    def offer(self, id: str, now: float, priority: int = 0) -> None:
        """Somebody wants to start. Offered again it keeps its place, with the new priority."""
        known = self._waiting.get(id)
        if known is not None:
            known.priority = priority
        elif id not in self._booting:
            if self._gathers:
                self._gathers, self._opens = False, now + GATHERING
            self._offered += 1
            self._waiting[id] = _Waiting(priority, now, self._offered)

    def done(self, id: str) -> None:
        """It ended, it was called off, or it needs no place any more."""
        self._waiting.pop(id, None)
        self._booting.pop(id, None)

    def take(self, now: float) -> list[str]:
        """Those that start now, in order; each holds a place from here on."""
        self._expire(now)
        if now < self._opens:
            return []
        chosen = sorted(self._waiting, key=lambda name: self._rank(self._waiting[name], now))[: max(self.size - len(self._booting), 0)]
        for name in chosen:
            del self._waiting[name]
            self._booting[name] = _Booting(since=now, looked=now)
        return chosen

    def report(self, id: str, cpu_seconds: float, now: float) -> bool:
        """Record the CPU seconds of a booting machine since its start. True: it is quiet and has given its place up."""
        booting = self._booting.get(id)
        if booting is None:
            return True
        before, looked = booting.cpu, booting.looked
        booting.cpu, booting.looked = cpu_seconds, now
        if before is None or now <= looked:
            return False
        if (cpu_seconds - before) / (now - looked) >= QUIET_SHARE:
            booting.quiet_since = None
            return False
        if booting.quiet_since is None:
            booting.quiet_since = looked
        if now - booting.quiet_since < QUIET_SECONDS:
            return False
        del self._booting[id]
        return True

    def position(self, id: str, now: float) -> int | None:
        """Return the number of machines before it; None: it does not wait."""
        if id not in self._waiting:
            return None
        return sorted(self._waiting, key=lambda other: self._rank(self._waiting[other], now)).index(id)

    @property
    def booting(self) -> frozenset[str]:
        """Those that hold a place, and whose want of CPUs has to be reported."""
        return frozenset(self._booting)

    def _expire(self, now: float) -> None:
        for name in list(self._overdue(now)):
            del self._booting[name]

    def _overdue(self, now: float) -> Iterator[str]:
        return (name for name, booting in self._booting.items() if now - booting.since >= self.longest)

    def _rank(self, waiting: _Waiting, now: float) -> tuple[bool, int, int]:
        patient = now - waiting.since < PATIENCE
        return (patient, -waiting.priority if patient else 0, waiting.number)
