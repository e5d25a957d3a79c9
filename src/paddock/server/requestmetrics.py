"""Counts requests and how long they took, under Kubernetes' names.

Every request pays for this, so a request costs one look into a dictionary and a few additions; labels are written when somebody reads.
Only what is served has labels of its own: a client that makes up groups and kinds makes no series.
"""

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator
from time import perf_counter
from typing import TypeVar

from paddock.base.metrics import MetricFamily, escaped, number
from paddock.server.edge.http import Answer, HttpRequest, HttpResponse, StreamResponse, Upgrade
from paddock.server.resources.registry import ResourceRegistry
from paddock.server.routing import RequestRoute

# of kube-apiserver, in seconds
BOUNDS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0)
FAMILIES = (
    MetricFamily("apiserver_request_total", "counter", "Requests by verb, resource and the code of the answer."),
    MetricFamily(
        "apiserver_request_duration_seconds", "histogram", "Seconds from the head of a request to its answer, or to the end of a stream."
    ),
    MetricFamily("apiserver_longrunning_requests", "gauge", "Streams that are open."),
    MetricFamily("apiserver_current_inflight_requests", "gauge", "Requests that wait for their answer."),
)
COUNT, TOOK, OPEN, BUSY = (family.name for family in FAMILIES)
_LABELS = ("verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component")
_METHODS = {"create": "POST", "update": "PUT"}
_VERBS = frozenset(("get", "list", "watch", "patch", "delete", "deletecollection", "head", "options", "create", "update", "post", "put"))
_READS = frozenset(("get", "list", "watch", "head", "options"))
_PATHS = ("/api", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version")
_OTHER = "OTHER"
_APPLY = "application/apply-patch"
_Key = tuple[str, str, str, str, str, bool, bool, bool, int]
S = TypeVar("S")


class _Series:
    """The requests of one key: a count for each bucket, the last of those that took longer, and the seconds in all."""

    __slots__ = ("counts", "labels", "seconds")

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.labels = labels
        self.counts = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0


class RequestMetrics:
    """The counts of one server."""

    def __init__(self, registry: ResourceRegistry, clock: Callable[[], float] = perf_counter) -> None:
        self._registry = registry
        self._clock = clock
        self._series: dict[_Key, _Series] = {}
        self._open: dict[tuple[str, ...], int] = {}
        self._busy = {"mutating": 0, "readOnly": 0}

    def begin(self, route: RequestRoute) -> float:
        """Note a request; returns the time."""
        self._busy["readOnly" if route.verb in _READS else "mutating"] += 1
        return self._clock()

    def left(self, route: RequestRoute) -> None:
        """Note that a request has its answer, or that its client did not wait for it."""
        self._busy["readOnly" if route.verb in _READS else "mutating"] -= 1

    def end(self, request: HttpRequest, route: RequestRoute, answer: Answer, begun: float) -> None:
        """Count a request with its answer. A stream counts when it ends."""
        if isinstance(answer, HttpResponse):
            self._count(request, route, route.verb, answer.status, begun)
        elif isinstance(answer, StreamResponse):
            answer.run = self._until_end(answer.run, (request, route, route.verb, answer.status, begun))
        elif isinstance(answer, Upgrade):
            answer.run = self._until_end(answer.run, (request, route, "connect", 101, begun))

    def _count(self, request: HttpRequest, route: RequestRoute, verb: str, code: int, begun: float) -> None:
        if verb == "patch" and request.headers.get("content-type", "").startswith(_APPLY):
            verb = "apply"
        dry = "dryRun" in request.query_text
        where = route.plural if route.is_resource else route.path
        key = (verb, route.group, route.version, where, route.subresource, bool(route.namespace), bool(route.name), dry, code)
        series = self._series.get(key)
        if series is None:
            series = self._made(key, route)
        took = self._clock() - begun
        series.counts[bisect_left(BOUNDS, took)] += 1
        series.seconds += took

    def _until_end(
        self, run: Callable[[S], Awaitable[None]], about: tuple[HttpRequest, RequestRoute, str, int, float]
    ) -> Callable[[S], Awaitable[None]]:
        """Return a stream that is counted as open while it runs, and as a request when it has ended."""
        request, place, verb, code, begun = about
        labels = self._labels(place, verb, dry=False)

        async def counted(end: S) -> None:
            self._open[labels] = self._open.get(labels, 0) + 1
            try:
                await run(end)
            finally:
                self._open[labels] -= 1
                self._count(request, place, verb, code, begun)

        return counted

    def _made(self, key: _Key, route: RequestRoute) -> _Series:
        """Return the series of a key that is new. A client cannot make series: what it can make up is left out of the key."""
        labels = self._labels(route, key[0], dry=key[7])
        verb, dry, code = labels[0], key[7], key[8]
        if not labels[4] and not labels[5]:
            key = (verb, "", "", "", "", False, False, dry, code)
        elif verb == _OTHER or "/" in route.subresource:
            key = (verb, key[1], key[2], key[3], labels[5], key[5], key[6], dry, code)
        found = self._series.get(key)
        if found is None:
            found = self._series[key] = _Series(labels)
        return found

    def _labels(self, route: RequestRoute, verb: str, *, dry: bool) -> tuple[str, ...]:
        shown = (_METHODS.get(verb, verb) if verb in _VERBS or verb in ("apply", "connect") else _OTHER).upper()
        resource = self._registry.find(route.group, route.version, route.plural) if route.is_resource else None
        below = route.subresource.partition("/")[0]
        known = resource is not None and (not below or any(each.name.partition("/")[0] == below for each in resource.subresources))
        head = (shown, "All" if dry else "")
        if not known:
            path = route.path if not route.is_resource and route.path in _PATHS else ""
            return (*head, "", "", "", path, "", "apiserver")
        scope = "resource" if route.name or verb == "create" else "namespace" if route.namespace else "cluster"
        return (*head, route.group, route.version, route.plural, below, scope, "apiserver")

    def lines(self) -> Iterator[str]:
        """Everything, as Prometheus reads it."""
        counted, timed, streaming, waiting = FAMILIES
        yield from counted.head()
        totals: dict[tuple[tuple[str, ...], int], int] = {}
        took: dict[tuple[str, ...], _Series] = {}
        for key, series in self._series.items():
            place = series.labels, key[8]
            totals[place] = totals.get(place, 0) + sum(series.counts)
            sums = took.setdefault(series.labels, _Series(series.labels))
            sums.counts = [ours + theirs for ours, theirs in zip(sums.counts, series.counts, strict=True)]
            sums.seconds += series.seconds
        for (labels, code), count in sorted(totals.items()):
            yield f'{COUNT}{{{_written(labels)},code="{code}"}} {count}'
        yield from timed.head()
        for labels in sorted(took):
            yield from _histogram(took[labels])
        yield from streaming.head()
        for labels, count in sorted(self._open.items()):
            yield f"{OPEN}{{{_written(labels)}}} {count}"
        yield from waiting.head()
        for kind, count in self._busy.items():
            yield f'{BUSY}{{request_kind="{kind}"}} {count}'


def _written(labels: tuple[str, ...]) -> str:
    return ",".join(f'{name}="{escaped(value)}"' for name, value in zip(_LABELS, labels, strict=True))


_EDGES = (*(number(bound) for bound in BOUNDS), "+Inf")


def _histogram(series: _Series) -> Iterator[str]:
    labels, below = _written(series.labels), 0
    for edge, count in zip(_EDGES, series.counts, strict=True):
        below += count
        yield f'{TOOK}_bucket{{{labels},le="{edge}"}} {below}'
    yield f"{TOOK}_sum{{{labels}}} {number(series.seconds)}"
    yield f"{TOOK}_count{{{labels}}} {below}"
