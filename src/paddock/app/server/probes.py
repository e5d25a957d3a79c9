"""The pages that tell how a program with controllers is: /healthz, /livez, /readyz and /metrics, over plain HTTP.

Metrics alone can be kept behind TLS and a guard, for scrapers that identify themselves; a kubelet's probes cannot.
"""

import ssl
from collections.abc import Awaitable, Callable

from paddock.kubernetes.runtime.health import HealthChecks
from paddock.server.edge.http import Answer, HttpRequest, HttpResponse
from paddock.server.edge.server import Server

HEALTH = frozenset({"/healthz", "/livez", "/readyz"})
METRICS = frozenset({"/metrics"})


# The answer to a request that may not see its page; None for one that may.
Guard = Callable[[HttpRequest], Awaitable[HttpResponse | None]]


class Probes:
    """Serves one program's health on an address: all pages, or some."""

    def __init__(
        self,
        health: HealthChecks,
        pages: frozenset[str] = HEALTH | METRICS,
        *,
        tls: ssl.SSLContext | None = None,
        guard: Guard | None = None,
    ) -> None:
        self._health = health
        self._pages = pages
        self._guard = guard
        self._server = Server(self._answer, tls=tls)

    async def listen(self, host: str, port: int) -> int:
        """Answer there too; returns the port, which is chosen when 0 is given."""
        return await self._server.listen(host, port)

    async def close(self) -> None:
        await self._server.close(1.0)

    async def _answer(self, request: HttpRequest) -> Answer:
        if request.method not in ("GET", "HEAD"):
            return HttpResponse(405, b"only GET is served here\n", (("content-type", "text/plain; charset=utf-8"),))
        if self._guard is not None and (refusal := await self._guard(request)) is not None:
            return refusal
        page = self._health.answer(request.path) if request.path in self._pages else None
        if page is None:
            return HttpResponse(404, b"there is no such page\n", (("content-type", "text/plain; charset=utf-8"),))
        status, media, body = page
        return HttpResponse(status, body.encode(), (("content-type", media), ("cache-control", "no-store")))
