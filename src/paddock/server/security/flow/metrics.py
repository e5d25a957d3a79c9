"""The counters of flow control, in the text form that Prometheus reads, under Kubernetes' names."""

from collections.abc import Callable, Iterator

from paddock.base.metrics import MetricFamily
from paddock.kubernetes.meta import failure
from paddock.server.context import User
from paddock.server.edge.http import HttpRequest, HttpResponse
from paddock.server.security.flow.control import FlowControl, Waiter
from paddock.server.security.flow.levels import Level

_TYPE = (("content-type", "text/plain; version=0.0.4; charset=utf-8"),)
Count = Callable[[Level[Waiter]], int]
COUNTS: tuple[tuple[MetricFamily, Count], ...] = (
    (MetricFamily("apiserver_flowcontrol_nominal_limit_seats", "gauge", "Seats of a priority level."), lambda level: level.seats),
    (MetricFamily("apiserver_flowcontrol_current_executing_requests", "gauge", "Requests that have a seat."), lambda level: level.busy),
    (MetricFamily("apiserver_flowcontrol_current_inqueue_requests", "gauge", "Requests that wait for one."), lambda level: level.waiting),
    (
        MetricFamily("apiserver_flowcontrol_dispatched_requests_total", "counter", "Requests with a seat so far."),
        lambda level: level.dispatched,
    ),
    (MetricFamily("apiserver_flowcontrol_rejected_requests_total", "counter", "Requests answered 429."), lambda level: level.refused),
)


class MetricsEndpoint:
    """Serves `/metrics`."""

    def __init__(self, flows: FlowControl, more: Callable[[], Iterator[str]] = lambda: iter(())) -> None:
        self._flows = flows
        self._more = more

    async def answer(self, request: HttpRequest, user: User) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            raise failure.method_not_allowed()
        return HttpResponse(200, ("\n".join((*self._lines(), *self._more())) + "\n").encode(), _TYPE)

    def _lines(self) -> Iterator[str]:
        for family, count in COUNTS:
            yield from family.head()
            for label, level in self._flows.levels.known.items():
                yield f'{family.name}{{priority_level="{label}"}} {count(level)}'
