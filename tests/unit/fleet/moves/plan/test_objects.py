"""The objects that the target gets, and the patches of the source on the way and back."""

from typing import Any

import pytest

from paddock.fleet import kinds
from paddock.fleet.moves.plan import disks, moveplan, objects, record
from paddock.fleet.moves.plan.moveplan import MovePlan
from paddock.fleet.moves.plan.record import DamagedRecord, MoveRecord
from paddock.kubernetes.meta.patch import apply_merge_patch
from paddock.kubevirt.plan.changes.references import MACHINE

Data = dict[str, Any]
ID = "0123456789abcdef"


def vm(**spec: Any) -> Data:
    metadata = {
        "name": "web",
        "namespace": "default",
        "uid": "u",
        "resourceVersion": "7",
        "annotations": {"mine": "1"},
        "labels": {"app": "web"},
    }
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": metadata, "spec": spec}


def moved(**more: Any) -> MoveRecord:
    return MoveRecord(**{"id": ID, "target": "t", "address": "https://there", "namespace": "prod", "power": {}, **more})


STAKATER: Data = {"spec": {"parameters": {"runStrategy": "RerunOnFailure"}}, "metadata": {}}
OF_STAKATER = ("infrastructure.stakater.com", "VirtualMachine")
OF_VITISTACK = ("vitistack.io", "Machine")
VITISTACK: Data = {"spec": {}, "metadata": {"annotations": {}}}


@pytest.mark.parametrize(
    ("kind", "data", "ran", "after"),
    [
        (MACHINE, vm(runStrategy="Always"), True, {"spec": {"runStrategy": "Always"}}),
        (MACHINE, vm(runStrategy="RerunOnFailure"), False, {"spec": {"runStrategy": "Halted"}}),
        (MACHINE, vm(runStrategy="Manual"), False, {"spec": {"runStrategy": "Manual"}}),
        (MACHINE, vm(running=True), True, {"spec": {"running": True}}),
        (MACHINE, vm(running=True), False, {"spec": {"running": False}}),
        (OF_STAKATER, STAKATER, True, {"spec": {"parameters": {"runStrategy": "RerunOnFailure"}}}),
        (OF_STAKATER, {"spec": {"parameters": {}}}, True, {"spec": {"parameters": {"runStrategy": None}}}),
        (OF_VITISTACK, VITISTACK, True, {"metadata": {"annotations": {"vitistack.io/power-state": "running"}}}),
        (OF_VITISTACK, VITISTACK, False, {"metadata": {"annotations": {"vitistack.io/power-state": "stopped"}}}),
    ],
)
def test_the_wish_about_running_is_kept_in_the_words_of_the_kind(kind: tuple[str, str], data: Data, ran: bool, after: Data) -> None:
    assert kinds.adapter(kind).power_words.kept(data, ran=ran) == after


NEAR = {"spec": {"nodeSelector": {"zone": "near"}}}


@pytest.mark.parametrize("data", [vm(runStrategy="Always", template={"spec": {}}), vm(running=True, template=NEAR)])
def test_the_source_is_fenced_and_becomes_what_it_was(data: Data) -> None:
    here = moved(power=kinds.adapter(MACHINE).power_words.kept(data, ran=True))
    fenced = apply_merge_patch(data, objects.fenced(data, MACHINE, here, "it moves"))
    assert record.fence_of(fenced) == "it moves" and record.read(fenced) == here
    assert fenced["spec"].get("runStrategy") == "Halted" or fenced["spec"]["running"] is False
    # A cluster knows no fence; no node has this label.
    assert fenced["spec"]["template"]["spec"]["nodeSelector"][record.FENCE] == "moved"
    assert "nodeSelector" not in objects.machine(fenced, MACHINE, here)["spec"]["template"]["spec"] or data["spec"]["template"] == NEAR
    assert apply_merge_patch(fenced, objects.restored(fenced, MACHINE, here)) == data


