"""Quotas and limits: decided with the write, their status kept by housekeeping."""

import asyncio
from typing import Any

import pytest

from paddock.server.housekeeping.quotas import QuotaController
from paddock.server.store.memory import MemoryStore
from tests.coroutines import played, run_by
from tests.kit.servers.apiharness import Harness

CORE = "/api/v1/namespaces/default"
QUOTAS = f"{CORE}/resourcequotas"


def quota(name: str = "q", hard: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {**({"hard": hard} if hard else {}), **spec}}


def claim(name: str, size: str, **spec: Any) -> dict[str, Any]:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": name}, "spec": {**wanted, **spec}}


def service(name: str, kind: str, ports: int = 1) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"type": kind, "ports": [{"name": f"p{each}", "port": 80 + each} for each in range(ports)]}}


async def status(api: Harness, name: str = "q") -> Any:
    return (await api.get(f"{QUOTAS}/{name}")).data.get("status")


@played
async def test_a_quota_is_not_exceeded(api: Harness, /) -> None:
    await api.post(f"{CORE}/configmaps", {"metadata": {"name": "before"}})
    await api.post(QUOTAS, quota(hard={"count/configmaps": 2, "configmaps": 2, "secrets": 1}))
    assert (await api.post(f"{CORE}/configmaps", {"metadata": {"name": "one"}})).status == 201
    said = await api.post(f"{CORE}/configmaps", {"metadata": {"name": "two"}})
    assert (said.status, said.reason) == (403, "Forbidden")
    amounts = "configmaps={0},count/configmaps={0}"
    requested, limited = amounts.format(1), amounts.format(2)
    assert said.data["message"] == (
        f'configmaps "two" is forbidden: exceeded quota: q, requested: {requested}, used: {limited}, limited: {limited}'
    )
    dry = await api.post(f"{CORE}/configmaps?dryRun=All", {"metadata": {"name": "two"}})
    assert dry.status == 403
    # What is there may be changed, and what goes makes room.
    assert (await api.merge(f"{CORE}/configmaps/one", {"data": {"a": "b"}})).status == 200
    await api.delete(f"{CORE}/configmaps/one")
    assert (await api.post(f"{CORE}/configmaps", {"metadata": {"name": "two"}})).status == 201


@played
async def test_requests_of_one_commit_cannot_overrun_it(api: Harness, /) -> None:
    await api.post(QUOTAS, quota(hard={"count/secrets": 3}))
    made = await asyncio.gather(*(api.post(f"{CORE}/secrets", {"metadata": {"name": f"s{each}"}}) for each in range(10)))
    assert sorted(each.status for each in made) == [201] * 3 + [403] * 7


POD = {"containers": [{"name": "a", "image": "b"}]}
USAGE: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    ("services", service("s", "NodePort", 2), {"services": "1", "services.nodeports": "2", "services.loadbalancers": "0"}),
    ("services", service("s", "LoadBalancer"), {"services": "1", "services.nodeports": "1", "services.loadbalancers": "1"}),
    ("services", service("s", "ClusterIP"), {"services": "1", "services.nodeports": "0", "count/services": "1"}),
    (
        "persistentvolumeclaims",
        claim("c", "3Gi", storageClassName="gold"),
        {
            "persistentvolumeclaims": "1",
            "requests.storage": "3Gi",
            "gold.storageclass.storage.k8s.io/requests.storage": "3Gi",
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
            "bronze.storageclass.storage.k8s.io/requests.storage": "0",
        },
    ),
    (
        "replicationcontrollers",
        {"metadata": {"name": "r"}, "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": POD}}},
        {"replicationcontrollers": "1"},
    ),
    ("configmaps", {"metadata": {"name": "m"}}, {"configmaps": "1", "pods": "0", "cpu": "0", "count/leases.coordination.k8s.io": "0"}),
]


@pytest.mark.parametrize(("plural", "body", "used"), USAGE)
@played
async def test_what_is_used_follows_what_is_there(api: Harness, /, plural: str, body: dict[str, Any], used: dict[str, str]) -> None:
    chore = QuotaController(api.parts)
    chore.start()
    await api.post(QUOTAS, quota(hard=dict.fromkeys(used, "100Gi" if plural == "persistentvolumeclaims" else "100")))
    await chore.chores.settled()
    assert set((await status(api))["used"].values()) == {"0"}
    made = await api.post(f"{CORE}/{plural}", body)
    assert made.status == 201, made.data
    await chore.chores.settled()
    assert (await status(api))["used"] == used
    await api.merge(f"{CORE}/{plural}/{body['metadata']['name']}", {"metadata": {"finalizers": None}})
    await api.delete(f"{CORE}/{plural}/{body['metadata']['name']}")
    await chore.chores.settled()
    assert set((await status(api))["used"].values()) == {"0"}
    # Whoever writes the status does not write it for long; a change of the bounds is followed.
    await api.call("PATCH", f"{QUOTAS}/q/status", {"status": {"hard": {"pods": "9"}}}, content_type="application/merge-patch+json")
    await api.merge(f"{QUOTAS}/q", {"spec": {"hard": {"secrets": "7"}}})
    await chore.chores.settled()
    found = await status(api)
    assert (found["hard"]["secrets"], found["used"]["secrets"], "pods" in used) == ("7", "0", "pods" in found["hard"])
    await chore.chores.stop()


