"""Clones, snapshots and restores, as `tests/clone_test.go` and `tests/storage` of KubeVirt want them."""

import asyncio
from typing import Any

import pytest

from paddock.engine.storage.errors import StoreFull
from tests.coroutines import played
from tests.kit.engine.fakehost import Data, FakeHost, machine
from tests.scenario.hosts.snapshotting import (
    CLONE,
    MACHINE,
    SNAPSHOT,
    TEMPLATE,
    VOLUMES,
    completed,
    conditions,
    restore,
    restored,
    snapshot,
    succeeded,
    taken,
    web,
)
from tests.scenario.upstream.asking import DV, MACHINES, REVISIONS, asked, names
from tests.scenario.upstream.test_plugging import added, disk
from tests.scenario.upstream.test_sizes import BOTH, TINY, made, sized

pytestmark = pytest.mark.spec("kubevirt", 110)
SNAPSHOTS = f"/apis/{SNAPSHOT}/namespaces/default/virtualmachinesnapshots"
RESTORES = f"/apis/{SNAPSHOT}/namespaces/default/virtualmachinerestores"
BOTH_KEYS = {"key1": "value1", "key2": "value2"}
MAC, OTHER_MAC = "02:00:00:00:00:01", "be:ad:00:00:be:04"


def source(strategy: str = "Halted", **more: Any) -> Data:
    """A machine with labels and annotations, a card and a disk that lasts."""
    body = machine(strategy=strategy, volumes=VOLUMES, templates=[TEMPLATE], networks=[{"name": "default", "pod": {}}], **more)
    body["metadata"] |= {"labels": dict(BOTH_KEYS), "annotations": dict(BOTH_KEYS)}
    body["spec"]["template"]["metadata"] = {"labels": dict(BOTH_KEYS), "annotations": dict(BOTH_KEYS)}
    devices = body["spec"]["template"]["spec"]["domain"]["devices"]
    devices["interfaces"] = [{"name": "default", "masquerade": {}, "macAddress": MAC}]
    return body


async def cloned(host: FakeHost, of: str = "web", target: str = "twin", **spec: Any) -> Data:
    """A clone that is ready; its target."""
    await clone(host, {**MACHINE, "name": of}, target, **spec)
    await asyncio.sleep(60)
    status = (await host.get("VirtualMachineClone", CLONE, target))["status"]
    assert status["phase"] == "Succeeded", status
    return await host.vm(target)


async def clone(host: FakeHost, of: Data, target: str = "twin", **spec: Any) -> None:
    body = {"source": of, "target": {**MACHINE, "name": target}, **spec}
    await host.make({"apiVersion": CLONE, "kind": "VirtualMachineClone", "metadata": {"name": target}, "spec": body})


def kept(metadata: Data, member: str) -> Data:
    """Those of our keys that came along."""
    return {key: value for key, value in (metadata.get(member) or {}).items() if key in BOTH_KEYS}


async def runs(host: FakeHost, name: str) -> None:
    """It can be started and stopped."""
    await asked(host, name, "start", seconds=20)
    await host.running(name)
    await asked(host, name, "stop", seconds=20)


@played
async def test_a_clone_has_everything_and_goes_with_its_target(host: FakeHost, /) -> None:
    await host.make(source())
    await asyncio.sleep(10)
    twin = await cloned(host)
    for where in (twin["metadata"], twin["spec"]["template"]["metadata"]):
        assert kept(where, "labels") == kept(where, "annotations") == BOTH_KEYS
    await runs(host, "twin")
    assert await names(host, SNAPSHOTS) == await names(host, RESTORES) == []
    await host.delete("VirtualMachine", "kubevirt.io/v1", "twin")
    await asyncio.sleep(60)
    assert await host.get("VirtualMachineClone", CLONE, "twin") == {}


