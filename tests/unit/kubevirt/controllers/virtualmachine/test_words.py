"""Every status in one word is reached (docs/spec/kubevirt.md 2.6), and what stands beside it."""

import itertools
from typing import Any

import pytest

from paddock.base.jsondata import Data
from paddock.kubernetes.client.options import WriteOptions, merge_patch
from paddock.kubernetes.client.target import Key, plain
from paddock.kubevirt.controllers.virtualmachine.controller import wire
from paddock.kubevirt.kinds.virtualmachine import PRINTABLE_STATUSES
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.lifeharness import Life, living

CDI = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
INSTANCES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"
DISKS = plain("cdi.kubevirt.io", "v1beta1", "datavolumes", "DataVolume")
KEY = Key("default", "web")
SIZE = {"resources": {"requests": {"storage": "1Gi"}}}
TEMPLATE: dict[str, Any] = {"metadata": {"name": "root"}, "spec": {"source": {"blank": {}}, "storage": SIZE}}


def machine(strategy: str = "Always", volume: Data | None = None, **spec: Any) -> Data:
    hardware: Data = {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}}
    if volume is not None:
        hardware["volumes"] = [{"name": "root", **volume}]
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "web", **spec.pop("metadata", {})},
        "spec": {"runStrategy": strategy, "template": {"spec": hardware}, **spec},
    }


def with_disk(strategy: str = "Always", **spec: Any) -> Data:
    return machine(strategy, {"dataVolume": {"name": "root"}}, dataVolumeTemplates=[TEMPLATE], **spec)


async def disk(life: Life, phase: str = "", conditions: list[Data] | None = None) -> None:
    """Write the importer's status of the disk."""
    status: Data = {**({"phase": phase} if phase else {}), **({"conditions": conditions} if conditions else {})}
    await life.client.patch(DISKS, Key("default", "root"), merge_patch({"status": status}), WriteOptions(subresource="status"))


async def claim(life: Life, phase: str = "Bound", name: str = "root") -> None:
    body = {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], **SIZE}}
    assert (await life.api.post(CLAIMS, body)).status == 201
    await life.api.merge(f"{CLAIMS}/{name}/status", {"status": {"phase": phase}})


async def say(life: Life, phase: str = "", **status: Any) -> None:
    await life.until(life.vmi)
    await life.player.say(KEY, phase, **status)


def refused(aspect: str, reason: str) -> list[Data]:
    return [{"type": aspect, "status": "False", "reason": reason, "message": "why"}]


async def reach(life: Life, word: str) -> None:
    """The way to each word."""
    life.player.until["*"] = "Failed" if word == "CrashLoopBackOff" else "Scheduling" if word in HELD else "Running"
    if word in ("Stopped", "Unknown"):
        await life.make(machine("Halted" if word == "Stopped" else "Always"))
    elif word in ("Provisioning", "DataVolumeError"):
        await life.make(with_disk())
    elif word == "WaitingForVolumeBinding":
        await claim(life, "Pending", "later")
        await life.make(machine(volume={"persistentVolumeClaim": {"claimName": "later"}}))
    else:
        await life.make(machine())
    await STEPS.get(word, nothing)(life)


async def nothing(life: Life) -> None:
    await life.rest(1)


async def stop(life: Life) -> None:
    await life.shows("Running")
    life.player.holds_deletion = True
    await life.merge({"spec": {"runStrategy": "Halted"}})


async def remove(life: Life) -> None:
    await life.shows("Running")
    life.player.holds_deletion = True
    await life.delete()


async def pause(life: Life) -> None:
    await life.shows("Running")
    await say(life, conditions=[{"type": "Paused", "status": "True", "reason": "PausedByUser"}])


async def suspend(life: Life) -> None:
    await life.shows("Running")
    await say(life, conditions=[{"type": "Suspended", "status": "True", "reason": "SavedToDisk"}])


async def migrate(life: Life) -> None:
    await life.shows("Running")
    await say(life, migrationState={"startTimestamp": "2026-01-01T00:00:00Z"})


async def fail_disk(life: Life) -> None:
    await life.rest(2)
    await disk(life, "ImportInProgress", refused("Running", "Error"))


async def lose(life: Life) -> None:
    await life.shows("Running")
    life.player.until["*"] = "Unknown"
    await say(life, "Unknown")