@played
async def test_growing_counts_too(api: Harness, /) -> None:
    await api.post(QUOTAS, quota(hard={"requests.storage": "4Gi", "services.nodeports": 1}))
    await api.post(f"{CORE}/persistentvolumeclaims", claim("c", "3Gi"))
    grown = {"spec": {"resources": {"requests": {"storage": "5Gi"}}}}
    said = await api.merge(f"{CORE}/persistentvolumeclaims/c", grown)
    assert said.data["message"].endswith(
        "exceeded quota: q, requested: requests.storage=2Gi, used: requests.storage=3Gi, limited: requests.storage=4Gi"
    )
    await api.post(f"{CORE}/services", service("s", "ClusterIP", 2))
    said = await api.merge(f"{CORE}/services/s", {"spec": {"type": "NodePort"}})
    assert said.data["message"].endswith("requested: services.nodeports=2, used: services.nodeports=0, limited: services.nodeports=1")


@played
async def test_scopes_are_about_pods_or_attributes_of_claims(api: Harness, /) -> None:
    chore = QuotaController(api.parts)
    chore.start()
    await api.post(QUOTAS, quota("pods", {"pods": 0, "count/configmaps": 0}, scopes=["Terminating"]))
    selected = {"matchExpressions": [{"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["gold"]}]}
    await api.post(QUOTAS, quota("gold", {"persistentvolumeclaims": 1}, scopeSelector=selected))
    assert (await api.post(f"{CORE}/configmaps", {"metadata": {"name": "free"}})).status == 201
    claims = f"{CORE}/persistentvolumeclaims"
    for name, kind in (("a", "gold"), ("b", "silver"), ("c", None)):
        more = {"volumeAttributesClassName": kind} if kind else {}
        assert (await api.post(claims, claim(name, "1Gi", **more))).status == 201
    await chore.chores.settled()
    assert (await status(api, "gold"))["used"] == {"persistentvolumeclaims": "1"}
    said = await api.post(claims, claim("d", "1Gi", volumeAttributesClassName="gold"))
    assert "exceeded quota: gold" in said.data["message"]
    await chore.chores.stop()


@played
async def test_a_custom_kind_is_counted(api: Harness, /) -> None:
    await api.post(QUOTAS, quota(hard={"count/leases.coordination.k8s.io": 1}))
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    assert (await api.post(leases, {"metadata": {"name": "a"}})).status == 201
    said = await api.post(leases, {"metadata": {"name": "b"}})
    assert "requested: count/leases.coordination.k8s.io=1" in said.data["message"]


@run_by(asyncio.run)
async def test_it_is_counted_again_after_a_start() -> None:
    store = MemoryStore()
    async with Harness(store=store) as api:
        await api.post(f"{CORE}/secrets", {"metadata": {"name": "a"}})
        await api.post(QUOTAS, quota(hard={"secrets": 1}))
        again = Harness(store=store)
        async with again:
            said = await again.post(f"{CORE}/secrets", {"metadata": {"name": "b"}})
            assert "used: secrets=1" in said.data["message"]


@played
async def test_quotas_of_one_commit_are_counted_once(api: Harness, /) -> None:
    """A quota and what it counts, committed together."""
    made = await asyncio.gather(
        api.post(QUOTAS, quota(hard={"secrets": 2})), *(api.post(f"{CORE}/secrets", {"metadata": {"name": name}}) for name in "ab")
    )
    assert {each.status for each in made} == {201}
    said = await api.post(f"{CORE}/secrets", {"metadata": {"name": "c"}})
    assert "used: secrets=2," in said.data["message"]


@played
async def test_claims_keep_to_the_limits(api: Harness, /) -> None:
    item = {"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}, "min": {"storage": "1Gi"}}
    await api.post(f"{CORE}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [item]}})
    claims = f"{CORE}/persistentvolumeclaims"
    said = await api.post(claims, claim("c", "3Gi"))
    text = 'persistentvolumeclaims "c" is forbidden: maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi'
    assert (said.status, said.data["message"]) == (403, text)
    said = await api.post(claims, claim("c", "1Mi"))
    assert said.data["message"].endswith("minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi")
    assert (await api.post(claims, claim("c", "2Gi"))).status == 201
    await api.delete(f"{CORE}/limitranges/l")
    assert (await api.post(claims, claim("d", "3Gi"))).status == 201


@played
async def test_claimed_devices_count_by_their_class(api: Harness, /) -> None:
    gold = "gold.deviceclass.resource.k8s.io/devices"
    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    await api.post(QUOTAS, quota(hard={"count/resourceclaims.resource.k8s.io": 5, gold: 4}))
    one = {"name": "one", "exactly": {"deviceClassName": "gold", "count": 2}}
    either = {
        "name": "either",
        "firstAvailable": [{"name": name, "deviceClassName": "gold", "count": at} for at, name in enumerate("abc", 1)],
    }
    every = {"name": "every", "exactly": {"deviceClassName": "gold", "allocationMode": "All"}}
    for requests, wanted, status in (([one], 2, 201), ([one, either], 5, 403), ([every], 32, 403), ([one], 2, 201), ([one], 2, 403)):
        name = f"c{wanted}-{len(list(api.store.scan('resourceclaims.resource.k8s.io')))}"
        said = await api.post(claims, {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}})
        assert said.status == status, said.data
        if status == 403:
            assert f"requested: {gold}={wanted}," in said.data["message"]
