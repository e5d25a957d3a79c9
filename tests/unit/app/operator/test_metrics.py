"""Metrics over TLS: who may read them, with which certificate, and what happens when the API server does not say."""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from cryptography import x509

from paddock.app.operator import metricscertificate, neededrights, options
from paddock.app.operator.metricsaccess import ACCESS_REVIEWS, TOKEN_REVIEWS, MetricsAccess, bearer
from paddock.app.operator.operator import Operator
from paddock.app.operator.settings import LeaderElectionSettings, ListenAddress, MetricsSecurity, OperatorSettings
from paddock.base.errors import Terminal
from paddock.dialects import fronts
from paddock.dialects.fronts import FrontSettings
from paddock.kubernetes.client.access import Access, Credential, StaticCredential
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.localtransport import LocalTransport
from paddock.kubernetes.client.transport import TransportRequest, TransportResponse
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.server.edge.http import ConnectionPeer, HttpRequest
from paddock.server.security import pki
from tests import virtualtime
from tests.coroutines import played_by, run_by
from tests.kit.servers import apiclient, apiharness
from tests.kit.servers.apiharness import GuardedHarness, Harness, Reply

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
ROOT = {"authorization": "Bearer root"}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
RULES: dict[str, list[dict[str, Any]]] = {"gadgets": [], "leases": [], "metrics": neededrights.rules("metrics")}
SETTINGS = OperatorSettings(
    fronts=FrontSettings(wanted=frozenset({"gadgets"})),
    metrics=ListenAddress("127.0.0.1", 0),
    health=ListenAddress("127.0.0.2", 0),
    security=MetricsSecurity(),
    namespace="default",
    lease=LeaderElectionSettings(name="l"),
)


def read(*given: str) -> OperatorSettings:
    return options.settings(options.parser("").parse_args(given), {})


def test_options() -> None:
    assert read().security is None
    assert read("--metrics-secure").security == MetricsSecurity()
    assert read("--metrics-secure=false").security is None
    given = ("--metrics-secure=true", "--metrics-cert-path=/tls", "--metrics-cert-name=a.pem", "--metrics-cert-key=b.pem")
    assert read(*given).security == MetricsSecurity(folder=Path("/tls"), certificate="a.pem", key="b.pem")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--metrics-cert-path=/tls",), "add --metrics-secure"),
        (("--metrics-cert-key=b.pem", "--metrics-secure=false"), "add --metrics-secure"),
        (("--metrics-secure", "--metrics-bind-address=:8081"), "different ports"),
    ],
)
def test_settings_that_do_not_fit_are_refused(given: tuple[str, ...], words: str) -> None:
    with pytest.raises(Terminal) as error:
        read(*given)
    assert words in error.value.fix


