"""Two hostile tenants on one host: neither sees the other, and neither takes more than its share."""

import asyncio

import orjson
import pytest

from paddock.fleet.tenants import tenant
from paddock.fleet.tenants.tenant import TenantShares
from paddock.server.api import Api
from paddock.server.context import User
from paddock.server.edge.http import ConnectionPeer, HttpRequest, HttpResponse
from paddock.server.housekeeping import bootstrap
from paddock.server.security.guard import Guard
from paddock.server.security.identity import Identities
from tests.coroutines import played
from tests.kit.engine.fakehost import Data, FakeHost, machine
from tests.kit.servers.apiharness import NoJournal
from tests.scenario.fronts.kubermatic.making import pool

SHARES = TenantShares("3", "4Gi", "10Gi", "40")
PLURALS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
    "ResourceQuota": "/api/v1/namespaces/{}/resourcequotas",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
}


def machines(namespace: str) -> str:
    return f"/apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachines"


async def make(host: FakeHost, name: str) -> None:
    for each in tenant.objects(name, SHARES):
        reply = await host.api.post(PLURALS[each["kind"]].format(name), each)
        assert reply.status == 201, reply.data


class Accounts:
    """Tokens that are names of tenants."""

    def user(self, token: str) -> User | None:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{token}", "system:authenticated")
        return User(f"system:serviceaccount:{token}:{tenant.ACCOUNT}", groups)


class Door:
    """The server as tenants reach it: with tokens and rights."""

    def __init__(self, host: FakeHost) -> None:
        self._api = Api(host.api.parts, Guard(Identities((Accounts(),)), host.api.rbac), NoJournal())
        self._api.subresources.update(host.api.api.subresources)

    async def asks(self, name: str, method: str, path: str, body: Data | None = None) -> int:
        """Return the code that a tenant gets."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"authorization": f"Bearer {name}", "content-type": kind}
        content = b"" if body is None else orjson.dumps(body)
        answer = await self._api(HttpRequest(method, path, headers, content, ConnectionPeer("127.0.0.1")))
        assert isinstance(answer, HttpResponse)
        return answer.status


def vcpus(host: FakeHost, uids: set[str]) -> int:
    living = host.engine.machines.living()
    return sum(each.cpu.sockets * each.cpu.cores * each.cpu.threads for uid, each in living.items() if uid in uids)


async def instances(host: FakeHost, namespace: str) -> dict[str, Data]:
    found = (await host.api.get(f"/apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachineinstances")).data["items"]
    return {each["metadata"]["uid"]: each for each in found}


async def opened(host: FakeHost) -> Door:
    """Two tenants, with the roles that a server brings."""
    host.house.quotas.start()
    for plural, each in bootstrap.objects():
        if plural in ("clusterroles", "clusterrolebindings"):
            await host.api.post(f"/apis/rbac.authorization.k8s.io/v1/{plural}", each)
    for name in ("acme", "globex"):
        await make(host, name)
    await asyncio.sleep(1)
    return Door(host)


@pytest.mark.spec("kube-api", 170)
@played
async def test_a_tenant_sees_and_changes_nothing_of_another(host: FakeHost, /) -> None:
    door = await opened(host)
    assert await door.asks("acme", "POST", machines("acme"), machine("web", volumes=[])) == 201
    await asyncio.sleep(10)
    for path in (machines("acme"), f"{machines('acme')}/web", "/api/v1/namespaces/acme/secrets", "/api/v1/namespaces/acme/pods"):
        assert await door.asks("globex", "GET", path) == 403
    for path in ("/apis/kubevirt.io/v1/virtualmachines", "/api/v1/namespaces", "/api/v1/nodes", "/api/v1/persistentvolumes"):
        assert await door.asks("globex", "GET", path) == 403
    assert await door.asks("globex", "DELETE", f"{machines('acme')}/web") == 403
    assert await door.asks("globex", "POST", machines("acme"), machine("spy", volumes=[])) == 403
    console = "/apis/subresources.kubevirt.io/v1/namespaces/acme/virtualmachineinstances/web/pause"
    assert await door.asks("globex", "PUT", console, {}) == 403


@pytest.mark.spec("kube-api", 170)
@played
async def test_a_tenant_does_not_lift_its_own_bounds(host: FakeHost, /) -> None:
    door = await opened(host)
    quotas, bounds = PLURALS["ResourceQuota"].format("acme"), {"spec": {"hard": {"requests.cpu/vmi": "99"}}}
    assert await door.asks("acme", "PATCH", f"{quotas}/tenant", bounds) == 403
    assert await door.asks("acme", "PATCH", f"{quotas}/tenant/status", {"status": {"used": {}}}) == 403
    assert await door.asks("acme", "DELETE", f"{quotas}/tenant") == 403
    assert await door.asks("acme", "DELETE", f"{PLURALS['NetworkPolicy'].format('acme')}/tenant") == 403
    assert await door.asks("acme", "PATCH", "/api/v1/namespaces/acme", {"metadata": {"labels": {"a": "b"}}}) == 403
    assert await door.asks("acme", "POST", PLURALS["RoleBinding"].format("acme"), tenant.objects("acme", SHARES)[5]) == 403
    # A status is the server's to write: a machine that claims to have ended counts on.
    domain = {"cpu": {"sockets": 3}}
    assert await door.asks("acme", "POST", machines("acme"), machine("web", volumes=[], domain=domain)) == 201
    await asyncio.sleep(10)
    instance = "/apis/kubevirt.io/v1/namespaces/acme/virtualmachineinstances/web"
    await door.asks("acme", "PATCH", instance, {"status": {"phase": "Succeeded"}})
    await asyncio.sleep(1)
    used = (await host.api.get(f"{quotas}/tenant")).data["status"]["used"]
    assert used["requests.cpu/vmi"] == "3"


@pytest.mark.spec("kubevirt", 193)
@played
async def test_no_tenant_takes_more_than_its_share_from_every_side_at_once(host: FakeHost, /) -> None:
    door = await opened(host)
    pools = "/apis/kubevirt.io/v1alpha1/namespaces/{}/virtualmachinepools"
    grown = {"cpu": {"sockets": 1, "maxSockets": 8}, "memory": {"guest": "1Gi", "maxGuest": "4Gi"}}
    for name in ("acme", "globex"):
        hostile = [door.asks(name, "POST", machines(name), machine(f"m{each}", volumes=[], domain=grown)) for each in range(12)]
        hostile.append(door.asks(name, "POST", pools.format(name), pool(12, disks=False)))
        codes = await asyncio.gather(*hostile)
        assert codes[:-1] == [201] * 12, codes
    more = {"spec": {"template": {"spec": {"domain": {"cpu": {"sockets": 4}, "memory": {"guest": "2Gi"}}}}}}
    for _ in range(20):
        await asyncio.sleep(1)
        for name in ("acme", "globex"):
            assert vcpus(host, set(await instances(host, name))) <= 3
    for name in ("acme", "globex"):
        await asyncio.gather(*(door.asks(name, "PATCH", f"{machines(name)}/m{each}", more) for each in range(12)))
    for _ in range(20):
        await asyncio.sleep(5)
        for name in ("acme", "globex"):
            assert vcpus(host, set(await instances(host, name))) <= 3
    for name in ("acme", "globex"):
        found = (await host.api.get(machines(name))).data["items"]
        assert 0 < vcpus(host, set(await instances(host, name))) <= 3 and len(found) <= 40
