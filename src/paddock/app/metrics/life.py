"""Counters of events that leave no state behind: phase transitions and guest panics."""

import contextlib

import msgspec

from paddock.base.metrics import MetricsRegistry
from paddock.engine.machine.machine import QemuMachine
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime.cache import CacheChange

_BOUNDS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 90.0, 120.0, 180.0, 300.0, 600.0, 1200.0, 1800.0)
_NAME = "kubevirt_vmi_phase_transition_time"


class _Moment(msgspec.Struct):
    phase: str = ""
    phaseTransitionTimestamp: str = ""


class _Status(msgspec.Struct):
    phase: str = ""
    phaseTransitionTimestamps: list[_Moment] = []


class _Meta(msgspec.Struct):
    creationTimestamp: str = ""
    deletionTimestamp: str | None = None


class _Instance(msgspec.Struct):
    metadata: _Meta
    status: _Status = msgspec.field(default_factory=_Status)

    def since(self, phase: str) -> float | None:
        """Return the start of a phase."""
        found = next((each.phaseTransitionTimestamp for each in self.status.phaseTransitionTimestamps if each.phase == phase), "")
        return ages.seconds_of(found)


_INSTANCES = msgspec.json.Decoder(_Instance)


class Phases:
    """The durations of phases, from the changes of instances. Those that existed when the program started are not counted again."""

    def __init__(self, metrics: MetricsRegistry) -> None:
        text = "How long instances took to get into a phase: from"
        self._before = metrics.histogram(f"{_NAME}_seconds", f"{text} the phase before.", ("phase",), _BOUNDS)
        self._creation = metrics.histogram(f"{_NAME}_from_creation_seconds", f"{text} their creation.", ("phase",), _BOUNDS)
        self._deletion = metrics.histogram(f"{_NAME}_from_deletion_seconds", f"{text} their deletion.", ("phase",), _BOUNDS)

    def hear(self, change: CacheChange) -> None:
        if change.old is None or change.new is None:
            return
        with contextlib.suppress(msgspec.DecodeError):
            self._compare(_INSTANCES.decode(change.old.raw), _INSTANCES.decode(change.new.raw))

    def _compare(self, old: _Instance, new: _Instance) -> None:
        phase = new.status.phase
        if phase == old.status.phase or (at := new.since(phase)) is None:
            return
        starts = (
            (self._before, new.since(old.status.phase)),
            (self._creation, ages.seconds_of(new.metadata.creationTimestamp)),
            (self._deletion, ages.seconds_of(new.metadata.deletionTimestamp or "")),
        )
        for histogram, start in starts:
            if start is not None:
                # A deletion's moment is that by which it is to be over, so an end may come before it.
                histogram.observe(max(0.0, at - start), phase)


class Panics:
    """Counts guests' panics by machine, once for each run."""

    def __init__(self) -> None:
        self._counts: dict[Key, int] = {}
        self._reported: dict[str, int] = {}

    def observe(self, machine: QemuMachine, key: Key) -> None:
        """A machine changed; it is that of the instance."""
        end = machine.observed.end
        if end is not None and end.reason == "panicked" and self._reported.get(machine.id) != machine.observed.run:
            self._reported[machine.id] = machine.observed.run
            self._counts[key] = self._counts.get(key, 0) + 1

    def count(self, key: Key) -> int:
        """Return the number of panics."""
        return self._counts.get(key, 0)

    def keep(self, keys: set[Key], machines: set[str]) -> None:
        self._counts = {key: count for key, count in self._counts.items() if key in keys}
        self._reported = {name: run for name, run in self._reported.items() if name in machines}
