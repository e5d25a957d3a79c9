"""A machine is kept as it is said: what drifts comes back, what is deleted is made again, and where nothing differs nothing is written."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from paddock.dialects.stakater.kinds.marks import FINALIZER
from paddock.kubernetes.catalog import find
from tests.coroutines import played
from tests.scenario.fronts.stakater.stage import DISK, GROUP, KEY, Data, Stage, front

FULL: dict[str, Any] = {
    "sshPublicKey": {"data": KEY},
    "cloudInit": {"password": "a password"},
    "service": {"enabled": True},
    "additionalDisks": [DISK],
}


@pytest.mark.spec("stakater", 65)
@played
async def test_a_generated_machine_that_is_deleted_is_made_again(stage: Stage, /) -> None:
    await stage.make(front(**FULL))
    await stage.available()
    before = (await stage.host.vm())["metadata"]["uid"]
    disk = (await stage.volume("web-rootdisk"))["metadata"]["uid"]
    await stage.host.delete("VirtualMachine", "kubevirt.io/v1", "web")
    await stage.available(seconds=60)
    assert (await stage.host.vm())["metadata"]["uid"] != before
    # Its disks belonged to it.
    assert (await stage.volume("web-rootdisk"))["metadata"]["uid"] != disk
    assert await stage.host.running() is not None


@pytest.mark.spec("stakater", 65)
@pytest.mark.parametrize("strategy", ["Always", "Halted"])
@pytest.mark.parametrize("restarted", [False, True])
@played
async def test_a_root_disk_that_is_deleted_is_not_made_again(stage: Stage, /, strategy: str, restarted: bool) -> None:
    await stage.make(front())
    await stage.available()
    await stage.parameters(runStrategy=strategy)
    await stage.available()
    machine = (await stage.host.vm())["metadata"]["uid"]
    if restarted:
        await stage.host.end()
    await stage.host.delete("DataVolume", "cdi.kubevirt.io/v1beta1", "web-rootdisk")
    if restarted:
        await stage.host.begin()
    await asyncio.sleep(120)
    assert (await stage.said())["Synced"] == ("False", "RootDiskLost")
    # Nobody makes an empty one, also not when the machine ends.
    await stage.parameters(runStrategy="Halted")
    if strategy == "Always":
        await stage.host.change("web", {"spec": {"runStrategy": "Halted"}})
    await asyncio.sleep(600)
    assert await stage.volume("web-rootdisk") == {} and await stage.claim("web-rootdisk") == {}
    assert (await stage.said())["Synced"] == ("False", "RootDiskLost")
    assert (await stage.host.vm())["metadata"]["uid"] == machine
    # A disk that somebody restores under the name is taken.
    restored = {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataVolume",
        "metadata": {"name": "web-rootdisk"},
        "spec": {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "10Gi"}}}},
    }
    await stage.host.make(restored)
    await stage.parameters(runStrategy="Always")
    await stage.available(seconds=60)
    assert (await stage.volume("web-rootdisk"))["metadata"].get("ownerReferences") is None
    # Or everything begins anew.
    await stage.host.delete("DataVolume", "cdi.kubevirt.io/v1beta1", "web-rootdisk")
    await stage.host.delete("VirtualMachine", "kubevirt.io/v1", "web")
    await stage.available(seconds=120)
    assert (await stage.host.vm())["metadata"]["uid"] != machine
    assert (await stage.volume("web-rootdisk"))["metadata"]["ownerReferences"]


async def _refuse_writes_to_copies(stage: Stage) -> None:
    """Refuse changes of DataVolumes that stay, as CDI does to whoever may not copy their sources."""
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    rule = {"apiGroups": ["cdi.kubevirt.io"], "apiVersions": ["v1beta1"], "resources": ["datavolumes"], "operations": ["UPDATE"]}
    denial = {"expression": "has(object.metadata.deletionTimestamp)", "message": "insufficient permissions in clone source namespace"}
    policy = {"metadata": {"name": "cdi"}, "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [denial]}}
    binding = {"metadata": {"name": "cdi"}, "spec": {"policyName": "cdi", "validationActions": ["Deny"]}}
    for kind, document in (("ies", policy), ("ybindings", binding)):
        reply = await stage.api.post(path + kind, document)
        assert reply.status == 201, reply.data
    await asyncio.sleep(5)


@pytest.mark.spec("stakater", 72)
@pytest.mark.parametrize("end", ["deleted", "orphaned", "disk deleted"])
@played
async def test_a_root_disk_is_held_also_where_nobody_may_write_to_it(stage: Stage, /, end: str) -> None:
    await _refuse_writes_to_copies(stage)
    await stage.make(front(service={"enabled": True}))
    await stage.available()
    assert "infrastructure.stakater.com/root-disk" in (await stage.volume("web-rootdisk"))["metadata"]["finalizers"]
    if end == "disk deleted":
        await stage.host.delete("DataVolume", "cdi.kubevirt.io/v1beta1", "web-rootdisk")
        await asyncio.sleep(600)
        assert (await stage.said())["Synced"] == ("False", "RootDiskLost")
        assert await stage.volume("web-rootdisk") == {}
    await stage.delete(options="?propagationPolicy=Orphan" if end == "orphaned" else "")
    await asyncio.sleep(120)
    assert await stage.front() == {}
    if end == "orphaned":
        assert await stage.host.vm() != {}
        await stage.host.delete("VirtualMachine", "kubevirt.io/v1", "web")
        await asyncio.sleep(120)
    assert await stage.volume("web-rootdisk") == {} and await stage.claim("web-rootdisk") == {}


@pytest.mark.spec("stakater", 72)
@played
async def test_a_copy_of_a_machine_is_deleted_like_any_other(stage: Stage, /) -> None:
    """Its disk has the finalizer and the label of the template that it was copied from."""
    await stage.make(front())
    await stage.available()
    found = await stage.host.vm()
    template = found["spec"]["dataVolumeTemplates"][0]
    document = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "copy"}, "spec": found["spec"]}
    template["metadata"]["name"] = found["spec"]["template"]["spec"]["volumes"][0]["dataVolume"]["name"] = "copy-rootdisk"
    await stage.host.make(document)
    await asyncio.sleep(30)
    assert (await stage.volume("copy-rootdisk"))["metadata"]["finalizers"]
    await stage.host.delete("VirtualMachine", "kubevirt.io/v1", "copy")
    await asyncio.sleep(120)
    assert await stage.volume("copy-rootdisk") == {}
    await stage.available()
    assert await stage.volume("web-rootdisk") != {}


@pytest.mark.spec("stakater", 66)
@pytest.mark.parametrize(("strategy", "comes_back"), [("Always", True), ("RerunOnFailure", False), ("Manual", False)])
@played
async def test_a_stop_by_hand_stays_unless_the_machine_is_always_to_run(stage: Stage, /, strategy: str, comes_back: bool) -> None:
    await stage.make(front(runStrategy="Always"))
    await stage.available()
    await stage.parameters(runStrategy=strategy)
    await asyncio.sleep(10)
    first = await stage.host.running()
    await stage.stop()
    await asyncio.sleep(600)
    vm = await stage.host.vm()
    assert vm["spec"]["runStrategy"] == strategy
    if comes_back:
        assert (await stage.host.running()).id != first.id
        await stage.available()
    else:
        assert await stage.host.vmi() == {} and (await stage.vm())["printableStatus"] == "Stopped"
        assert (await stage.said())["Ready"] == ("False", "Unavailable")
        assert await stage.message() == "Stopped"


async def _spoil_machine(stage: Stage) -> None:
    change = {"metadata": {"labels": {"infrastructure.stakater.com/virtual-machine": "other"}}, "spec": {"runStrategy": "Halted"}}
    await stage.host.change("web", change)


async def _spoil_service(stage: Stage) -> None:
    reply = await stage.api.merge("/api/v1/namespaces/default/services/web-lb", {"spec": {"selector": None}})
    assert reply.status == 200


async def _spoil_secret(stage: Stage) -> None:
    reply = await stage.api.merge("/api/v1/namespaces/default/secrets/web-ssh-key", {"data": {"key": "bm8="}})
    assert reply.status == 200


async def _lose_service(stage: Stage) -> None:
    assert (await stage.api.delete("/api/v1/namespaces/default/services/web-lb")).status == 200


async def _lose_secret(stage: Stage) -> None:
    await stage.host.delete("Secret", "v1", "web-cloudinit")


async def _disown(stage: Stage) -> None:
    reply = await stage.api.merge("/api/v1/namespaces/default/secrets/web-cloudinit", {"metadata": {"ownerReferences": None}})
    assert reply.status == 200


def _said(document: Data) -> Data:
    meta = {name: document["metadata"].get(name) for name in ("labels", "ownerReferences")}
    return {**{name: value for name, value in document.items() if name in ("spec", "data", "type")}, "metadata": meta}


DRIFTS = [_spoil_machine, _spoil_service, _spoil_secret, _lose_service, _lose_secret, _disown]


@pytest.mark.parametrize("drift", DRIFTS, ids=[each.__name__ for each in DRIFTS])
@pytest.mark.parametrize("unseen", [False, True])
@played
async def test_what_drifts_comes_back(stage: Stage, /, drift: Callable[[Stage], Awaitable[None]], unseen: bool) -> None:
    """Also what nobody saw, because the controllers were away."""

    async def everything(stage: Stage) -> list[Data]:
        found = [await stage.host.vm(), await stage.service(), await stage.secret("web-ssh-key"), await stage.secret("web-cloudinit")]
        return [_said(each) for each in found]

    await stage.make(front(**FULL))
    await stage.available()
    before = await everything(stage)
    if unseen:
        await stage.host.end()
    await drift(stage)
    if unseen:
        await stage.host.begin()
    await stage.available(seconds=60)
    for old, new in zip(before, await everything(stage), strict=True):
        for each in (old, new):
            # A Service that is made anew has other addresses.
            for name in ("clusterIP", "clusterIPs"):
                each.get("spec", {}).pop(name, None)
            for port in each.get("spec", {}).get("ports", ()):
                port.pop("nodePort", None)
        assert new == old


@played
async def test_where_nothing_differs_nothing_is_written(stage: Stage, /) -> None:
    """Over an hour of sweeps, after a restart, and when the manifest is applied again."""
    names = ("web", "rest")
    await stage.make(front(**FULL), front("rest", runStrategy="Halted"))
    for name in names:
        await stage.available(name)
    before = await stage.everything()
    await asyncio.sleep(3600)
    assert await stage.everything() == before
    await stage.host.again()
    await asyncio.sleep(600)
    assert await stage.everything() == before
    requests = stage.host.control.program.machinery.metrics.text()
    assert not [line for line in requests.splitlines() if 'method="PATCH",resource="virtualmachines.kubevirt.io"' in line]


@played
async def test_a_manifest_that_is_applied_shows_no_difference_for_life(stage: Stage, /) -> None:
    """The requests of `kubectl apply --server-side` and `kubectl diff --server-side`."""
    manifest = front(**FULL)

    async def applied(stage: Stage, *, dry: bool) -> Data:
        query = "?fieldManager=kubectl" + ("&dryRun=All" if dry else "")
        reply = await stage.api.call("PATCH", stage.path("web") + query, manifest, content_type="application/apply-patch+yaml")
        assert reply.status in (200, 201), reply.data
        return dict(reply.data)

    await applied(stage, dry=False)
    for _ in range(4):
        await asyncio.sleep(3)
        now = await stage.front()
        again = await applied(stage, dry=True)
        for each in (now, again):
            each["metadata"].pop("managedFields", None)
        assert again == now
    await stage.available()
    now = await stage.front()
    await applied(stage, dry=False)
    await asyncio.sleep(5)
    assert (await stage.front())["metadata"]["resourceVersion"] == now["metadata"]["resourceVersion"]
    # Nothing of ours is in it but the status; the finalizer is nobody's, because the server put it on.
    ours = [each for each in now["metadata"]["managedFields"] if each["manager"] != "kubectl"]
    spec = [each for each in ours if not each.get("subresource")]
    assert (spec, now["metadata"]["finalizers"]) == ([], [FINALIZER])
    kind = find("infrastructure.stakater.com", "VirtualMachine")
    assert kind is not None and now["spec"].keys() == {"parameters"}


@played
async def test_a_status_is_written_once_for_each_change(stage: Stage, /) -> None:
    async with stage.api.watch(f"{GROUP}/virtualmachines?watch=true") as fronts:
        await stage.make(front())
        await stage.available()
        seen = []
        while not await fronts.quiet():
            each = (await fronts.next())["object"]
            seen.append((each.get("status"), each["metadata"].get("finalizers"), each["spec"]))
    assert all(one != other for one, other in itertools.pairwise(seen))
    # Made, finalizer, and the states of the generated machine as they come.
    assert len(seen) <= 10, len(seen)


@pytest.mark.parametrize("pause", [0.0, 0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0])
@played
async def test_a_restart_at_any_moment_leads_to_the_same_end(stage: Stage, /, pause: float) -> None:
    """While it is made, changed and cleared away."""
    await stage.make(front(**FULL))
    await asyncio.sleep(pause)
    await stage.host.again()
    await stage.available(seconds=60)
    machine = await stage.host.running()
    await stage.parameters(service={"port": 2222}, additionalLabels={"tier": "web"}, storage={"size": "12Gi"})
    await asyncio.sleep(pause)
    await stage.host.again()
    await stage.available(seconds=60)
    assert (await stage.host.vm())["metadata"]["labels"]["tier"] == "web"
    assert [each["port"] for each in (await stage.service())["spec"]["ports"]] == [2222]
    assert await stage.host.running() is machine and machine.observed.run == 1
    await stage.delete()
    await asyncio.sleep(pause)
    await stage.host.again()
    await asyncio.sleep(120)
    assert await stage.front() == {} and await stage.everything() == {}
