"""The use of machines from the server's series."""

import orjson
import pytest

from paddock.fleet.machines import usage
from paddock.fleet.machines.usage import MachineUsage, NoUsage, UsageSample
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.client.transport import ResponseStream, TransportRequest, TransportResponse
from tests.coroutines import timeless

WEB = Key("default", "web")
PAGE = """# HELP kubevirt_vmi_cpu_usage_seconds_total Time
kubevirt_vmi_cpu_usage_seconds_total{node="host",namespace="default",name="web"} 10.5
kubevirt_vmi_memory_resident_bytes{namespace="default",name="web"} 1.5e+06
kubevirt_vmi_storage_read_traffic_bytes_total{namespace="default",name="web",drive="a"} 100
kubevirt_vmi_storage_read_traffic_bytes_total{namespace="default",name="web",drive="b"} 200
kubevirt_vmi_other_total{namespace="default",name="web"} 7
kubevirt_vmi_cpu_usage_seconds_total{node="host"} 3
"""


def test_a_page_of_series() -> None:
    assert usage.parse(PAGE) == {WEB: {"cpu": 10.5, "memory": 1.5e6, "read": 300.0}}


def test_counters_become_rates() -> None:
    before = UsageSample(10.0, {WEB: {"cpu": 10.0, "read": 100.0, "memory": 1.0}})
    after = UsageSample(12.0, {WEB: {"cpu": 13.0, "read": 300.0, "memory": 5.0}, Key("default", "new"): {"cpu": 9.0}})
    found = usage.rates(before, after)
    assert found[WEB] == MachineUsage(cpu=1.5, read=100.0, memory=5.0)
    assert found[Key("default", "new")].cpu == 0.0
    # A counter that began anew says nothing.
    assert usage.rates(after, UsageSample(14.0, {WEB: {"cpu": 1.0}}))[WEB].cpu == 0.0


def test_figures_of_pods_are_rates_already() -> None:
    pods = {
        "items": [
            {"metadata": {"namespace": "default", "name": "virt-launcher-web"}, "containers": [{"usage": {"cpu": "250m", "memory": "2Mi"}}]}
        ]
    }
    sample = UsageSample(1.0, dict(usage._of_pods(pods)), rated=True)
    assert usage.rates(sample, sample)[WEB] == MachineUsage(cpu=0.25, memory=2 << 20)


class Metrics:
    """A server whose user may read metrics in some places."""

    def __init__(self, *allowed: str, version: str = "v1.36.3", page: str = "") -> None:
        self._allowed = allowed
        self._page = page
        self._version = version
        self.asked: list[str] = []

    async def send(self, ask: TransportRequest) -> TransportResponse:
        self.asked.append(ask.target.partition("?")[0])
        if ask.target == "/version":
            return TransportResponse(200, {}, orjson.dumps({"gitVersion": self._version}))
        if self._page and ask.target.startswith("/metrics?"):
            return TransportResponse(200, {}, self._page.encode())
        if ask.target not in self._allowed:
            return TransportResponse(403, {}, b'{"kind":"Status","reason":"Forbidden","message":"no","code":403}')
        usage = [{"usage": {"cpu": "250m", "memory": "2Mi"}}]
        items = [{"metadata": {"namespace": "default", "name": "virt-launcher-web"}, "containers": usage}]
        return TransportResponse(200, {}, orjson.dumps({"items": items}))

    async def stream(self, ask: TransportRequest) -> ResponseStream:
        raise AssertionError(ask)

    async def close(self) -> None:
        """Nothing is open."""


ALL, OWN = "/apis/metrics.k8s.io/v1beta1/pods", "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"


@pytest.mark.parametrize(
    ("allowed", "namespace", "seen"), [(ALL, "", True), (ALL, "default", True), (OWN, "default", True), (OWN, "", False)]
)
@timeless
async def test_a_user_of_one_namespace_sees_its_figures(allowed: str, namespace: str, seen: bool) -> None:
    client = Client(Metrics(allowed))
    if not seen:
        with pytest.raises(NoUsage):
            await usage.read(client, namespace)
        return
    assert (await usage.read(client, namespace)).machines == {WEB: {"cpu": 0.25, "memory": 2 << 20}}


@pytest.mark.parametrize(("version", "series"), [("v1.36.3", False), ("v1.36.0+paddock.0.1.0", True)])
@timeless
async def test_only_paddocks_own_server_is_asked_for_series(version: str, series: bool) -> None:
    server = Metrics(ALL, version=version)
    await usage.read(Client(server))
    assert ("/metrics" in server.asked) is series


SPACE = """# TYPE kubelet_volume_stats_used_bytes gauge
kubelet_volume_stats_used_bytes{namespace="default",persistentvolumeclaim="root"} 4.5e+06
kubelet_volume_stats_used_bytes{namespace="team",persistentvolumeclaim="root"} 7
"""


@pytest.mark.parametrize(
    ("version", "page", "found"),
    [("v1.36.0+paddock.0.1.0", SPACE, {"root": 4_500_000}), ("v1.36.0+paddock.0.1.0", "", {}), ("v1.36.3", SPACE, {})],
)
@timeless
async def test_the_space_of_claims_is_that_of_the_namespace(version: str, page: str, found: dict[str, int]) -> None:
    assert await usage.claim_bytes(Client(Metrics(version=version, page=page)), "default") == found
