"""The pages of a program's health, over a socket."""

import asyncio

from paddock.app.server.probes import Probes
from paddock.base.metrics import MetricsRegistry
from paddock.kubernetes.client.access import Access, StaticCredential
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.transport import TransportRequest
from paddock.kubernetes.runtime.health import HealthChecks
from tests.coroutines import run_by


@run_by(asyncio.run)
async def test_pages() -> None:
    metrics = MetricsRegistry()
    metrics.counter("things_total", "Things.").inc()
    health = HealthChecks(metrics)
    waiting = "waiting for configmaps"
    health.add_ready("caches", lambda: waiting)
    probes = Probes(health)
    port = await probes.listen("127.0.0.1", 0)
    client = Https(Access(server=f"http://127.0.0.1:{port}", credentials=StaticCredential()))

    async def get(path: str, method: str = "GET") -> tuple[int, str]:
        reply = await client.send(TransportRequest(method=method, target=path))
        return reply.status, reply.body.decode()

    assert await get("/healthz") == await get("/livez") == (200, "ok\n")
    assert await get("/readyz") == (500, "[-]caches waiting for configmaps\nfailed\n")
    assert health.unready == "caches: waiting for configmaps"
    waiting = ""
    assert await get("/readyz") == (200, "[+]caches ok\nok\n")
    assert await get("/metrics") == (200, "# HELP things_total Things.\n# TYPE things_total counter\nthings_total 1\n")
    assert (await get("/secrets"))[0] == 404
    assert (await get("/healthz", "POST"))[0] == 405
    await client.close()
    await probes.close()
