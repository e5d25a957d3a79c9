"""The circuit breaker of one provider: after enough failures in a row, calls fail at once until the provider has had time to recover.

    closed --(10 counted failures)--> open --(60 s)--> half-open --(3 successes)--> closed
                                       ^------(any counted failure)-----'

A half-open breaker lets three probes through. A call that is given up says nothing, and its place goes to another.
"""

import enum
from collections.abc import Callable

import msgspec


class BreakerState(enum.StrEnum):
    """The states of a circuit breaker."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class BreakerSettings(msgspec.Struct, frozen=True):
    """When a breaker opens, for how long, and what closes it."""

    failures: int = 10
    seconds: float = 60.0
    probes: int = 3


class CallOutcome(enum.Enum):
    """The evidence of a call about the health of the provider."""

    HEALTHY = 0
    FAILED = 1
    UNKNOWN = 2


class CircuitBreaker:
    """Counts the failures of one provider. `now` is a monotonic clock."""

    def __init__(self, settings: BreakerSettings, now: Callable[[], float]) -> None:
        self._settings = settings
        self._now = now
        self._failures = 0
        # of all time, for the metrics
        self.failures = 0
        self._until: float | None = None
        # of the present half-open time: probes under way and probes that succeeded
        self._probing = 0
        self._succeeded = 0
        # a call that began in another period says nothing about this one
        self._period = 0

    @property
    def state(self) -> BreakerState:
        if self._until is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if self._now() < self._until else BreakerState.HALF_OPEN

    def wait(self) -> float:
        """Seconds until a call is let through; 0 if one is now."""
        match self.state:
            case BreakerState.OPEN:
                return max((self._until or 0.0) - self._now(), 0.001)
            case BreakerState.HALF_OPEN if self._probing + self._succeeded >= self._settings.probes:
                return 1.0
        return 0.0

    def enter(self) -> int:
        """Note that a call begins, which `wait` allows; returns what `leave` needs."""
        if self.state is BreakerState.HALF_OPEN:
            self._probing += 1
        return self._period

    def leave(self, period: int, outcome: CallOutcome) -> None:
        """Note how a call ended."""
        if period != self._period:
            return
        probe = self._until is not None
        if probe:
            self._probing -= 1
        match outcome:
            case CallOutcome.FAILED:
                self._failures += 1
                self.failures += 1
                if probe or self._failures >= self._settings.failures:
                    self._begin(self._now() + self._settings.seconds)
            case CallOutcome.HEALTHY if probe:
                self._succeeded += 1
                if self._succeeded >= self._settings.probes:
                    self._begin(None)
            case CallOutcome.HEALTHY:
                self._failures = 0

    def _begin(self, until: float | None) -> None:
        self._until = until
        self._failures = self._probing = self._succeeded = 0
        self._period += 1