HELD = (
    "Starting",
    "WaitingForVolumeBinding",
    "ErrorPvcNotFound",
    "ErrorUnschedulable",
    "ErrImagePull",
    "ImagePullBackOff",
    "WaitingForReceiver",
)
STEPS: dict[str, Any] = {
    "Stopping": stop,
    "Terminating": remove,
    "Paused": pause,
    "Suspended": suspend,
    "Migrating": migrate,
    "DataVolumeError": fail_disk,
    "Unknown": lose,
    "ErrorPvcNotFound": lambda life: say(life, conditions=refused("Synchronized", "FailedPvcNotFound")),
    "ErrImagePull": lambda life: say(life, conditions=refused("Synchronized", "ErrImagePull")),
    "ImagePullBackOff": lambda life: say(life, conditions=refused("Synchronized", "ImagePullBackOff")),
    "ErrorUnschedulable": lambda life: say(life, conditions=refused("PodScheduled", "Unschedulable")),
}


async def receive(life: Life) -> None:
    life.player.until["*"] = "WaitingForSync"
    await say(life, "WaitingForSync")


STEPS["WaitingForReceiver"] = receive


@pytest.mark.spec("kubevirt", 11)
@pytest.mark.parametrize("word", PRINTABLE_STATUSES)
@timeless
async def test_every_word_is_reached(word: str) -> None:
    async with living(wire) as life:
        await reach(life, word)
        await life.shows(word, seconds=60)
        await life.rest(1)
        assert await life.word() == word


@pytest.mark.spec("kubevirt", 11)
@timeless
async def test_stopped_means_that_nothing_of_the_stop_is_left_to_do() -> None:
    """A restore that follows at once would refuse a machine whose instance is still there."""
    async with living(wire) as life:
        await reach(life, "Stopping")
        await say(life, "Succeeded")
        await life.rest(5)
        assert await life.word() == "Stopping"
        life.player.holds_deletion = False
        await life.player.reconcile(KEY)
        await life.shows("Stopped")
        assert (await life.api.get(f"{INSTANCES}/web")).status == 404


@timeless
async def test_a_machine_waits_for_its_disk() -> None:
    async with living(wire) as life:
        vm = await life.make(with_disk())
        await life.shows("Provisioning")
        made = (await life.api.get(f"{CDI}/datavolumes/root")).data
        assert made["metadata"]["labels"]["kubevirt.io/created-by"] == vm["metadata"]["uid"]
        assert made["metadata"]["annotations"]["cdi.kubevirt.io/allowClaimAdoption"] == "true"
        assert [each["uid"] for each in made["metadata"]["ownerReferences"]] == [vm["metadata"]["uid"]]
        await disk(life, "ImportInProgress")
        await life.rest(60)
        assert await life.vmi() is None
        await disk(life, "Succeeded")
        await life.shows("Running")
        assert ("Normal", "SuccessfulDataVolumeCreate", "Created DataVolume root") in await life.events()


@pytest.mark.parametrize("there", [False, True])
@timeless
async def test_a_disk_that_copies_a_claim_is_made_also_without_that(there: bool) -> None:
    async with living(wire) as life:
        body = with_disk("Halted")
        body["spec"]["dataVolumeTemplates"] = [
            {**TEMPLATE, "spec": {**TEMPLATE["spec"], "source": {"pvc": {"namespace": "default", "name": "golden"}}}}
        ]
        if there:
            await claim(life, name="golden")
        await life.make(body)
        await life.rest(2)
        assert (await life.api.get(f"{CDI}/datavolumes/root")).status == 200
        why = "Source PVC golden not available: Target PVC root will remain unpopulated until source is created"
        assert (("Warning", "SourcePVCNotAvailabe", why) in await life.events()) is not there


@pytest.mark.parametrize("phase", ["WaitForFirstConsumer", "PendingPopulation"])
@timeless
async def test_a_disk_that_waits_for_its_machine(phase: str) -> None:
    async with living(wire) as life:
        await life.make(with_disk())
        await life.rest(2)
        await disk(life, phase)
        await life.rest(10)
        assert await life.vmi()


@timeless
async def test_a_machine_that_is_new_to_rerun_starts_when_its_disk_is_there() -> None:
    async with living(wire) as life:
        await life.make(with_disk("RerunOnFailure"))
        await life.rest(60)
        assert "runStrategy" not in (await life.vm())["status"]
        await disk(life, "Succeeded")
        await life.shows("Running")


@pytest.mark.spec("kubevirt", 37)
@timeless
async def test_disks_of_halted_machines_are_filled_at_once_unless_they_shall_wait() -> None:
    later = {"annotations": {"kubevirt.io/immediate-data-volume-creation": "false"}}
    async with living(wire) as life:
        await life.make(with_disk("Halted"))
        await life.shows("Provisioning")
        await disk(life, "Succeeded")
        await life.shows("Stopped")
        await life.delete()
        await life.rest(5)
        assert (await life.api.delete(f"{CDI}/datavolumes/root")).status == 200
        await life.make(with_disk("Halted", metadata=later))
        await life.rest(60)
        assert await life.word() == "Stopped" and (await life.api.get(f"{CDI}/datavolumes/root")).status == 404
        await life.merge({"spec": {"runStrategy": "Always"}})
        await life.shows("Provisioning")
        await disk(life, "Succeeded")
        await life.shows("Running")