def test_the_target_gets_the_machine_halted_and_fenced() -> None:
    data = vm(
        runStrategy="Always",
        instancetype={"name": "small", "revisionName": "web-small-1"},
        template={"spec": {"domain": {"devices": {"interfaces": [{"name": "a"}, {"name": "b", "macAddress": "02:00:00:00:00:09"}]}}}},
    )
    data["metadata"]["annotations"] |= {record.RECORD: "{}", record.FENCE: "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    macs = {"a": "02:00:00:00:00:01", "b": "02:00:00:00:00:02"}
    made = objects.machine(data, MACHINE, moved(macs=macs))
    assert made["metadata"]["namespace"] == "prod" and made["metadata"]["labels"] == {"app": "web", record.ID: ID}
    assert made["metadata"]["annotations"].keys() == {"mine", record.FENCE}
    assert made["spec"]["runStrategy"] == "Halted" and made["spec"]["instancetype"] == {"name": "small"}
    interfaces = made["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"]
    assert [each["macAddress"] for each in interfaces] == ["02:00:00:00:00:01", "02:00:00:00:00:09"]
    assert "macAddress" not in data["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"][0]
    assert data["spec"]["instancetype"]["revisionName"] == "web-small-1"
    released = apply_merge_patch(made, objects.released(moved(power={"spec": {"runStrategy": "Always"}})))
    assert record.fence_of(released) is None and released["spec"]["runStrategy"] == "Always"


def test_interfaces_that_nobody_wrote_are_written_with_their_addresses() -> None:
    spec: Data = {"domain": {"devices": {}}}
    interface = {"name": "default", "masquerade": {}}
    vmi = {
        "spec": {"domain": {"devices": {"interfaces": [interface]}}, "networks": [{"name": "default", "pod": {}}]},
        "status": {"interfaces": [{"name": "default", "mac": "02:00:00:00:00:01", "ipAddress": "10.0.2.2"}]},
    }
    interfaces, networks = moveplan.implied(spec, vmi)
    made = objects.machine(
        vm(template={"spec": spec}), MACHINE, moved(macs=moveplan.macs(spec, vmi), interfaces=interfaces, networks=networks)
    )
    guest = made["spec"]["template"]["spec"]
    assert guest["domain"]["devices"]["interfaces"] == [{**interface, "macAddress": "02:00:00:00:00:01"}]
    assert guest["networks"] == [{"name": "default", "pod": {}}]
    assert [*moveplan.addresses(MACHINE, vm(), spec, vmi)] == [
        "interface default: the address 10.0.2.2 is the source's; the target gives another"
    ]


def test_a_front_keeps_the_addresses_that_its_object_can_name() -> None:
    """Vitistack's controller derives addresses from the UID, which is another one at the target."""
    cards = [{"name": name, "macAddress": f"02:00:00:00:00:0{index}"} for index, name in enumerate(("eth0", "default"))]
    spec: Data = {"domain": {"devices": {"interfaces": cards}}}
    machine: Data = {
        "apiVersion": "vitistack.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": "node"},
        "spec": {"networks": [{"name": "eth0"}]},
    }
    assert [*moveplan.addresses(OF_VITISTACK, machine, spec, None)] == [
        "interface default: its MAC address changes, because its dialect names none"
    ]
    made = objects.machine(machine, OF_VITISTACK, moved(macs=moveplan.macs(spec, None)))
    assert made["spec"]["networks"] == [{"name": "eth0", "macAddress": "02:00:00:00:00:00"}]
    assert machine["spec"]["networks"] == [{"name": "eth0"}]
    assert len([*moveplan.addresses(OF_STAKATER, machine, spec, None)]) == 2


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({}, ""),
        ({"managedFields": [{"manager": "kubectl", "operation": "Apply"}, {"manager": "paddock-kubermatic", "operation": "Update"}]}, ""),
        (
            {"managedFields": [{"manager": "paddock-kubermatic", "operation": "Apply"}]},
            "Kubermatic's machine of the same name in another API",
        ),
        ({"labels": {"virtrigaud.io/owner-uid": "u"}, "annotations": {"virtrigaud.io/owner": "prod/web"}}, "the machine prod/web"),
    ],
)
def test_a_machine_that_another_api_keeps_has_a_maker(metadata: Data, said: str) -> None:
    found = objects.maker({"metadata": metadata})
    assert found.endswith(said) and bool(found) is bool(said)


def test_a_service_leaves_its_addresses_behind() -> None:
    spec = {"selector": {"app": "web"}, "clusterIP": "10.96.0.9", "ports": [{"port": 80, "nodePort": 30080}], "type": "NodePort"}
    service: Data = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"}, "spec": spec, "status": {}}
    made = objects.reference(service, moved())
    assert made["spec"] == {"selector": {"app": "web"}, "ports": [{"port": 80}], "type": "NodePort"} and "status" not in made
    assert objects.content({**service, "spec": made["spec"]}) == objects.content(service)
    assert moveplan.service_addresses(service) == "10.96.0.9, node port 30080"


