"""Snapshots, restores and clones on a whole host: what users ask for, and what is there when something dies in between."""

import asyncio
from typing import Any

import pytest

from paddock.engine.machine.errors import AgentError
from paddock.engine.storage.errors import StoreFull
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubevirt.controllers.snapshots.locks import MachineLock
from tests.coroutines import played
from tests.kit.engine.fakehost import FakeHost, machine
from tests.scenario.hosts.snapshotting import (
    CLONE,
    DV,
    MACHINE,
    SNAPSHOT,
    TEMPLATE,
    VOLUME_SNAPSHOT,
    VOLUMES,
    check_data_volume_owns,
    claim_of,
    conditions,
    content_of,
    restore,
    restored,
    snapshot,
    succeeded,
    taken,
    web,
)

# --- snapshots ------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("kubevirt", 163)
@pytest.mark.spec("kubevirt", 79)
@pytest.mark.parametrize("agent", ["there", "absent", "refuses"])
@played
async def test_online_snapshot_freezes_and_always_thaws(host: FakeHost, /, agent: str) -> None:
    await web(host)
    running = await host.running()
    if agent != "absent":
        running.agent.connect()
    if agent == "refuses":
        running.agent.refuse["freeze"] = "busy"
    await host.make(snapshot())
    await asyncio.sleep(10)
    status = await succeeded(host)
    said = {
        "there": ["GuestAgent", "Online"],
        "absent": ["NoGuestAgent", "Online"],
        "refuses": ["Online", "QuiesceFailed"],
    }
    assert status["indications"] == said[agent]
    assert status["snapshotVolumes"] == {"includedVolumes": ["root"], "excludedVolumes": ["tmp"]}
    calls = [name for name, *_ in running.agent.calls if name in ("freeze", "thaw")]
    assert calls == ([] if agent == "absent" else ["freeze", "thaw"])
    assert not running.agent.is_frozen and len(running.overlays) == 1
    assert "snapshotInProgress" not in (await host.vm())["status"]
    content = await host.get("VirtualMachineSnapshotContent", SNAPSHOT, status["virtualMachineSnapshotContentName"])
    assert content["spec"]["source"]["virtualMachine"]["metadata"]["name"] == "web"
    backup = content["spec"]["volumeBackups"][0]
    made = await host.get("VolumeSnapshot", VOLUME_SNAPSHOT, backup["volumeSnapshotName"])
    assert made["status"]["readyToUse"] is True and made["metadata"]["uid"] in host.engine.volumes.snapshots
    labels = {"snapshot.kubevirt.io/source-vm-name": "web", "snapshot.kubevirt.io/source-vm-namespace": "default"}
    assert labels.items() <= made["metadata"]["labels"].items()
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == (content["kind"], content["metadata"]["uid"], True)


