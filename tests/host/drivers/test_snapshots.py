"""VirtRigaud's snapshots with a real guest: what is written after a snapshot is gone after the revert, and nothing is left in the end."""

from functools import partial
from typing import Any

import pytest

from paddock.base.images.build import tiny
from tests.coroutines import played
from tests.host.guests import Shelf
from tests.host.runs.conftest import PROMPT, VMS, Console, Data, Talk, condition, phase

pytestmark = pytest.mark.needs("qemu")
API = "infra.virtrigaud.io/v1beta1"
BASE = f"/apis/{API}/namespaces/default"
MACHINE, SNAPSHOT = f"{BASE}/virtualmachines/web", f"{BASE}/vmsnapshots"
KEPT = "/apis/snapshot.kubevirt.io/v1beta1/namespaces/default/virtualmachinesnapshots"
VOLUMES = "/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots"


def made(kind: str, name: str, **spec: Any) -> Data:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


def world(url: str) -> list[tuple[str, Data]]:
    """A machine of a Provider of type qemu with a data disk."""
    none = {"name": "none"}
    here = made("Provider", "here", type="qemu", endpoint="qemu:///system", credentialSecretRef=none, runtime={"image": "none:1"})
    disks = [{"name": "data", "sizeGiB": 1}]
    hook = {"preStop": {"snapshot": {"name": "before-stop"}}}
    refs = {f"{kind}Ref": {"name": name} for kind, name in (("provider", "here"), ("class", "small"), ("image", "tiny"))}
    return [
        ("providers", here),
        ("vmclasses", made("VMClass", "small", cpu=1, memory="128Mi", diskDefaults={"size": "1Gi"})),
        ("vmimages", made("VMImage", "tiny", source={"http": {"url": url}})),
        ("virtualmachines", made("VirtualMachine", "web", **refs, disks=disks, lifecycle=hook)),
    ]


def runs(found: Data) -> bool:
    current = found.get("status", {}).get("observedGeneration") == found.get("metadata", {}).get("generation")
    return current and phase(found) == "Running" and condition(found, "Ready").get("status") == "True"


async def ready(console: Console) -> None:
    await console.write(b"\r")
    await console.until(PROMPT, 120)


def has(count: int, found: Data) -> bool:
    """Return whether a list has so many objects."""
    return len(found["items"]) == count


@pytest.mark.spec("virtrigaud", 37, 44, 74, 78, 79)
@played
async def test_a_revert_brings_the_data_back(talk: Talk, /, web: Shelf, tiny_guest: tiny.TinyImage) -> None:
    for plural, body in world(web.put(tiny_guest.disk)):
        await talk.make(f"{BASE}/{plural}", body)
    await talk.until(MACHINE, runs, "it runs", 120)
    async with talk.console("web") as console:
        await ready(console)
        await console.shell("echo before | dd of=/dev/vdb conv=notrunc; sync")
        await talk.make(SNAPSHOT, made("VMSnapshot", "kept", vmRef={"name": "web"}))
        kept = await talk.until(f"{SNAPSHOT}/kept", lambda found: phase(found) == "Ready", "it is taken")
        assert kept["status"]["virtualSize"] == "11Gi" and condition(kept, "Ready")["status"] == "True"
        await console.shell("echo after- | dd of=/dev/vdb conv=notrunc; sync")
        assert "after-" in await console.shell("head -c 6 /dev/vdb")
    await talk.change(MACHINE, {"spec": {"snapshot": {"revertToRef": {"name": "kept"}}}})
    seen = await talk.until(MACHINE, lambda found: phase(found) == "Reconfiguring", "it goes back")
    assert condition(seen, "Reconfiguring")["reason"] == "Reverting"
    found = await talk.until(MACHINE, runs, "it runs again", 120)
    assert condition(found, "Reverted")["status"] == "True"
    async with talk.console("web") as console:
        await ready(console)
        assert "before" in await console.shell("head -c 6 /dev/vdb")
    assert [each["name"] for each in found["status"]["snapshots"]] == ["kept"]
    await talk.client.request("DELETE", f"{SNAPSHOT}/kept")
    await talk.until(f"{SNAPSHOT}/kept", lambda gone: not gone, "the snapshot is deleted")
    assert has(0, await talk.get(KEPT)) and has(0, await talk.get(VOLUMES))
    await talk.change(MACHINE, {"spec": {"powerState": "Off", "snapshot": None}})
    off = await talk.until(MACHINE, lambda now: phase(now) == "Stopped" and now["status"].get("snapshots"), "its hook has taken one")
    assert condition(off, "PreStop")["reason"] == "Succeeded" and has(1, await talk.get(KEPT))
    await talk.client.request("DELETE", MACHINE)
    await talk.until(MACHINE, lambda gone: not gone, "the machine is deleted", 120)
    for path in (SNAPSHOT, KEPT, VOLUMES, VMS):
        await talk.until(path, partial(has, 0), f"nothing is left of {path}")
    assert not talk.host.qemus()