@pytest.mark.parametrize("of", ["snapshot", "machine"])
@played
async def test_a_clone_waits_for_what_it_is_of(host: FakeHost, /, of: str) -> None:
    group = {"apiGroup": "snapshot.kubevirt.io", "kind": "VirtualMachineSnapshot", "name": "one"}
    await clone(host, group if of == "snapshot" else MACHINE)
    await asyncio.sleep(20)
    assert (await host.get("VirtualMachineClone", CLONE, "twin"))["status"]["phase"] != "Succeeded"
    assert "SourceDoesNotExist" in await host.events("twin")
    await host.make(source())
    await asyncio.sleep(10)
    if of == "snapshot":
        await host.make(snapshot())
    await asyncio.sleep(90)
    assert (await host.get("VirtualMachineClone", CLONE, "twin"))["status"]["phase"] == "Succeeded"
    await runs(host, "twin")
    assert await names(host, SNAPSHOTS) == (["one"] if of == "snapshot" else [])


@pytest.mark.parametrize("where", ["machine", "template"])
@played
async def test_a_clone_has_the_labels_and_annotations_that_were_chosen(host: FakeHost, /, where: str) -> None:
    await host.make(source())
    await asyncio.sleep(10)
    filters = {"labelFilters": ["*", "!key2"], "annotationFilters": ["key1"]}
    twin = await cloned(host, **(filters if where == "machine" else {"template": filters}))
    found = twin["metadata"] if where == "machine" else twin["spec"]["template"]["metadata"]
    assert kept(found, "labels") == kept(found, "annotations") == {"key1": "value1"}


@played
async def test_a_clone_has_the_addresses_and_numbers_it_was_given(host: FakeHost, /) -> None:
    await host.make(source(domain={}))
    await asyncio.sleep(10)
    twin = await cloned(host, newMacAddresses={"default": OTHER_MAC}, newSMBiosSerial="of-its-own")
    domain = twin["spec"]["template"]["spec"]["domain"]
    assert domain["devices"]["interfaces"][0]["macAddress"] == OTHER_MAC
    assert domain["firmware"]["serial"] == "of-its-own"
    assert domain["firmware"].get("uuid") != (await host.vm())["spec"]["template"]["spec"]["domain"].get("firmware", {}).get("uuid", "")
    await runs(host, "twin")


async def with_sizes(host: FakeHost, strategy: str) -> str:
    """A machine of an instancetype and a preference with a disk; the copy of the instancetype that it uses."""
    await made(host, "VirtualMachineInstancetype", TINY)
    await made(host, "VirtualMachinePreference", {"cpu": {"preferredCPUTopology": "sockets"}})
    body = sized(strategy, **BOTH)
    body["spec"]["dataVolumeTemplates"] = [TEMPLATE]
    body["spec"]["template"]["spec"]["volumes"] = [VOLUMES[0]]
    await host.make(body)
    await asyncio.sleep(20)
    return await copy_of(host, "web")


async def copy_of(host: FakeHost, name: str) -> str:
    return str((await host.vm(name))["status"]["instancetypeRef"]["controllerRevisionRef"]["name"])


@pytest.mark.parametrize("strategy", ["Always", "Halted"])
@played
async def test_a_clone_has_copies_of_its_sizes_of_its_own(host: FakeHost, /, strategy: str) -> None:
    before = await with_sizes(host, strategy)
    twin = await cloned(host)
    assert twin["spec"]["instancetype"]["name"] == "tiny" and await copy_of(host, "twin") not in ("", before)
    await host.change("twin", {"spec": {"runStrategy": "Always"}})
    await host.running("twin", seconds=20)
    assert (await host.vmi("twin"))["spec"]["domain"]["cpu"]["sockets"] == 2


@played
async def test_a_clone_can_be_cloned(host: FakeHost, /) -> None:
    await host.make(source())
    await asyncio.sleep(10)
    await cloned(host)
    await cloned(host, "twin", "third")
    for name in ("twin", "third"):
        await runs(host, name)


