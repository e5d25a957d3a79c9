"""The objects of a restore: claims, and the machine on them."""

from typing import Any

import msgspec
import pytest

from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.core.volumesnapshot import VolumeSnapshot
from paddock.kubernetes.meta.wire import from_data
from paddock.kubernetes.storage import claimsizes
from paddock.kubevirt.kinds.restore import VirtualMachineRestore
from paddock.kubevirt.kinds.snapshot import VirtualMachineSnapshotContent
from paddock.kubevirt.plan.snapshots import restores as plan

MACHINE: dict[str, Any] = {
    "metadata": {
        "name": "web",
        "labels": {"app": "web"},
        "annotations": {"keep": "1", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
    },
    "spec": {
        "runStrategy": "Always",
        "dataVolumeTemplates": [{"metadata": {"name": "disk"}, "spec": {"a": 1}}, {"metadata": {"name": "other"}}],
        "template": {
            "spec": {
                "domain": {"firmware": {"uuid": "u", "serial": "s", "bootloader": {"bios": {}}}},
                "volumes": [{"name": "root", "dataVolume": {"name": "disk"}}, {"name": "seed", "cloudInitNoCloud": {"userData": "x"}}],
            }
        },
    },
}
CLAIM = {
    "metadata": {"name": "disk", "labels": {"a": "1"}},
    "spec": {"volumeName": "pv", "dataSource": {"kind": "x", "name": "y"}, "resources": {"requests": {"storage": "1Gi"}}},
}
BACKUP = {"volumeName": "root", "persistentVolumeClaim": CLAIM, "volumeSnapshotName": "snap"}


def restore(target: str = "web", **spec: object) -> VirtualMachineRestore:
    document = {"metadata": {"name": "r", "namespace": "default", "uid": "ru"}, "spec": {"target": {"name": target}, **spec}}
    return msgspec.convert(document, VirtualMachineRestore)


def content(*backups: dict[str, Any]) -> VirtualMachineSnapshotContent:
    spec = {"source": {"virtualMachine": MACHINE}, "volumeBackups": list(backups or (BACKUP,))}
    return msgspec.convert({"metadata": {"name": "c"}, "spec": spec}, VirtualMachineSnapshotContent)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({}, "restore-ru-root"),
        ({"volumeRestorePolicy": "InPlace"}, "disk"),
        ({"volumeRestorePolicy": "PrefixTargetName"}, "web-root"),
        ({"volumeRestoreOverrides": [{"volumeName": "root", "restoreName": "chosen"}]}, "chosen"),
        ({"volumeRestoreOverrides": [{"volumeName": "data", "restoreName": "chosen"}]}, "restore-ru-root"),
    ],
)
def test_names_of_claims(spec: dict[str, Any], name: str) -> None:
    assert plan.volumes(restore(**spec), content()) == [plan.RestoredVolume("root", name, "snap", "disk", is_template=True)]


