"""VirtRigaud's controllers in an operator: readiness, leader election and settings (docs/spec/virtrigaud.md 5.1)."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from paddock.app.operator import options
from paddock.app.operator.operator import Operator
from paddock.app.operator.settings import LeaderElectionSettings, ListenAddress, OperatorSettings
from paddock.base.errors import Terminal
from paddock.base.jsondata import Data
from paddock.dialects.fronts import FrontSettings
from paddock.kubernetes.client.access import Access, StaticCredential
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.transport import TransportRequest
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.schema.kind import AdmissionSettings
from tests import virtualtime
from tests.coroutines import timeless
from tests.kit.servers import apiclient
from tests.kit.servers.apiharness import Harness
from tests.unit.kubevirt.controllers.providerpods import services_are_here
from tests.unit.kubevirt.controllers.rigaudharness import base, provider

_USED = services_are_here

NAME = "virtrigaud-provider-default-lab"
SETTINGS = OperatorSettings(
    fronts=FrontSettings(wanted=frozenset({"virtrigaud"}), embedded=False),
    metrics=None,
    health=ListenAddress("127.0.0.1", 0),
    namespace="default",
    lease=LeaderElectionSettings(name="l"),
)


@asynccontextmanager
async def operator(
    api: Harness, identity: str, fronts: FrontSettings = SETTINGS.fronts
) -> AsyncIterator[tuple[Operator, "asyncio.Task[None]"]]:
    async with apiclient.inside(api) as client:
        machinery = Machinery(clock=virtualtime.Clock(), chance=random.Random(1))
        made = Operator(msgspec.structs.replace(SETTINGS, fronts=fronts), client, machinery, identity=identity)
        task = asyncio.create_task(made.run())
        await asyncio.sleep(1)
        try:
            yield made, task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def page(made: Operator, path: str) -> tuple[int, str]:
    client = Https(Access(server=f"http://127.0.0.1:{made.ports[1]}", credentials=StaticCredential()))
    reply = await client.send(TransportRequest(method="GET", target=path))
    await client.close()
    return reply.status, reply.body.decode()


async def holder(api: Harness) -> str:
    reply = await api.get("/apis/coordination.k8s.io/v1/namespaces/default/leases/l-virtrigaud")
    return str(reply.data.get("spec", {}).get("holderIdentity", ""))


async def make(api: Harness, name: str = "lab") -> None:
    await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "lab"}, "stringData": {"password": "p"}})
    made = await api.post(base("Provider"), provider(name))
    assert made.status == 201, made.data


async def deployment(api: Harness, name: str = "lab") -> Data:
    found = await api.get(f"/apis/apps/v1/namespaces/default/deployments/virtrigaud-provider-default-{name}")
    return dict(found.data) if found.status == 200 else {}


def pods() -> Harness:
    return Harness(settings=AdmissionSettings(workloads="stored"))


@pytest.mark.spec("virtrigaud", 106)
@timeless
async def test_it_is_ready_when_its_caches_are_whole_and_its_kinds_are_served() -> None:
    async with pods() as api, operator(api, "one") as (made, _):
        assert (await page(made, "/healthz"))[0] == 200
        async with asyncio.timeout(60):
            while (await page(made, "/readyz"))[0] != 200:
                await asyncio.sleep(1)
        text = (await page(made, "/readyz"))[1]
        assert "[+]caches ok" in text and "[+]definitions ok" in text and "[+]election ok" in text
        await make(api)
        await asyncio.sleep(2)
        assert await deployment(api)


@pytest.mark.spec("virtrigaud", 106)
@timeless
async def test_it_is_not_ready_without_the_definitions() -> None:
    async with pods() as api:
        hidden = api.registry.find("infra.virtrigaud.io", "v1beta1", "providers")
        assert hidden is not None
        api.registry.remove(hidden)
        async with operator(api, "one") as (made, _):
            status, text = await page(made, "/readyz")
            assert status == 500 and "providers.infra.virtrigaud.io/v1beta1 is not served: paddock crds --dialect virtrigaud" in text


@pytest.mark.spec("virtrigaud", 107)
@timeless
async def test_one_of_two_acts_and_the_other_takes_over_within_the_lease() -> None:
    async with pods() as api, operator(api, "one") as (_, first):
        await asyncio.sleep(5)
        assert await holder(api) == "one"
        async with operator(api, "two") as (second, _):
            await make(api)
            await asyncio.sleep(5)
            assert await holder(api) == "one"
            assert await deployment(api)
            # The other one is ready to take over, and does nothing.
            assert (await page(second, "/readyz"))[0] == 200
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            await api.delete(f"/apis/apps/v1/namespaces/default/deployments/{NAME}")
            begun = asyncio.get_running_loop().time()
            async with asyncio.timeout(60):
                while not await deployment(api):
                    await asyncio.sleep(0.5)
            assert await holder(api) == "two"
            lease = SETTINGS.lease
            assert asyncio.get_running_loop().time() - begun <= lease.duration + 2 * lease.retry


def settings_of(*given: str, **environ: str) -> OperatorSettings:
    options.refuse(given)
    parsed = options.parser("").parse_args(["--dialect", "virtrigaud", *given])
    return options.settings(parsed, environ)


@pytest.mark.spec("virtrigaud", 108)
def test_its_settings_have_their_effect() -> None:
    given = settings_of("--managed-certificates=false", "--provider-from", "127.0.0.0/8, lab", MAX_CONCURRENT_RECONCILES="7")
    fronts = given.fronts
    assert fronts.managed_certificates is False and fronts.provider_hosts == ("127.0.0.0/8", "lab") and fronts.workers == 7
    assert settings_of("--migration-storage-allowed-hosts=s3.lab,*.nfs.lab").fronts.migration_hosts == ("s3.lab", "*.nfs.lab")
    usual = settings_of("--enforce-provider-capabilities", LOG_LEVEL="warn", LOG_FORMAT="text")
    assert usual.fronts.managed_certificates is True and usual.fronts.provider_hosts == ()
    assert (usual.log_level, usual.log_format) == ("warning", "text")
    assert settings_of(PROVIDER_FROM="::1").fronts.provider_hosts == ("::1",)
    assert settings_of("--metrics-bind-address=0", "--health-probe-bind-address=:9", "--leader-elect=false") == msgspec.structs.replace(
        settings_of(), metrics=None, health=ListenAddress("", 9), lease=msgspec.structs.replace(settings_of().lease, wanted=False)
    )


async def reason(api: Harness, type: str) -> str:
    conditions = (await api.get(f"{base('Provider')}/lab")).data.get("status", {}).get("conditions", ())
    return str(next((each["reason"] for each in conditions if each["type"] == type), ""))


@pytest.mark.spec("virtrigaud", 108)
@timeless
async def test_its_settings_reach_the_controllers() -> None:
    async with pods() as api:
        await make(api)
        async with operator(api, "one", settings_of("--managed-certificates=false").fronts):
            await asyncio.sleep(5)
            assert await reason(api, "TLSConfigured") == "TLSBlockMissing" and not await deployment(api)
        address = {"virtrigaud.io/provider-address": "127.0.0.1:1"}
        plain = {"runtime": {"service": {"tls": {"enabled": False}}}}
        reply = await api.merge(f"{base('Provider')}/lab", {"metadata": {"annotations": address}, "spec": plain})
        assert reply.status == 200
        for given, expected in (((), "AddressRefused"), (("--provider-from=127.0.0.1",), "Served")):
            async with operator(api, "one", settings_of(*given).fronts):
                await asyncio.sleep(5)
                assert await reason(api, "ProviderRuntimeReady") == expected


@pytest.mark.spec("virtrigaud", 108)
@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("--enable-http2", "HTTP/1.1"),
        ("--webhook-cert-name=a", "there is no webhook"),
        ("--zap-log-level=debug", "--log-level"),
        ("--version", "paddock version"),
        ("--enforce-provider-capabilities=false", "leave the option out"),
    ],
)
def test_options_of_the_manager_that_mean_nothing_here_are_refused(option: str, advice: str) -> None:
    with pytest.raises(Terminal) as error:
        settings_of(option)
    assert advice in error.value.fix and option.partition("=")[0] in error.value.what


@pytest.mark.spec("virtrigaud", 108)
@pytest.mark.parametrize(
    "name", ["RPC_TIMEOUT_CREATE", "RETRY_MAX_ATTEMPTS", "CB_FAILURE_THRESHOLD", "RATE_LIMIT_QPS", "WORKERS_PER_KIND", "FEATURE_GATES"]
)
def test_variables_that_nothing_reads_end_the_start(name: str) -> None:
    with pytest.raises(Terminal) as error:
        settings_of(**{name: "1"})
    assert name in error.value.what
    # Another dialect's environment is its own affair, and so are the variables that a kubelet makes of Services.
    options.settings(options.parser("").parse_args([]), {name: "1"})
    settings_of(RETRY_QUEUE_SERVICE_HOST="10.0.0.1", RETRY_QUEUE_PORT_80_TCP="tcp://10.0.0.1:80")