@pytest.mark.parametrize("strategy", ["Always", "Halted", "Manual"])
@played
async def test_a_snapshot_of_a_machine_whatever_its_strategy(host: FakeHost, /, strategy: str) -> None:
    await with_sizes(host, strategy)
    await host.make(snapshot())
    await asyncio.sleep(20)
    status = await taken(host)
    assert (status["phase"], status["readyToUse"]) == ("Succeeded", True)
    content = await host.get("VirtualMachineSnapshotContent", SNAPSHOT, status["virtualMachineSnapshotContentName"])
    held = content["spec"]["source"]["virtualMachine"]
    assert held["spec"]["runStrategy"] == strategy and held["spec"]["instancetype"]["name"] == "tiny"


@played
async def test_a_snapshot_without_volumes_leaves_the_guest_alone(host: FakeHost, /) -> None:
    await host.make(machine())
    ran = await host.running()
    ran.agent.connect()
    await asyncio.sleep(2)
    await host.make(snapshot())
    await asyncio.sleep(10)
    status = await succeeded(host)
    assert status["indications"] == ["GuestAgent", "Online"]
    assert "freeze" not in [name for name, *_ in ran.agent.calls]


@played
async def test_a_snapshot_of_a_paused_machine_says_so(host: FakeHost, /) -> None:
    await web(host)
    ran = await host.running()
    ran.agent.connect()
    await asked(host, "web", "pause", kind="VirtualMachineInstance")
    await host.make(snapshot())
    await asyncio.sleep(20)
    status = await taken(host)
    assert status["phase"] == "Succeeded" and status["indications"] == ["Online", "Paused"]
    assert "freeze" not in [name for name, *_ in ran.agent.calls]


@pytest.mark.parametrize("end", ["deleted", "deadline"])
@played
async def test_a_guest_is_thawed_when_its_snapshot_comes_to_nothing(host: FakeHost, /, end: str) -> None:
    await web(host)
    ran = await host.running()
    ran.agent.connect()
    await asyncio.sleep(2)

    async def slow(layers: Any) -> None:
        await asyncio.sleep(5)
        raise StoreFull("cannot make a layer", why="there is no space left")

    ran.overlay_disks = slow  # type: ignore[method-assign]
    await host.make(snapshot(failureDeadline="1m"))
    await asyncio.sleep(3)
    frozen = [ran.agent.is_frozen]
    if end == "deleted":
        await host.delete("VirtualMachineSnapshot", SNAPSHOT, "one")
    await asyncio.sleep(120)
    assert [*frozen, ran.agent.is_frozen] == [True, False]
    assert (await taken(host)).get("phase", "") == ("" if end == "deleted" else "Failed")


@played
async def test_a_freeze_that_fails_is_an_event(host: FakeHost, /) -> None:
    await web(host)
    ran = await host.running()
    ran.agent.connect()
    ran.agent.refuse["freeze"] = "busy"
    await host.make(snapshot())
    await asyncio.sleep(20)
    assert (await taken(host))["phase"] == "Succeeded"
    told = (await host.api.get("/api/v1/namespaces/default/events")).data["items"]
    assert any(each["type"] == "Warning" and "busy" in each["message"] for each in told)


@played
async def test_a_snapshot_has_disks_that_were_plugged_and_so_has_its_restore(host: FakeHost, /) -> None:
    await web(host)
    await host.running()
    await asked(host, "web", "addvolume", added("more", await disk(host, "more")))
    await host.make(snapshot())
    await asyncio.sleep(20)
    assert sorted((await taken(host))["snapshotVolumes"]["includedVolumes"]) == ["more", "root"]
    await host.make(restore(target="new"))
    await asyncio.sleep(30)
    await completed(host, target="new")
    await asked(host, "new", "start", seconds=20)
    assert sorted(each.name for each in (await host.running("new")).config.disks) == ["more", "root", "tmp"]


