"""Namespaces from their beginning to their end (docs/spec/kube-api.md section 5.3)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from paddock.server.housekeeping.background import BackgroundControllers
from tests.coroutines import played_by
from tests.kit.servers.apiharness import Harness

Script = Callable[[Harness, BackgroundControllers], Awaitable[None]]
SPACES = "/api/v1/namespaces"


def play(script: Script) -> None:
    async def inside() -> None:
        async with Harness() as api:
            house = BackgroundControllers(api.parts, "-----BEGIN CERTIFICATE-----\n")
            house.start()
            try:
                async with asyncio.timeout(20):
                    await house.settled()
                    await script(api, house)
            finally:
                await house.stop()

    asyncio.run(inside())


def space(name: str = "team") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


@pytest.mark.spec("kube-api", 115)
@played_by(play)
async def test_a_namespace_is_furnished(api: Harness, house: BackgroundControllers, /) -> None:
    made = (await api.post(SPACES, space())).data
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}
    assert (made["spec"], made["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})
    await house.settled()
    assert (await api.get(f"{SPACES}/team/serviceaccounts/default")).status == 200
    authority = f"{SPACES}/team/configmaps/kube-root-ca.crt"
    assert (await api.get(authority)).data["data"] == {"ca.crt": "-----BEGIN CERTIFICATE-----\n"}
    await api.delete(f"{SPACES}/team/serviceaccounts/default")
    await api.merge(authority, {"data": {"ca.crt": "mine"}})
    await house.settled()
    assert (await api.get(f"{SPACES}/team/serviceaccounts/default")).status == 200
    assert (await api.get(authority)).data["data"] == {"ca.crt": "-----BEGIN CERTIFICATE-----\n"}


@pytest.mark.spec("kube-api", 100)
@played_by(play)
async def test_a_namespace_goes_when_it_is_empty(api: Harness, house: BackgroundControllers, /) -> None:
    await api.post(SPACES, space())
    held = {"apiVersion": "vitistack.io/v1alpha1", "kind": "NetworkConfiguration"}
    metadata = {"name": "n", "finalizers": ["example.com/hold"]}
    networks = "/apis/vitistack.io/v1alpha1/namespaces/team/networkconfigurations"
    assert (await api.post(networks, held | {"metadata": metadata, "spec": {}})).status == 201
    deleted = await api.delete(f"{SPACES}/team")
    assert (deleted.status, deleted.data["status"]["phase"]) == (200, "Terminating")
    refused = await api.post(f"{SPACES}/team/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    assert (refused.status, refused.reason) == (403, "Forbidden")
    assert refused.data["message"] == (
        'configmaps "a" is forbidden: unable to create new content in namespace team because it is being terminated'
    )
    assert refused.data["details"]["causes"] == [
        {"reason": "NamespaceTerminating", "message": "namespace team is being terminated", "field": "metadata.namespace"}
    ]
    await house.settled()
    conditions = {each["type"]: each for each in (await api.get(f"{SPACES}/team")).data["status"]["conditions"]}
    assert conditions["NamespaceContentRemaining"]["reason"] == "SomeResourcesRemain"
    assert "networkconfigurations.vitistack.io has 1 resource instances" in conditions["NamespaceContentRemaining"]["message"]
    assert "example.com/hold in 1 resource instances" in conditions["NamespaceFinalizersRemaining"]["message"]
    assert (await api.get(f"{SPACES}/team/configmaps")).data["items"] == []
    await api.merge(f"{networks}/n", {"metadata": {"finalizers": None}})
    await house.settled()
    assert (await api.get(f"{SPACES}/team")).status == 404


@pytest.mark.spec("kube-api", 100)
@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
@played_by(play)
async def test_some_namespaces_stay(api: Harness, house: BackgroundControllers, /, name: str) -> None:
    await api.namespace(name)
    refused = await api.delete(f"{SPACES}/{name}")
    assert (refused.status, refused.data["message"]) == (403, f'namespaces "{name}" is forbidden: this namespace may not be deleted')


@played_by(play)
async def test_others_may_hold_a_namespace_by_its_spec(api: Harness, house: BackgroundControllers, /) -> None:
    made = (await api.post(SPACES, space())).data
    made["spec"]["finalizers"].append("example.com/mine")
    ignored = await api.put(f"{SPACES}/team", made)
    assert ignored.data["spec"]["finalizers"] == ["kubernetes"]
    made["metadata"].pop("resourceVersion")
    held = await api.put(f"{SPACES}/team/finalize", made)
    assert held.data["spec"]["finalizers"] == ["kubernetes", "example.com/mine"]
    await api.delete(f"{SPACES}/team")
    await house.settled()
    assert (await api.get(f"{SPACES}/team")).data["spec"]["finalizers"] == ["example.com/mine"]
    released = (await api.get(f"{SPACES}/team")).data
    released["spec"] = {}
    assert (await api.put(f"{SPACES}/team/finalize", released)).status == 200
    assert (await api.get(f"{SPACES}/team")).status == 404
