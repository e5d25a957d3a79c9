"""The values that all parts of a program share: randomness, clock and metrics. The program creates them once."""

import random

from paddock.base.clock import Clock, SystemClock
from paddock.base.metrics import MetricsRegistry


class Machinery:
    """The surroundings of controllers. Tests hand in their own."""

    def __init__(self, *, clock: Clock | None = None, chance: random.Random | None = None, metrics: MetricsRegistry | None = None) -> None:
        self.clock = clock or SystemClock()
        self.chance = chance or random.Random()
        self.metrics = metrics or MetricsRegistry()
        self._requests = self.metrics.counter(
            "paddock_client_requests_total", "Requests to the API server.", ("method", "resource", "code")
        )
        self._took = self.metrics.histogram("paddock_client_request_duration_seconds", "How long requests took.", ("method",))

    def observe_request(self, method: str, resource: str, code: int, seconds: float) -> None:
        """Record a request of a `Client`."""
        # Paths that are no resource would be a series each.
        about = "other" if resource.startswith("/") else resource
        self._requests.inc(method, about, str(code) if code else "none")
        self._took.observe(seconds, method)