@pytest.mark.spec("kubevirt", 161)
@played
async def test_a_restore_waits_for_its_snapshot(host: FakeHost, /) -> None:
    await web(host, "Halted")
    await host.make(restore())
    await asyncio.sleep(20)
    assert (await restored(host)).get("complete") is False
    assert "VirtualMachineRestoreError" in await host.events("back")
    await host.make(snapshot())
    await asyncio.sleep(60)
    await completed(host)


@pytest.mark.spec("kubevirt", 160)
@played
async def test_a_restore_is_refused_while_another_one_is_in_progress(host: FakeHost, /) -> None:
    await web(host)
    await host.running()
    await host.make(snapshot())
    await asyncio.sleep(10)
    second = restore("second", targetReadinessPolicy="WaitEventually")
    bodies = [restore(targetReadinessPolicy="WaitEventually"), second]
    replies = await asyncio.gather(*(host.api.post(RESTORES, body) for body in bodies))
    assert [each.status for each in replies] == [201, 422]
    assert 'VirtualMachineRestore "back" in progress' in replies[1].data["message"]
    # It is refused later, too, and a restore of another machine is not.
    await asyncio.sleep(20)
    assert (await host.api.post(RESTORES, second)).status == 422
    assert (await host.api.post(RESTORES, restore("other", target="new"))).status == 201
    await asked(host, "web", "stop", seconds=120)
    await completed(host)
    await host.make(second)
    await asyncio.sleep(60)
    await completed(host, "second")


@played
async def test_a_restore_does_not_take_the_place_of_another_machine(host: FakeHost, /) -> None:
    await web(host, "Halted")
    await host.make(snapshot(), machine("other", "Halted"))
    await asyncio.sleep(10)
    before = await host.vm("other")
    await host.make(restore(target="other"))
    await asyncio.sleep(30)
    status = await restored(host)
    assert status.get("complete") is not True and conditions(status)["Failure"] == "True"
    why = "restore source and restore target are different but restore target already exists"
    found = {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}
    assert found["Ready"] == found["Progressing"] == ("False", why)
    assert all("there is a machine other already" in each["message"] for each in status["conditions"])
    assert "VirtualMachineRestoreError" in await host.events("back")
    assert await host.vm("other") == before


@pytest.mark.parametrize("address", [MAC, None])
@played
async def test_a_new_machine_may_have_another_address(host: FakeHost, /, address: str | None) -> None:
    body = source()
    interface = body["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"][0]
    interface["macAddress"] = address
    await host.make(body)
    await asyncio.sleep(10)
    await host.make(snapshot())
    await asyncio.sleep(10)
    place = "/spec/template/spec/domain/devices/interfaces/0/macAddress"
    patches = [f'{{"op": "replace", "path": "{place}", "value": "{OTHER_MAC}"}}']
    await host.make(restore(target="new", patches=patches))
    await asyncio.sleep(30)
    await completed(host, target="new")
    cards = [(await host.vm(name))["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"][0] for name in ("web", "new")]
    assert [each.get("macAddress") for each in cards] == [address, OTHER_MAC]
    await runs(host, "new")