@pytest.mark.spec("kubevirt", 38)
@timeless
async def test_a_claim_without_its_data_volume_is_enough() -> None:
    async with living(wire) as life:
        await claim(life)
        await life.make(with_disk())
        await life.shows("Running")
        assert (await life.api.get(f"{CDI}/datavolumes/root")).status == 404


@timeless
async def test_a_disk_that_is_deleted_is_made_again() -> None:
    async with living(wire) as life:
        await life.make(with_disk("Halted"))
        await life.rest(2)
        await disk(life, "Succeeded")
        first = (await life.api.get(f"{CDI}/datavolumes/root")).data["metadata"]["uid"]
        await life.api.delete(f"{CDI}/datavolumes/root")
        await life.rest(5)
        assert (await life.api.get(f"{CDI}/datavolumes/root")).data["metadata"]["uid"] != first


@timeless
async def test_a_failed_import_is_told() -> None:
    async with living(wire) as life:
        await life.make(with_disk())
        await life.rest(2)
        await disk(life, "Failed")
        await life.shows("DataVolumeError")
        assert any(reason == "FailedDataVolumeImport" for _, reason, _ in await life.events())


@timeless
async def test_conditions_are_mirrored_and_taken_back() -> None:
    async with living(wire) as life:
        await life.make(machine())
        await life.shows("Running")
        agent = {"type": "AgentConnected", "status": "True", "lastProbeTime": "2026-01-01T00:00:00Z"}
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        await say(life, conditions=[ready, agent])
        await life.rest(2)
        found = {each["type"]: each for each in (await life.vm())["status"]["conditions"]}
        assert found["AgentConnected"]["status"] == "True" and found["Ready"]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
        await say(life, conditions=[ready])
        await life.rest(2)
        assert [each["type"] for each in (await life.vm())["status"]["conditions"]] == ["Ready"]
        await life.merge({"spec": {"runStrategy": "Halted"}})
        await life.shows("Stopped")
        await life.rest(2)
        (only,) = (await life.vm())["status"]["conditions"]
        assert (only["status"], only["reason"], only["message"]) == ("False", "VMINotExists", "VMI does not exist")


@pytest.mark.spec("kubevirt", 80)
@timeless
async def test_which_volumes_can_be_part_of_a_snapshot() -> None:
    async with living(wire) as life:
        body = with_disk("Halted")
        body["spec"]["template"]["spec"]["volumes"].append({"name": "scratch", "emptyDisk": {"capacity": "1Gi"}})
        body["spec"]["template"]["spec"]["domain"]["devices"]["disks"] = [{"name": "root"}, {"name": "scratch"}]
        await life.make(body)
        await life.rest(2)
        why = "Snapshot is not supported for this volumeSource type [scratch]"
        scratch = {"name": "scratch", "enabled": False, "reason": why}
        root = {"name": "root", "enabled": False, "reason": "PVC root does not exist [root]"}
        assert (await life.vm())["status"]["volumeSnapshotStatuses"] == [root, scratch]
        await claim(life)
        await life.rest(2)
        assert (await life.vm())["status"]["volumeSnapshotStatuses"] == [{"name": "root", "enabled": True}, scratch]


@timeless
async def test_starts_that_fail_are_put_off_longer_and_longer() -> None:
    async with living(wire) as life:
        life.player.until["*"] = "Failed"
        await life.make(machine())
        await life.rest(1500)
        pauses = [round(later - earlier) for earlier, later in itertools.pairwise(life.player.met.values())]
        for pause, (least, most) in zip(pauses, [(10, 16), (40, 61), (90, 136), (160, 241), (250, 301), (300, 301)], strict=False):
            assert least <= pause <= most, pauses
        vm = await life.shows("CrashLoopBackOff")
        failure = vm["status"]["startFailure"]
        assert failure["consecutiveFailCount"] >= 6 and failure["lastFailedVMIUID"] == list(life.player.met)[-1]
        await life.merge({"spec": {"runStrategy": "Halted"}})
        vm = await life.shows("Stopped")
        assert "startFailure" not in vm["status"]
        life.player.until.clear()
        await life.merge({"spec": {"runStrategy": "Always"}})
        await life.shows("Running", seconds=10)


@timeless
async def test_a_guest_that_ran_is_restarted_without_delay() -> None:
    async with living(wire) as life:
        await life.make(machine())
        for _ in range(4):
            await life.shows("Running", seconds=5)
            await say(life, "Failed")
            await life.rest(1)
        assert "startFailure" not in (await life.shows("Running", seconds=5))["status"]