def test_a_record_survives_and_a_damaged_one_is_an_error() -> None:
    data = {"metadata": {"annotations": {record.RECORD: record.write(moved(ran=True, macs={"a": "b"}))}}}
    assert record.read(data) == moved(ran=True, macs={"a": "b"}) and record.read({"metadata": {}}) is None
    with pytest.raises(DamagedRecord):
        record.read({"metadata": {"annotations": {record.RECORD: "{"}}})
    assert record.new_id("s", vm()) != record.new_id("t", vm())


# --- disks ----------------------------------------------------------------------------------------------------------------------


def claim(name: str, size: str = "1Gi", **annotations: str) -> Data:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, "storageClassName": "fast"}
    return {
        "metadata": {"name": name, "annotations": annotations, "labels": {"app": "containerized-data-importer", "mine": "1"}},
        "spec": spec,
    }


def test_volumes_are_sorted() -> None:
    volumes = [
        {"name": "root", "dataVolume": {"name": "root"}},
        {"name": "base", "ephemeral": {"persistentVolumeClaim": {"claimName": "base"}}},
        {"name": "new", "persistentVolumeClaim": {"claimName": "new"}},
        {"name": "files", "persistentVolumeClaim": {"claimName": "files"}},
        {"name": "image", "containerDisk": {"image": "x:1"}},
        {"name": "scratch", "emptyDisk": {"capacity": "1Gi"}},
        {"name": "host", "hostDisk": {"path": "/x"}},
        {"name": "seed", "cloudInitNoCloud": {}},
    ]
    files = claim("files", **{"cdi.kubevirt.io/storage.contentType": "archive"})
    devices = {"filesystems": [{"name": "x"}], "gpus": [{"name": "card"}]}
    found = disks.survey(
        {"volumes": volumes, "domain": {"devices": devices}}, {"root": claim("root"), "base": claim("base"), "files": files}
    )
    assert [each.name for each in found.disks] == ["root", "base"]
    assert [each.partition(" ")[0] + "|" + each for each in found.notes] and len(found.notes) == 3
    wanted = ("shared directories", "the device card", "the volume files", "the disk host")
    assert len(found.obstacles) == 4 and all(each.startswith(start) for each, start in zip(found.obstacles, wanted, strict=True))


def test_state_beside_the_disks_is_named() -> None:
    spec = {"domain": {"devices": {"tpm": {"persistent": True}}, "firmware": {"bootloader": {"efi": {"persistent": True}}}}}
    assert disks.persistent_state(spec) == ["the state of its TPM", "its EFI variables"]
    assert disks.persistent_state({"domain": {"devices": {"tpm": {}}}}) == []


def test_a_disk_at_the_target_is_as_large_as_at_the_source() -> None:
    noted = claim("root", "1138166334", **{"paddock.dev/guest-size": "1073741824/1138166334", "other": "x"})
    disk = disks.CarriedDisk(volume="root", claim=noted)
    assert disk.size == 1 << 30
    made = disks.volume_for(disk, disk.size, "prod", {record.ID: ID}, "slow")
    wanted = made["spec"]["storage"]
    assert wanted["resources"] == {"requests": {"storage": "1073741824"}} and wanted["storageClassName"] == "slow"
    # Some releases of CDI delete what is filled otherwise, with the checksum.
    assert made["metadata"]["annotations"]["cdi.kubevirt.io/storage.deleteAfterCompletion"] == "false"
    assert "paddock.dev/guest-size" not in made["metadata"]["annotations"]
    assert made["metadata"]["labels"] == {"mine": "1", record.ID: ID}


def test_the_plan_says_what_happens() -> None:
    disk = disks.CarriedDisk(volume="root", claim=claim("web-root", "20Gi"))
    plan = MovePlan(title="vm/web", place="namespace prod of https://there", disks=[disk], notes=["x"], obstacles=["y"], runs=True)
    assert list(plan.lines()) == [
        "vm/web moves to namespace prod of https://there",
        "  carries disk root (web-root), 20Gi; its holes take no room on the way",
        "  differs: x",
        "  the machine is off until the target starts it; the disks take 4 min at most at 100 MiB/s, and 20Gi of room",
        "  cannot: y",
    ]