class ReviewServer:
    """An API server that answers reviews, and counts them."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.allowed = True
        self.code = 201

    async def answer(self, request: TransportRequest) -> TransportResponse:
        spec = orjson.loads(request.body)["spec"]
        self.asked.append((request.target, spec))
        if self.code != 201:
            return TransportResponse(
                self.code, {}, orjson.dumps({"kind": "Status", "message": "tokenreviews is forbidden", "code": self.code})
            )
        if request.target == TOKEN_REVIEWS:
            user = {"username": "prometheus", "uid": "7", "groups": ["scrapers"], "extra": {"node": ["a"]}}
            status: dict[str, Any] = {"authenticated": True, "user": user} if spec["token"] == "good" else {"error": "unknown token"}
        else:
            status = {"allowed": self.allowed}
        return TransportResponse(201, {}, orjson.dumps({"status": status}))


def request(header: str = "Bearer good", method: str = "GET", path: str = "/metrics") -> HttpRequest:
    return HttpRequest(method, path, {"authorization": header} if header else {}, b"", ConnectionPeer("127.0.0.1"))


def judged(script: Callable[[MetricsAccess, ReviewServer, virtualtime.Clock], Awaitable[None]]) -> None:
    async def inside() -> None:
        server, clock = ReviewServer(), virtualtime.Clock()
        async with Client(LocalTransport(server.answer)) as client:
            await script(MetricsAccess(client, clock), server, clock)

    virtualtime.run(inside())


async def code(access: MetricsAccess, *given: str) -> int:
    refusal = await access.refusal(request(*given))
    return 200 if refusal is None else refusal.status


@played_by(judged)
async def test_the_server_is_asked_who_it_is_and_what_they_may(
    access: MetricsAccess, server: ReviewServer, clock: virtualtime.Clock, /
) -> None:
    assert await code(access) == 200
    reviewed = {"user": "prometheus", "uid": "7", "groups": ["scrapers"], "extra": {"node": ["a"]}}
    assert server.asked == [
        (TOKEN_REVIEWS, {"token": "good"}),
        (ACCESS_REVIEWS, {**reviewed, "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}),
    ]
    # Another verb is another right.
    assert await code(access, "bearer good", "HEAD") == 200
    assert server.asked[-1][1]["nonResourceAttributes"]["verb"] == "head"


@pytest.mark.parametrize("header", ["", "Basic Z29vZA==", "Bearer", "Bearer ", "good"])
@played_by(judged)
async def test_nobody_is_refused_without_a_question(
    access: MetricsAccess, server: ReviewServer, clock: virtualtime.Clock, /, header: str
) -> None:
    refusal = await access.refusal(request(header))
    assert refusal is not None and refusal.status == 401
    assert ("www-authenticate", "Bearer") in refusal.headers
    assert server.asked == []
    assert bearer(header) == ""


@played_by(judged)
async def test_answers_are_kept_for_a_while(access: MetricsAccess, server: ReviewServer, clock: virtualtime.Clock, /) -> None:
    for _ in range(3):
        assert await code(access) == 200
        assert await code(access, "Bearer bad") == 401
    assert len(server.asked) == 3
    server.allowed = False
    await asyncio.sleep(59)
    assert await code(access) == 200
    await asyncio.sleep(2)
    refusal = await access.refusal(request())
    assert refusal is not None and refusal.status == 403
    assert b'prometheus may not get /metrics: grant the verb "get" on the nonResourceURL /metrics' in bytes(refusal.body)
    server.allowed = True
    assert await code(access) == 403
    await asyncio.sleep(11)
    assert await code(access) == 200


@played_by(judged)
async def test_a_server_that_does_not_say_is_no_permission(
    access: MetricsAccess, server: ReviewServer, clock: virtualtime.Clock, /, caplog: pytest.LogCaptureFixture
) -> None:
    server.code = 403
    assert await code(access) == await code(access) == 500
    server.code = 201
    assert await code(access) == 200
    assert [each.getMessage() for each in caplog.records] == ["access to the metrics cannot be judged"]
    assert "tokenreviews is forbidden" in caplog.records[0].__dict__["error"]


def test_a_certificate_of_its_own_is_renewed_before_it_expires() -> None:
    clock = apiharness.Clock()
    own = metricscertificate.OwnCertificate(("pod-7", "localhost"), clock)
    assert not own.refresh()
    first = x509.load_pem_x509_certificate(own._certificate)
    names = first.extensions.get_extension_for_class(x509.SubjectAlternativeName).value.get_values_for_type(x509.DNSName)
    assert names == ["pod-7", "localhost"]
    clock.time += timedelta(days=336).total_seconds()
    assert own.refresh()
    now = datetime.fromtimestamp(clock.seconds(), UTC)
    assert x509.load_pem_x509_certificate(own._certificate).not_valid_after_utc > now + timedelta(days=300)


@asynccontextmanager
async def operating(api: Harness, settings: OperatorSettings) -> AsyncIterator[Operator]:
    async with apiclient.inside(api) as client:
        operator = Operator(settings, client, Machinery(clock=virtualtime.Clock(), chance=random.Random(1)), identity="one")
        task = asyncio.create_task(operator.run())
        await asyncio.sleep(1)
        try:
            yield operator
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def page(operator: Operator, path: str = "/metrics", token: str = "", authority: Path | None = None) -> tuple[int, str]:
    """One page over TLS; without an authority the certificate is not verified."""
    headers = (("authorization", f"Bearer {token}"),) if token else ()
    access = Access(
        server=f"https://127.0.0.1:{operator.ports[0]}",
        authority=authority.read_bytes() if authority else b"",
        insecure=authority is None,
        credentials=StaticCredential(Credential(headers)),
    )
    client = Https(access)
    reply = await client.send(TransportRequest(method="GET", target=path))
    await client.close()
    return reply.status, reply.body.decode()


async def make(api: Harness, path: str, thing: dict[str, Any]) -> Reply:
    reply = await api.post(path, thing, **ROOT)
    assert reply.status == 201, reply.data
    return reply


async def token_of(api: Harness, name: str) -> str:
    await make(api, ACCOUNTS, {"metadata": {"name": name}})
    return str((await make(api, f"{ACCOUNTS}/{name}/token", {"spec": {}})).data["status"]["token"])


async def allow(api: Harness, name: str) -> None:
    head = {"metadata": {"name": "metrics-reader"}}
    await make(api, f"{RBAC}/clusterroles", {**head, "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "metrics-reader"}
    await make(api, f"{RBAC}/clusterrolebindings", {**head, "roleRef": role, "subjects": [subject]})


@run_by(virtualtime.run)
async def test_an_operator_with_secure_metrics(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(fronts, "WIRES", {})
    monkeypatch.setattr(neededrights, "rules", RULES.__getitem__)
    async with GuardedHarness(tmp_path) as api, operating(api, SETTINGS) as operator:
        reader, other = await token_of(api, "reader"), await token_of(api, "other")
        await allow(api, "reader")
        status, text = await page(operator, token=reader)
        assert status == 200 and 'paddock_leader{lease="default/l-gadgets"} 1\n' in text
        assert (await page(operator, token=other))[0] == 403
        assert (await page(operator))[0] == (await page(operator, token="made.up.token"))[0] == 401
        assert (await page(operator, "/readyz", reader))[0] == 403
        # The probes need neither TLS nor a token.
        client = Https(Access(server=f"http://127.0.0.2:{operator.ports[1]}", credentials=StaticCredential()))
        assert (await client.send(TransportRequest(method="GET", target="/readyz"))).status == 200
        assert (await client.send(TransportRequest(method="GET", target="/metrics"))).status == 404
        await client.close()


@run_by(virtualtime.run)
async def test_a_certificate_that_is_given_is_renewed_without_a_restart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fronts, "WIRES", {})
    monkeypatch.setattr(neededrights, "rules", RULES.__getitem__)
    authorities = [pki.Authority(tmp_path / name) for name in ("first", "second")]
    folder = tmp_path / "tls"
    folder.mkdir()

    def show(authority: pki.Authority, age: int) -> None:
        for name, source in zip(("tls.crt", "tls.key"), authority.server(["127.0.0.1"]), strict=True):
            (folder / name).write_bytes(source.read_bytes())
            os.utime(folder / name, ns=(age, age))

    caplog.set_level("INFO")

    show(authorities[0], 1)
    settings = msgspec.structs.replace(SETTINGS, security=MetricsSecurity(folder=folder))
    async with Harness() as api, operating(api, settings) as operator:
        assert (await page(operator, authority=authorities[0].certificate_file))[0] == 401
        # A broken one changes nothing.
        (folder / "tls.crt").write_text("nonsense")
        await asyncio.sleep(200)
        assert (await page(operator, authority=authorities[0].certificate_file))[0] == 401
        show(authorities[1], 2)
        await asyncio.sleep(61)
        assert (await page(operator, authority=authorities[1].certificate_file))[0] == 401
    said = [each.getMessage() for each in caplog.records if each.name.endswith("metricscertificate")]
    assert said == ["metrics certificate unusable; the previous one stays in use", "metrics certificate renewed"]


def test_files_that_are_not_there_end_the_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(Terminal) as error:
        metricscertificate.find(MetricsSecurity(folder=tmp_path), "pod-7", virtualtime.Clock())
    assert f"put tls.crt and tls.key into {tmp_path}" in error.value.fix
