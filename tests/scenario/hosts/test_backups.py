"""Backups on a whole host: what users ask for, in which order things are written, and what is there when something dies in between."""

import asyncio
from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.engine.fakehost import Data, FakeHost
from tests.kit.engine.fakehost import machine as virtual_machine
from tests.scenario.hosts.snapshotting import MACHINE, TEMPLATE, VOLUMES, conditions

BACKUP = "backup.kubevirt.io/v1alpha1"
TRACKER = {"apiGroup": "backup.kubevirt.io", "kind": "VirtualMachineBackupTracker", "name": "web"}
_KUBEVIRT = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt"
_SELECTORS = {"virtualMachineLabelSelector": {"matchLabels": {"cbt": "yes"}}, "namespaceLabelSelector": {"matchLabels": {"cbt": "yes"}}}


async def configure(host: FakeHost, *, gate: bool = True) -> None:
    gates = {"featureGates": ["IncrementalBackup"] if gate else []}
    configuration = {"developerConfiguration": gates, "changedBlockTrackingLabelSelectors": _SELECTORS}
    reply = await host.api.merge(_KUBEVIRT, {"spec": {"configuration": configuration}})
    assert reply.status == 200, reply.data
    await asyncio.sleep(2)


def claim(name: str, **spec: Any) -> Data:
    request = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": request}


def tracker() -> Data:
    return {"apiVersion": BACKUP, "kind": "VirtualMachineBackupTracker", "metadata": {"name": "web"}, "spec": {"source": MACHINE}}


def backup(name: str, source: Data = TRACKER, **spec: Any) -> Data:
    whole = {"source": source, "pvcName": "target", **spec}
    return {"apiVersion": BACKUP, "kind": "VirtualMachineBackup", "metadata": {"name": name}, "spec": whole}


async def web(host: FakeHost) -> Any:
    """A machine that is followed, its tracker, and a claim for backups."""
    await configure(host)
    made = virtual_machine(volumes=VOLUMES, templates=[TEMPLATE])
    made["metadata"]["labels"] = {"cbt": "yes"}
    await host.make(made, tracker(), claim("target"))
    return await host.running()


async def status(host: FakeHost, name: str) -> Data:
    return dict((await host.get("VirtualMachineBackup", BACKUP, name)).get("status", {}))


async def message(host: FakeHost, name: str, condition: str = "Progressing") -> str:
    found = {each["type"]: each for each in (await status(host, name)).get("conditions", ())}
    return str(found.get(condition, {}).get("message", ""))


async def checkpoint(host: FakeHost) -> str:
    found = (await host.get("VirtualMachineBackupTracker", BACKUP, "web")).get("status") or {}
    return str((found.get("latestCheckpoint") or {}).get("name", ""))


async def complete(host: FakeHost, running: Any, name: str, **spec: Any) -> Data:
    await host.make(backup(name, **spec))
    await asyncio.sleep(3)
    assert (await host.vmi())["status"]["changedBlockTracking"]["backupStatus"]["backupName"] == name
    running.end_backup()
    await asyncio.sleep(3)
    found = await status(host, name)
    assert conditions(found)["Complete"] == "True", found
    assert "backupStatus" not in (await host.vmi())["status"]["changedBlockTracking"] and running.backup is None
    return found


@pytest.mark.spec("kubevirt", 299)
@played
async def test_a_tracker_goes_from_checkpoint_to_checkpoint(host: FakeHost, /) -> None:
    running = await web(host)
    types = []
    for name, more in (("one", {}), ("two", {"skipQuiesce": True}), ("three", {"forceFullBackup": True})):
        before = await checkpoint(host)
        found = await complete(host, running, name, **more)
        types.append(found["type"])
        assert await checkpoint(host) == found["checkpointName"] != before
        assert running.known == {"root": {found["checkpointName"]}}
        assert [each["volumeName"] for each in found["includedVolumes"]] == ["root"], "what ends with the machine is not in it"
    assert types == ["Full", "Incremental", "Full"]
    assert [dict(each.since) for each in running.requests][1] == {"root": running.requests[0].checkpoint}
    assert [each.quiesce for each in running.requests] == [True, False, True]
    assert await host.events("two", "VirtualMachineBackup") == ["VirtualMachineBackupCompletedSuccessfully"]


@played
async def test_a_backup_of_a_machine_is_full_and_leaves_no_checkpoint(host: FakeHost, /) -> None:
    running = await web(host)
    found = await complete(host, running, "one", source=MACHINE)
    assert found["type"] == "Full" and "checkpointName" not in found
    assert running.requests[0].checkpoint == "" and await checkpoint(host) == ""


@pytest.mark.spec("kubevirt", 300)
@played
async def test_a_checkpoint_that_was_lost_makes_a_full_backup_that_says_so(host: FakeHost, /) -> None:
    running = await web(host)
    await complete(host, running, "one")
    running.known.clear()
    found = await complete(host, running, "two")
    assert found["type"] == "Full" and "not all changes of root" in await message(host, "two", "Complete")
    assert "CheckpointRedefinitionFailed" in await host.events("web", "VirtualMachineBackupTracker")
    assert (await complete(host, running, "three"))["type"] == "Incremental"


@pytest.mark.spec("kubevirt", 300)
@played
async def test_a_checkpoint_that_is_lost_between_the_decision_and_the_backup(host: FakeHost, /) -> None:
    running = await web(host)
    await complete(host, running, "one")
    running.backup_refusal = "NoCheckpoint"
    await host.make(backup("two"))
    await asyncio.sleep(6)
    running.end_backup()
    await asyncio.sleep(3)
    found = await status(host, "two")
    assert found["type"] == "Full" and conditions(found)["Complete"] == "True"


