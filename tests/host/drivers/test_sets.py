"""A VMSet with real guests on a Provider of type qemu: none, two, one, none; placed by a policy over the server's own node."""

from typing import Any

import pytest

from paddock.base.images.build import tiny
from tests.coroutines import played
from tests.host.guests import Shelf
from tests.host.runs.conftest import PROMPT, VMIS, Data, Talk, condition

pytestmark = pytest.mark.needs("qemu")
REFS = ("providerRef", "classRef", "imageRef", "placementRef")
API = "infra.virtrigaud.io/v1beta1"
BASE = f"/apis/{API}/namespaces/default"
SET, MACHINES = f"{BASE}/vmsets/web", f"{BASE}/virtualmachines"


def body(kind: str, name: str, **spec: Any) -> Data:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


async def made(talk: Talk, url: str, node: str) -> None:
    runtime = {"image": "none:1"}
    provider = body("Provider", "here", type="qemu", endpoint="qemu:///system", credentialSecretRef={"name": "none"}, runtime=runtime)
    await talk.make(f"{BASE}/providers", provider)
    await talk.make(f"{BASE}/vmclasses", body("VMClass", "tiny", cpu=1, memory="256Mi", diskDefaults={"size": "1Gi"}))
    await talk.make(f"{BASE}/vmimages", body("VMImage", "tiny", source={"http": {"url": url}}))
    rules = {"hard": {"hosts": [node]}, "resourceConstraints": {"minMemoryPerHost": "64Mi"}}
    await talk.make(f"{BASE}/vmplacementpolicies", body("VMPlacementPolicy", "here", **rules))
    refs = {name: {"name": "tiny" if name in ("classRef", "imageRef") else "here"} for name in REFS}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": refs}
    strategy = {"rollingUpdate": {"podManagementPolicy": "Parallel"}}
    labels = {"matchLabels": {"app": "web"}}
    await talk.make(f"{BASE}/vmsets", body("VMSet", "web", replicas=0, selector=labels, template=template, updateStrategy=strategy))


async def scaled(talk: Talk, replicas: int) -> Data:
    """Scale as kubectl does, and wait for the machines."""
    await talk.change(f"{SET}/scale", {"spec": {"replicas": replicas}})

    def complete(found: Data) -> bool:
        status = found.get("status") or {}
        current = status.get("observedGeneration") == found["metadata"]["generation"]
        return current and condition(found, "Ready").get("status") == "True" and status.get("readyReplicas") == replicas

    return await talk.until(SET, complete, f"{replicas} machines are ready", 120)


@pytest.mark.spec("virtrigaud", 21, 47, 93)
@played
async def test_a_set_of_guests_grows_and_shrinks(talk: Talk, /, web: Shelf, tiny_guest: tiny.TinyImage) -> None:
    (node,) = (each["metadata"]["name"] for each in (await talk.get("/api/v1/nodes"))["items"])
    await made(talk, web.put(tiny_guest.disk), node)
    await talk.until(SET, lambda found: condition(found, "Ready").get("status") == "True", "a set of none is complete")
    status = (await scaled(talk, 2))["status"]
    assert [each["name"] for each in status["vmStatus"]] == ["web-0", "web-1"] and len(talk.host.qemus()) == 2
    for name in ("web-0", "web-1"):
        async with talk.console(name) as console:
            await console.write(b"\r")
            await console.until(PROMPT, 120)
        assert (await talk.get(f"{MACHINES}/{name}"))["status"]["provider"]["paddock.io/placed-host"] == node
    first = (await talk.get(f"{VMIS}/web-0"))["metadata"]["uid"]
    await scaled(talk, 1)
    await talk.until(f"{MACHINES}/web-1", lambda found: not found, "the machine with the highest ordinal is gone")
    assert len(talk.host.qemus()) == 1 and (await talk.get(f"{VMIS}/web-0"))["metadata"]["uid"] == first
    assert (await talk.get(f"{SET}/scale"))["status"] == {"replicas": 1, "selector": "app=web"}
    await talk.client.request("DELETE", SET)
    await talk.until(MACHINES, lambda found: not found["items"], "the machines go with the set")
    assert not talk.host.qemus()