@pytest.mark.spec("kubevirt", 162)
@pytest.mark.parametrize("strategy", ["Always", "Halted"])
@pytest.mark.parametrize("target", ["web", "new"])
@pytest.mark.parametrize("source", ["kept", "gone"])
@played
async def test_a_restore_has_the_sizes_of_its_snapshot(host: FakeHost, /, strategy: str, target: str, source: str) -> None:
    before = await with_sizes(host, strategy)
    await host.make(snapshot())
    await asyncio.sleep(20)
    kept = (await host.get("ControllerRevision", "apps/v1", before))["data"]
    if source == "gone":
        await host.delete("VirtualMachine", "kubevirt.io/v1", "web")
        await asyncio.sleep(60)
    place = "/apis/instancetype.kubevirt.io/v1beta1/namespaces/default/virtualmachineinstancetypes/tiny"
    assert (await host.api.merge(place, {"spec": {"cpu": {"guest": 3}}})).status == 200
    await host.make(restore(target=target, targetReadinessPolicy="StopTarget"))
    await asyncio.sleep(60)
    await completed(host, target=target)
    copy = await copy_of(host, target)
    assert (copy == before) is (target == "web")
    revision = await host.get("ControllerRevision", "apps/v1", copy)
    assert revision["data"] == kept
    await host.change(target, {"spec": {"runStrategy": "Always"}})
    await host.running(target, seconds=30)
    assert (await host.vmi(target))["spec"]["domain"]["cpu"]["sockets"] == 2
    # It belongs to the machine, and what the snapshot keeps belongs to that.
    await host.delete("VirtualMachineRestore", SNAPSHOT, "back")
    await asyncio.sleep(30)
    owners = (await host.get("ControllerRevision", "apps/v1", copy))["metadata"]["ownerReferences"]
    assert [(each["kind"], each["name"]) for each in owners] == [("VirtualMachine", target)]
    await host.delete("VirtualMachineSnapshot", SNAPSHOT, "one")
    for name in await names(host, MACHINES):
        await host.delete("VirtualMachine", "kubevirt.io/v1", name)
    await asyncio.sleep(120)
    assert await names(host, REVISIONS) == []


@played
async def test_a_snapshot_is_restored_as_often_as_one_likes(host: FakeHost, /) -> None:
    await web(host, "Halted")
    await host.make(snapshot())
    await asyncio.sleep(10)
    for name in ("first", "second", "third"):
        await host.make(restore(name))
        await asyncio.sleep(30)
        await completed(host, name)
        await runs(host, "web")


@pytest.mark.parametrize("target", ["web", "new"])
@pytest.mark.parametrize("of", ["datavolume", "claim"])
@pytest.mark.parametrize("policy", ["", "InPlace"])
@played
async def test_a_disk_that_is_no_template_is_restored(host: FakeHost, /, target: str, of: str, policy: str) -> None:
    if of == "datavolume":
        await host.make({"apiVersion": DV, "kind": "DataVolume", "metadata": {"name": "own"}, "spec": TEMPLATE["spec"]})
    else:
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await host.make({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "own"}, "spec": claim})
    await asyncio.sleep(20)
    volume = {"dataVolume": {"name": "own"}} if of == "datavolume" else {"persistentVolumeClaim": {"claimName": "own"}}
    await host.make(machine(strategy="Halted", volumes=[{"name": "root", **volume}]))
    await asyncio.sleep(5)
    await host.make(snapshot())
    await asyncio.sleep(10)
    more = {"volumeRestorePolicy": policy} if policy and target == "web" else {}
    await host.make(restore(target=target, **more))
    await asyncio.sleep(30)
    await completed(host, target=target)
    await runs(host, target)


@played
async def test_a_machine_starts_again_when_its_restore_is_deleted(host: FakeHost, /) -> None:
    await web(host, "Halted")
    await host.make(snapshot())
    await asyncio.sleep(10)
    host.engine.volumes.failures.extend([StoreFull("cannot restore", why="there is no space left")] * 100)
    await host.make(restore())
    await asyncio.sleep(10)
    reply = await host.verb("web", "start")
    assert reply.status >= 400 and "restore back" in reply.data["message"], reply.data
    host.engine.volumes.failures.clear()
    await host.delete("VirtualMachineRestore", SNAPSHOT, "back")
    await asyncio.sleep(10)
    await runs(host, "web")


@played
async def test_a_clone_is_restored(host: FakeHost, /) -> None:
    await host.make(source())
    await asyncio.sleep(10)
    await cloned(host)
    body = snapshot()
    body["spec"]["source"] = {**MACHINE, "name": "twin"}
    await host.make(body)
    await asyncio.sleep(10)
    await host.make(restore(target="twin"))
    await asyncio.sleep(30)
    await completed(host, target="twin")
    await runs(host, "twin")