@pytest.mark.spec("kubevirt", 301)
@played
async def test_what_a_backup_waits_for(host: FakeHost, /) -> None:
    await configure(host)
    await host.make(backup("one"))
    await asyncio.sleep(3)
    assert await message(host, "one") == "BackupTracker web does not exist"
    await host.make(tracker())
    await asyncio.sleep(3)
    assert await message(host, "one") == "VM default/web doesnt exist"
    made = virtual_machine(strategy="Halted", volumes=VOLUMES, templates=[TEMPLATE])
    await host.make(made)
    await asyncio.sleep(3)
    assert await message(host, "one") == "vm web is not running, cannot do backup"
    await host.change("web", {"spec": {"runStrategy": "Always"}})
    running = await host.running()
    await asyncio.sleep(3)
    assert await message(host, "one") == "vm web has no ChangedBlockTracking, cannot start backup"
    await host.change("web", {"metadata": {"labels": {"cbt": "yes"}}})
    await asyncio.sleep(5)
    assert await message(host, "one") == "PVC default/target doesnt exist"
    await host.make(claim("target", volumeMode="Block"))
    await asyncio.sleep(5)
    assert "must be a filesystem PVC" in await message(host, "one")
    await host.delete("PersistentVolumeClaim", "v1", "target")
    await asyncio.sleep(3)
    await host.make(claim("target"))
    await asyncio.sleep(5)
    running.end_backup()
    await asyncio.sleep(3)
    assert conditions(await status(host, "one"))["Complete"] == "True"


@pytest.mark.spec("kubevirt", 301)
@played
async def test_two_sources_of_one_machine_take_turns(host: FakeHost, /) -> None:
    running = await web(host)
    await host.make(backup("one"), backup("two", MACHINE))
    await asyncio.sleep(5)
    assert "another backup one is already in progress" in await message(host, "two")
    running.end_backup()
    await asyncio.sleep(8)
    assert running.backup is not None and len(running.requests) == 2
    running.end_backup()
    await asyncio.sleep(3)
    assert conditions(await status(host, "two"))["Complete"] == "True"


@pytest.mark.spec("kubevirt", 298)
@pytest.mark.parametrize("loss", ["fails", "restarts", "deleted"])
@played
async def test_a_backup_that_loses_its_source_fails(host: FakeHost, /, loss: str) -> None:
    running = await web(host)
    await complete(host, running, "one")
    before = await checkpoint(host)
    await host.make(backup("two"))
    await asyncio.sleep(3)
    match loss:
        case "fails":
            running.end_backup("No space left on device")
        case "restarts":
            running.crash("oh")
        case "deleted":
            await host.change("web", {"spec": {"runStrategy": "Halted"}})
    await asyncio.sleep(60)
    found = {each["type"]: each for each in (await status(host, "two"))["conditions"]}
    assert found["Failed"]["status"] == "True" and found["Failed"]["message"].startswith("Backup has failed: "), found
    assert found["Failed"]["reason"] in ("Failed", "SourceLost", "SourceUnhealthy")
    assert await checkpoint(host) == before
    assert "VirtualMachineBackupFailed" in await host.events("two", "VirtualMachineBackup")
    assert not list(host.engine.volumes.root.parent.glob("claims/backup-*"))


@pytest.mark.spec("kubevirt", 298)
@played
async def test_a_backup_that_is_deleted_while_it_is_taken(host: FakeHost, /) -> None:
    running = await web(host)
    await complete(host, running, "one")
    before = dict(running.known)
    await host.make(backup("two"))
    await asyncio.sleep(3)
    await host.delete("VirtualMachineBackup", BACKUP, "two")
    await asyncio.sleep(3)
    assert await host.get("VirtualMachineBackup", BACKUP, "two") == {} and running.backup is None
    assert running.known == before and "VirtualMachineBackupAborting" in await host.events("two", "VirtualMachineBackup")
    assert (await complete(host, running, "three"))["type"] == "Incremental"


@pytest.mark.spec("kubevirt", 298)
@played
async def test_a_server_that_is_started_again_goes_on(host: FakeHost, /) -> None:
    running = await web(host)
    await host.make(backup("one"))
    await asyncio.sleep(3)
    await host.end()
    running.end_backup()
    await host.begin()
    await asyncio.sleep(5)
    found = await status(host, "one")
    assert conditions(found)["Complete"] == "True" and await checkpoint(host) == found["checkpointName"]


@pytest.mark.spec("kubevirt", 302)
@played
async def test_the_state_follows_the_selectors_and_the_gate(host: FakeHost, /) -> None:
    await web(host)

    async def states() -> list[str]:
        await asyncio.sleep(3)
        found = [(await get())["status"].get("changedBlockTracking") or {} for get in (host.vm, host.vmi)]
        return [each.get("state", "") for each in found]

    assert await states() == ["Enabled", "Enabled"]
    await host.change("web", {"metadata": {"labels": {"cbt": "no"}}})
    assert await states() == ["Disabled", "Disabled"]
    reply = await host.api.merge("/api/v1/namespaces/default", {"metadata": {"labels": {"cbt": "yes"}}})
    assert reply.status == 200
    assert await states() == ["Enabled", "Enabled"]
    await configure(host, gate=False)
    assert await states() == ["IncrementalBackupFeatureGateDisabled", "Disabled"]
    reply = await host.api.post(host.place("VirtualMachineBackup", BACKUP), backup("off"))
    assert reply.status == 422 and "IncrementalBackup feature gate not enabled" in reply.data["message"]