def test_a_claim_is_filled_from_its_snapshot() -> None:
    override = {"volumeName": "root", "labels": {"b": "2"}, "annotations": {"n": "3"}}
    wish, held = restore(volumeRestoreOverrides=[override]), content()
    (volume,) = plan.volumes(wish, held)
    found = plan.claim(wish, held, volume, (held.spec.volumeBackups or [])[0])
    named = {"restore.kubevirt.io/source-vm-name": "web", "restore.kubevirt.io/source-vm-namespace": "default"}
    assert found["metadata"]["labels"] == {"a": "1", **named, "b": "2"}
    assert found["metadata"]["annotations"] == {plan.SOURCE_NOTE: "ru", "cdi.kubevirt.io/storage.populatedFor": "restore-ru-root", "n": "3"}
    source = {"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "snap"}
    assert found["spec"] == {"resources": {"requests": {"storage": "1Gi"}}, "dataSourceRef": source}


@pytest.mark.spec("kubevirt", 128)
def test_the_guest_of_a_restored_claim_sees_what_it_saw() -> None:
    note = claimsizes.guest_size_note(1 << 30, 1138753536)
    claim = {"metadata": {"name": "disk", "annotations": note}, "spec": {"resources": {"requests": {"storage": "1138753536"}}}}
    held = content({**BACKUP, "persistentVolumeClaim": claim})
    (volume,) = plan.volumes(restore(), held)
    found = from_data(plan.claim(restore(), held, volume, (held.spec.volumeBackups or [])[0]), PersistentVolumeClaim)
    assert claimsizes.guest_size(found) == 1 << 30


@pytest.mark.parametrize("ownership", ["Vm", "None"])
@pytest.mark.parametrize("fresh", [True, False])
def test_the_machine_is_on_the_restored_claims(fresh: bool, ownership: str) -> None:
    patches = ['[{"op":"add","path":"/metadata/labels/more","value":"x"}]']
    wish = restore("new", patches=patches, volumeOwnershipPolicy=ownership)
    found = plan.machine(wish, content(), plan.volumes(wish, content()), fresh=fresh)
    assert found["metadata"]["name"] == "new" and found["metadata"]["labels"] == {"app": "web", "more": "x"}
    assert found["metadata"]["annotations"] == {"keep": "1", plan.LAST_RESTORE: "ru"}
    hardware = found["spec"]["template"]["spec"]
    if ownership == "Vm":
        assert hardware["volumes"][0] == {"name": "root", "dataVolume": {"name": "restore-ru-root"}}
        assert found["spec"]["dataVolumeTemplates"] == [
            {"metadata": {"name": "restore-ru-root"}, "spec": {"a": 1}},
            {"metadata": {"name": "other"}},
        ]
    else:
        assert hardware["volumes"][0] == {"name": "root", "persistentVolumeClaim": {"claimName": "restore-ru-root"}}
        assert found["spec"]["dataVolumeTemplates"] == [{"metadata": {"name": "other"}}]
    assert hardware["volumes"][1] == MACHINE["spec"]["template"]["spec"]["volumes"][1]
    assert ("uuid" in hardware["domain"]["firmware"]) is not fresh
    assert hardware["domain"]["firmware"]["bootloader"] == {"bios": {}}
    # The content is as it was.
    assert MACHINE["spec"]["template"]["spec"]["volumes"][0] == {"name": "root", "dataVolume": {"name": "disk"}}


def test_a_restored_data_volume_keeps_off_its_claim() -> None:
    (volume,) = plan.volumes(restore(), content())
    found = plan.data_volume(restore(), content(), volume)
    assert found["spec"] == {"a": 1} and found["metadata"]["name"] == "restore-ru-root"
    notes = {"restore.kubevirt.io/name": "r", "cdi.kubevirt.io/storage.prePopulated": "restore-ru-root"}
    assert found["metadata"]["annotations"] == notes


@pytest.mark.parametrize(("spec", "replaced"), [({}, ("disk", "added")), ({"volumeRestorePolicy": "InPlace"}, ("added",))])
def test_the_data_volumes_that_a_machine_loses(spec: dict[str, Any], replaced: tuple[str, ...]) -> None:
    templates = [{"metadata": {"name": name}} for name in ("disk", "other", "added")]
    now = plan.machine(restore(**spec), content(), plan.volumes(restore(**spec), content()), fresh=False)
    assert plan.replaced({"spec": {"dataVolumeTemplates": templates}}, now) == replaced


def test_patches_that_cannot_be_applied_are_refused() -> None:
    wish = restore(patches=['{"op":"remove","path":"/spec/nothing"}'])
    with pytest.raises(plan.RestoreRefused, match="patches cannot be applied"):
        plan.machine(wish, content(), [], fresh=True)


def test_nobody_else_loses_a_disk() -> None:
    plan.check(restore(volumeRestorePolicy="InPlace"), content())
    plan.check(restore("new"), content())
    with pytest.raises(plan.RestoreRefused, match="cannot be in place"):
        plan.check(restore("new", volumeRestorePolicy="InPlace"), content())
    two = [{"volumeName": name, "restoreName": "same"} for name in ("root", "data")]
    with pytest.raises(plan.RestoreRefused, match="one claim"):
        plan.check(restore(volumeRestoreOverrides=two), content(BACKUP, {**BACKUP, "volumeName": "data"}))
    backup = (content().spec.volumeBackups or [])[0]
    assert plan.is_former(plan.RestoredVolume("root", "disk", "snap"), backup)
    assert not plan.is_former(plan.RestoredVolume("root", "else", "snap"), backup)


@pytest.mark.parametrize(
    ("policy", "running", "age", "found"),
    [
        ("StopTarget", True, 0, "stop"),
        ("FailImmediate", True, 0, "fail"),
        ("WaitEventually", True, 10**6, "wait"),
        ("WaitGracePeriod", True, 300, "wait"),
        (None, True, 301, "fail"),
        ("FailImmediate", False, 0, ""),
    ],
)
def test_a_target_that_runs(policy: str | None, running: bool, age: float, found: str) -> None:
    assert plan.waits(policy, running, age) == found


@pytest.mark.parametrize(
    ("name", "metadata", "held", "why"),
    [
        ("s", {"name": "s"}, True, ""),
        ("s", None, False, "VolumeSnapshot s does not exist"),
        ("s", {"name": "s", "deletionTimestamp": "2026-01-01T00:00:00Z"}, True, "VolumeSnapshot s is being deleted"),
        ("s", {"name": "s"}, False, "the data of VolumeSnapshot s is missing from the disk pool"),
        ("", None, False, "the snapshot does not include it"),
    ],
)
def test_a_volume_is_restored_only_while_its_data_is_there(name: str, metadata: dict[str, Any] | None, held: bool, why: str) -> None:
    there = from_data({"metadata": metadata}, VolumeSnapshot) if metadata is not None else None
    volume = plan.RestoredVolume("root", "disk", name)
    if not why:
        plan.check_data(volume, there, held=held)
        return
    with pytest.raises(plan.RestoreRefused, match=f"volume root cannot be restored: {why}"):
        plan.check_data(volume, there, held=held)