@pytest.mark.spec("kubevirt", 79)
@played
async def test_a_guest_left_frozen_is_thawed_when_paddock_is_back(host: FakeHost, /) -> None:
    await web(host)
    running = await host.running()
    running.agent.connect()
    thaw = running.agent.thaw

    async def dead() -> int:
        raise AgentError("nobody is there", reason="NotConnected")

    async def never(layers: Any) -> None:
        await asyncio.Event().wait()

    overlay = running.overlay_disks
    # The process dies after the freeze: nothing that follows happens.
    running.overlay_disks, running.agent.thaw = never, dead  # type: ignore[method-assign]
    await host.make(snapshot())
    await asyncio.sleep(5)
    assert bool(running.agent.is_frozen)
    assert (await host.vm())["status"]["snapshotInProgress"] == "one"
    await host.end()
    running.overlay_disks, running.agent.thaw = overlay, thaw  # type: ignore[method-assign]
    await host.begin()
    await asyncio.sleep(20)
    assert not bool(running.agent.is_frozen)
    status = await taken(host)
    assert (status["phase"], status["sourceUID"]) == ("Succeeded", (await host.vm())["metadata"]["uid"])
    events = (await host.api.get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=one")).data["items"]
    assert "SuccessfulVirtualMachineSnapshotContentCreate" in {each["reason"] for each in events}
    assert "snapshotInProgress" not in (await host.vm())["status"]
    assert len(host.engine.volumes.snapshots) == 1


@pytest.mark.spec("kubevirt", 79)
@played
async def test_a_guest_left_frozen_is_thawed_without_a_snapshot_to_finish(host: FakeHost, /) -> None:
    await host.make(machine())
    running = await host.running()
    running.agent.connect()
    await host.end()
    running.agent.is_frozen = True
    await host.begin()
    await asyncio.sleep(10)
    assert not running.agent.is_frozen


@pytest.mark.spec("kubevirt", 79)
@played
async def test_offline_snapshot_and_its_end(host: FakeHost, /) -> None:
    await web(host, "Halted")
    await host.make(snapshot(), snapshot("kept", deletionPolicy="Retain"))
    await asyncio.sleep(20)
    for name in ("one", "kept"):
        assert (await taken(host, name))["phase"] == "Succeeded"
        assert "indications" not in await taken(host, name)
    assert len(host.engine.volumes.snapshots) == 2
    kept = (await taken(host, "kept"))["virtualMachineSnapshotContentName"]
    for name in ("one", "kept"):
        await host.delete("VirtualMachineSnapshot", SNAPSHOT, name)
    await asyncio.sleep(10)
    assert await taken(host) == {} and await taken(host, "kept") == {}
    contents = (await host.api.get(f"/apis/{SNAPSHOT}/namespaces/default/virtualmachinesnapshotcontents")).data["items"]
    assert [each["metadata"]["name"] for each in contents] == [kept]
    assert len(host.engine.volumes.snapshots) == 1


@played
async def test_a_snapshot_that_cannot_be_taken_ends_at_its_deadline(host: FakeHost, /) -> None:
    await web(host)
    running = await host.running()

    async def full(layers: Any) -> None:
        raise StoreFull("cannot make a layer", why="there is no space left")

    running.overlay_disks = full  # type: ignore[method-assign]
    await host.make(snapshot(failureDeadline="1m"))
    await asyncio.sleep(30)
    assert (await taken(host))["phase"] == "InProgress"
    reply = await host.api.merge(host.place("VirtualMachine", "kubevirt.io/v1", name="web"), {"spec": {"runStrategy": "Halted"}})
    assert reply.status == 422 and "snapshot one" in reply.data["message"]
    await asyncio.sleep(60)
    status = await taken(host)
    assert status["phase"] == "Failed" and "no space left" in status["error"]["message"]
    (failure,) = (each for each in status["conditions"] if each["type"] == "Failure")
    assert failure["reason"] == "snapshot deadline exceeded" and "no space left" in failure["message"]
    for kind in ("virtualmachinesnapshotcontents", "volumesnapshots"):
        group = SNAPSHOT if kind.startswith("virtual") else VOLUME_SNAPSHOT
        assert (await host.api.get(f"/apis/{group}/namespaces/default/{kind}")).data["items"] == []
    assert "snapshotInProgress" not in (await host.vm())["status"]


@played
async def test_a_claim_that_is_deleted_while_its_snapshot_begins(
    host: FakeHost, /, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The content has the claim as it was; the snapshot says what is missing and waits."""
    claim = ("PersistentVolumeClaim", "v1", "disk")
    lock = MachineLock.lock

    async def late(self: MachineLock, machine: CachedObject, name: str) -> bool:
        monkeypatch.setattr(MachineLock, "lock", lock)
        is_locked = await lock(self, machine, name)
        await host.delete(*claim)
        await asyncio.sleep(5)
        return is_locked

    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await host.make({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "disk"}, "spec": size})
    await host.make(machine(strategy="Halted", volumes=[{"name": "root", "persistentVolumeClaim": {"claimName": "disk"}}]))
    await asyncio.sleep(10)
    monkeypatch.setattr(MachineLock, "lock", late)
    await host.make(snapshot())
    await asyncio.sleep(30)
    status = await taken(host)
    assert await host.get(*claim) == {} and status["phase"] == "InProgress"
    assert "volume not bound: disk" in {each.get("message") for each in status["conditions"]}
    contents = (await host.api.get(f"/apis/{SNAPSHOT}/namespaces/default/virtualmachinesnapshotcontents")).data["items"]
    backups = [backup for each in contents for backup in each["spec"]["volumeBackups"]]
    assert [each["persistentVolumeClaim"]["metadata"]["name"] for each in backups] == ["disk"]
    assert not [each for each in caplog.messages if "a reconcile broke" in each]


@pytest.mark.spec("kubevirt", 79)
@played
async def test_a_status_that_somebody_removes_comes_back_as_it_was(host: FakeHost, /) -> None:
    await web(host, "Halted")
    await host.make(snapshot())
    await asyncio.sleep(20)
    before = await succeeded(host)
    path = f"/apis/{SNAPSHOT}/namespaces/default/virtualmachinesnapshots/one/status"
    await host.api.merge(path, {"status": None})
    await asyncio.sleep(20)
    after = await succeeded(host)
    members = ("sourceUID", "creationTime", "virtualMachineSnapshotContentName", "snapshotVolumes")
    assert [after[each] for each in members] == [before[each] for each in members]


@pytest.mark.spec("kubevirt", 79)
@played
async def test_a_content_says_of_its_volume_snapshots_what_they_say(host: FakeHost, /) -> None:
    await web(host, "Halted")
    await host.make(snapshot())
    await asyncio.sleep(20)
    name = (await succeeded(host))["virtualMachineSnapshotContentName"]
    (said,) = (await host.get("VirtualMachineSnapshotContent", SNAPSHOT, name))["status"]["volumeSnapshotStatus"]
    made = (await host.get("VolumeSnapshot", VOLUME_SNAPSHOT, said["volumeSnapshotName"]))["status"]
    assert said["readyToUse"] is True and said["creationTime"] == made["creationTime"]
    path = f"/apis/{VOLUME_SNAPSHOT}/namespaces/default/volumesnapshots/{said['volumeSnapshotName']}/status"
    error = {"time": "2027-01-15T08:00:02Z", "message": "bad stuff"}
    await host.api.merge(path, {"status": {"error": error}})
    await asyncio.sleep(10)
    content = (await host.get("VirtualMachineSnapshotContent", SNAPSHOT, name))["status"]
    assert [each["error"] for each in content["volumeSnapshotStatus"]] == [error]
    assert content["readyToUse"] is True and "error" not in content
    assert (await succeeded(host)).get("error") is None


@played
async def test_a_machine_without_lasting_volumes_has_snapshots_and_stays_free(host: FakeHost, /) -> None:
    await host.make(machine(strategy="Halted"))
    await asyncio.sleep(5)
    await host.make(snapshot())
    await asyncio.sleep(10)
    assert (await taken(host))["phase"] == "Succeeded"
    assert "snapshotInProgress" not in (await host.vm())["status"]


@played
async def test_layers_are_merged_when_the_machine_has_ended(host: FakeHost, /) -> None:
    await web(host)
    await host.running()
    await host.make(snapshot())
    await asyncio.sleep(10)
    await host.delete("VirtualMachineSnapshot", SNAPSHOT, "one")
    await asyncio.sleep(10)
    volume = (await host.get("PersistentVolumeClaim", "v1", "disk"))["metadata"]["uid"]
    host.engine.volumes.collapsed.clear()
    await asyncio.sleep(60)
    assert host.engine.volumes.collapsed == []
    await host.change("web", {"spec": {"runStrategy": "Halted"}})
    await asyncio.sleep(10)
    assert volume in host.engine.volumes.collapsed


@played
async def test_a_volume_snapshot_of_a_user_while_the_machine_runs(host: FakeHost, /) -> None:
    await web(host)
    running = await host.running()
    running.agent.connect()
    spec = {"source": {"persistentVolumeClaimName": "disk"}}
    await host.make({"apiVersion": VOLUME_SNAPSHOT, "kind": "VolumeSnapshot", "metadata": {"name": "mine"}, "spec": spec})
    await asyncio.sleep(5)
    assert (await host.get("VolumeSnapshot", VOLUME_SNAPSHOT, "mine"))["status"]["readyToUse"] is True
    assert len(running.overlays) == 1 and not running.agent.is_frozen


# --- restores -------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("kubevirt", 79, 191)
@pytest.mark.parametrize("policy", ["InPlace", "RandomizeNames", "PrefixTargetName"])
@played
async def test_restore_of_the_same_machine(host: FakeHost, /, policy: str) -> None:
    await web(host, "Halted")
    await host.make(snapshot())
    await asyncio.sleep(10)
    await host.change("web", {"spec": {"template": {"spec": {"domain": {"memory": {"guest": "256Mi"}}}}}})
    override = {"volumeName": "root", "labels": {"made": "by-restore"}}
    await host.make(restore(volumeRestorePolicy=policy, volumeRestoreOverrides=[override]))
    await asyncio.sleep(30)
    status = await restored(host)
    assert status.get("complete") is True, status
    assert conditions(status) == {"Ready": "True", "Progressing": "False"}
    after = await host.vm()
    name = await claim_of(host)
    assert name == {"InPlace": "disk", "PrefixTargetName": "web-root"}.get(policy, name)
    assert after["spec"]["template"]["spec"]["domain"]["memory"]["guest"] == "128Mi"
    assert "restoreInProgress" not in after["status"]
    back = await host.get("VirtualMachineRestore", SNAPSHOT, "back")
    assert after["metadata"]["annotations"]["restore.kubevirt.io/lastRestoreUID"] == back["metadata"]["uid"]
    assert (await content_of(host, name)).startswith("snapshot ")
    claim = await host.get("PersistentVolumeClaim", "v1", name)
    assert claim["metadata"]["labels"]["made"] == "by-restore"
    await check_data_volume_owns(host, claim, after)
    assert [each["metadata"]["name"] for each in after["spec"]["dataVolumeTemplates"]] == [name]
    assert status["restores"][0]["dataVolumeName"] == name
    await asyncio.sleep(30)
    assert (await host.get("DataVolume", DV, name))["status"]["phase"] == "Succeeded"
    if policy != "InPlace":
        assert status["deletedDataVolumes"] == ["disk"]
        assert await host.get("DataVolume", DV, "disk") == await host.get("PersistentVolumeClaim", "v1", "disk") == {}
    await host.change("web", {"spec": {"runStrategy": "Always"}})
    await host.running()
    assert (await content_of(host, name)).startswith("snapshot ")
    # The disks of a machine go with it, also restored ones.
    await host.delete("VirtualMachine", "kubevirt.io/v1", "web")
    await asyncio.sleep(60)
    assert await host.get("PersistentVolumeClaim", "v1", name) == {}


@pytest.mark.spec("kubevirt", 79)
@played
async def test_restore_to_a_new_machine_beside_the_running_one(host: FakeHost, /) -> None:
    await web(host)
    await host.running()
    await host.make(snapshot())
    await asyncio.sleep(10)
    override = {"volumeName": "root", "restoreName": "chosen"}
    await host.make(restore(target="new", volumeRestoreOverrides=[override], volumeOwnershipPolicy="None"))
    await asyncio.sleep(20)
    assert (await restored(host))["complete"] is True
    assert await claim_of(host, "new") == "chosen"
    assert await host.status("web") == "Running" and await host.status("new") == "Stopped"
    assert "ownerReferences" not in (await host.get("PersistentVolumeClaim", "v1", "chosen"))["metadata"]
    await host.change("new", {"spec": {"runStrategy": "Always"}})
    await host.running("new")


@pytest.mark.parametrize(
    ("policy", "complete"), [("StopTarget", True), ("FailImmediate", False), ("WaitGracePeriod", False), ("WaitEventually", None)]
)
@played
async def test_a_target_that_runs(host: FakeHost, /, policy: str, complete: bool | None) -> None:
    await web(host)
    await host.running()
    await host.make(snapshot())
    await asyncio.sleep(10)
    await host.make(restore(targetReadinessPolicy=policy))
    await asyncio.sleep(3 if policy == "FailImmediate" else 320)
    status = await restored(host)
    if complete is None:
        assert conditions(status) == {"Ready": "False", "Progressing": "False"}
        await host.delete("VirtualMachineRestore", SNAPSHOT, "back")
        await asyncio.sleep(5)
    else:
        assert status["complete"] is complete
        assert conditions(status).get("Failure") == (None if complete else "True")
    assert "restoreInProgress" not in (await host.vm())["status"]
    assert await host.status() == ("Stopped" if complete else "Running")
    assert ("RestoreTargetNotReady" in await host.events("back")) is (policy != "FailImmediate")


@pytest.mark.parametrize("owned", ["Vm", "None"])
@played
async def test_a_restore_that_is_deleted_half_way_leaves_nothing(host: FakeHost, /, owned: str) -> None:
    await web(host)
    await host.running()
    await host.make(snapshot())
    await asyncio.sleep(10)
    host.engine.volumes.failures.extend([StoreFull("cannot restore", why="there is no space left")] * 100)
    await host.make(restore(target="new", volumeOwnershipPolicy=owned))
    await asyncio.sleep(10)
    claims = [each["metadata"]["name"] for each in (await host.api.get("/api/v1/persistentvolumeclaims")).data["items"]]
    assert len(claims) == 2
    await host.again()
    await host.delete("VirtualMachineRestore", SNAPSHOT, "back")
    await asyncio.sleep(20)
    claims = [each["metadata"]["name"] for each in (await host.api.get("/api/v1/persistentvolumeclaims")).data["items"]]
    assert claims == ["disk"]
    assert (await host.api.get("/api/v1/persistentvolumes")).data["items"][0]["spec"]["claimRef"]["name"] == "disk"


@played
async def test_what_cannot_be_restored_is_refused_before_anything_is_touched(host: FakeHost, /) -> None:
    await web(host, "Halted")
    await host.make(snapshot())
    await asyncio.sleep(10)
    bad = '{"op":"replace","path":"/spec/nothing/here","value":1}'
    taken_name = [{"volumeName": "root", "restoreName": "disk"}]
    await host.make(restore("elsewhere", "new", volumeRestorePolicy="InPlace"), restore("patches", patches=[bad]))
    await asyncio.sleep(20)
    await host.make(restore("taken", "new", volumeRestoreOverrides=taken_name))
    await asyncio.sleep(20)
    for name in ("elsewhere", "patches", "taken"):
        assert conditions(await restored(host, name))["Failure"] == "True", name
    assert await host.vm("new") == {}
    assert await claim_of(host) == "disk" and await content_of(host, "disk") == "blank"
    claims = (await host.api.get("/api/v1/namespaces/default/persistentvolumeclaims")).data["items"]
    assert [each["metadata"]["name"] for each in claims] == ["disk"]
    # Another try of the same snapshot is not in the way of the failed ones.
    await host.make(restore("again"))
    await asyncio.sleep(20)
    assert (await restored(host, "again"))["complete"] is True


# --- clones ---------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("kubevirt", 79)
@pytest.mark.parametrize("source", ["VirtualMachine", "VirtualMachineSnapshot"])
@played
async def test_clone(host: FakeHost, /, source: str) -> None:
    cards = {"interfaces": [{"name": "default", "masquerade": {}, "macAddress": "02:00:00:00:00:01"}]}
    made = machine(volumes=VOLUMES, templates=[TEMPLATE], networks=[{"name": "default", "pod": {}}])
    made["spec"]["template"]["spec"]["domain"]["devices"] |= cards
    await host.make(made)
    await host.running(seconds=15)
    if source == "VirtualMachineSnapshot":
        await host.make(snapshot())
        await asyncio.sleep(10)
    group = "kubevirt.io" if source == "VirtualMachine" else "snapshot.kubevirt.io"
    of = {"apiGroup": group, "kind": source, "name": "web" if source == "VirtualMachine" else "one"}
    spec = {"source": of, "target": {**MACHINE, "name": "twin"}}
    await host.make({"apiVersion": CLONE, "kind": "VirtualMachineClone", "metadata": {"name": "c"}, "spec": spec})
    await asyncio.sleep(40)
    status = (await host.get("VirtualMachineClone", CLONE, "c"))["status"]
    assert (status["phase"], status["targetName"]) == ("Succeeded", "twin"), status
    assert conditions(status) == {"Ready": "True", "Progressing": "False"}
    twin = await host.vm("twin")
    assert "macAddress" not in twin["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"][0]
    mine, its = [(await host.vm(name))["spec"]["template"]["spec"]["domain"].get("firmware", {}) for name in ("web", "twin")]
    assert mine["uuid"] != its["uuid"]
    assert await claim_of(host, "twin") != "disk"
    # What was in between is gone; what was given stays.
    assert (await host.api.get(f"/apis/{SNAPSHOT}/namespaces/default/virtualmachinerestores")).data["items"] == []
    left = (await host.api.get(f"/apis/{SNAPSHOT}/namespaces/default/virtualmachinesnapshots")).data["items"]
    assert [each["metadata"]["name"] for each in left] == (["one"] if source == "VirtualMachineSnapshot" else [])
    await host.change("twin", {"spec": {"runStrategy": "Always"}})
    await host.running("twin")
