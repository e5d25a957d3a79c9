"""Vitistack's own form of the Machine: its refusals with their places and words, and what is taken beside them."""

import re
from typing import Any

import pytest
import yaml

from paddock.dialects.vitistack.kinds import machineclass, ownform
from paddock.dialects.vitistack.kinds.fields import MachineCloudInit, MachineDisk, OperatingSystem
from paddock.dialects.vitistack.kinds.machinespec import MachineSpec
from paddock.kubernetes.admission import AdmissionResult, admit, admit_change
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubernetes.schema.shape import shape_of
from tests.unit.dialects.vitistack.kinds.test_machine import admitted, errors, machine

Json = dict[str, Any]
ROOT: Json = {"name": "root", "sizeGB": 20, "boot": True, "type": "virtio", "encrypted": False}


def own(**spec: Any) -> Json:
    return {"provider": "kubevirt", **spec}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"machineClass": "medium", "name": "guest"},
        {"memory": 2147483648, "cpu": {"cores": 2, "sockets": 4, "threadsPerCore": 2}},
        {"disks": [ROOT, {"name": "data", "sizeGB": 100, "type": "scsi", "iops": 3000, "throughput": 500}]},
        {"network": {"networkNamespaceName": "lan"}, "sshKeys": ["ssh-ed25519 AAAA a@b", "ecdsa-sha2-nistp256 AAAA"]},
        {"userData": "#cloud-config\n", "cloudInit": {"networkDataConfigMapRef": {"name": "texts"}}},
        {"os": {"isoUri": "https://e.org/a.iso", "architecture": "x86_64"}},
    ],
)
def test_what_is_taken(spec: Json) -> None:
    assert errors(admitted(own(**spec))) == []


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"provider": "proxmox"}, "spec.provider", "machines of other providers belong to the operators of those"),
        (own(disks=[{"name": "root"}]), "spec.disks[0].sizeGB", "in Vitistack's own form each disk has its size in Gi"),
        (own(disks=[{"name": "root", "sizeGB": 0}]), "spec.disks[0].sizeGB", "between 1 and 65536"),
        (own(disks=[ROOT, {**ROOT, "name": "data"}]), "spec.disks[1].boot", "one disk boots: leave boot out of the others"),
        (own(disks=[{**ROOT, "encrypted": True}]), "spec.disks[0].encrypted", "disks are not encrypted"),
        (own(disks=[{**ROOT, "type": "gp3"}]), "spec.disks[0].type", 'supported values: "virtio", "sata", "scsi", "nvme"'),
        (own(sshKeys=["AAAA"]), "spec.sshKeys[0]", "must be a public key as OpenSSH writes it"),
        (own(name="No Label"), "spec.name", "DNS-1123"),
        (own(userData="a", cloudInit={"userData": "b"}), "spec.userData", "in spec.userData or in spec.cloudInit, not in both"),
        (own(cloudInit={"userDataBase64": "%"}), "spec.cloudInit.userDataBase64", "not base64"),
        (own(userData="#cloud-config\n- a\n"), "spec.userData", "not valid cloud-config"),
        (own(os={"isoUri": "file:///a.iso"}), "spec.os.isoUri", "must be an http or https URL"),
        (own(os={"architecture": "riscv64"}), "spec.os.architecture", "supported values"),
        (own(memory=-1), "spec.memory", "greater than or equal to 0"),
    ],
)
def test_what_is_refused(spec: Json, field: str, message: str) -> None:
    found = [text for path, text in errors(admitted(spec)) if path == field]
    assert found and message in found[0], errors(admitted(spec))


@pytest.mark.spec("vitistack", 85)
def test_a_provider_is_needed() -> None:
    ((path, message),) = errors(admitted({"machineClass": "small"}))
    assert (path, message.split(":")[0]) == ("spec.provider", "Required value") and 'write "provider: kubevirt"' in message
    assert errors(admitted({"machineClass": "small", "provider": "kubevirt"})) == []


def test_a_machine_of_neither_form_is_asked_for_what_the_document_asks() -> None:
    assert {path for path, _ in errors(admitted({}))} == {"spec.resources.memory.size", "spec.disks"}


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        (own(disks=[ROOT]), own(disks=[{**ROOT, "sizeGB": 19}]), "spec.disks[0].sizeGB"),
        (own(disks=[{"name": "root", "sizeGB": 20}]), own(), "spec.disks"),
        (own(), own(disks=[{"name": "root", "sizeGB": 9}]), "spec.disks[0].sizeGB"),
        ({"template": "small"}, own(), "spec.disks"),
    ],
)
def test_disks_do_not_shrink_in_either_form(before: Json, after: Json, field: str) -> None:
    found = errors(changed(before, after))
    assert [path for path, message in found] == [field] and "shrink" in found[0][1]
    assert errors(changed(after, before)) == []


def changed(before: Json, after: Json) -> AdmissionResult:
    old, new = admitted(before), admitted(after)
    assert old.value is not None
    return admit_change(old.value, new, AdmissionSettings())


def test_nothing_of_the_own_form_is_given_to_a_machine_of_the_document() -> None:
    data = admitted({"template": "small", "disks": [{"name": "data", "size": "1Gi"}], "cloudInit": {}}).data["spec"]
    assert data == {"template": "small", "disks": [{"name": "data", "size": "1Gi"}], "networks": [], "cloudInit": {}}


@pytest.mark.parametrize(
    ("name", "cores", "sockets", "memory", "enabled"),
    [
        ("small", 2, 1, "8Gi", True),
        ("medium", 4, 1, "16Gi", True),
        ("large", 4, 1, "32Gi", True),
        ("xlarge", 4, 1, "48Gi", True),
        ("largememory", 4, 1, "64Gi", True),
        ("largecpu", 8, 2, "16Gi", False),
    ],
)
def test_the_built_in_classes(name: str, cores: int, sockets: int, memory: str, *, enabled: bool) -> None:
    spec = machineclass.BUILT_IN[name]
    assert (spec.cpu.cores, spec.cpu.sockets, spec.memory.quantity, spec.enabled) == (cores, sockets, memory, enabled)
    assert len(machineclass.BUILT_IN) == 6


def test_a_class_has_processors_and_memory() -> None:
    def verdict(text: str) -> list[tuple[str, str]]:
        raw = {"apiVersion": "vitistack.io/v1alpha1", "kind": "MachineClass", "metadata": {"name": "own"}, "spec": yaml.safe_load(text)}
        return errors(admit(raw, AdmissionSettings()))

    assert verdict("{cpu: {cores: 2}, memory: {quantity: 2Gi}, machineProviders: [], gpu: {cores: 0}}") == []
    assert {path for path, _ in verdict("{cpu: {}, memory: {}}")} == {"spec.cpu.cores", "spec.memory.quantity"}
    assert [path for path, _ in verdict("{cpu: {cores: 2}, memory: {quantity: 1Ki}}")] == ["spec.memory.quantity"]


def test_a_note_says_what_has_no_effect() -> None:
    found = admit(machine(own(tags={"a": "b"}, backup={"enabled": True})), AdmissionSettings()).findings
    assert [each.field for each in found if each.severity is Severity.NOTE] == ["spec.tags", "spec.backup"]


def test_every_member_of_the_spec_is_of_a_form_or_of_both() -> None:
    from paddock.dialects.vitistack.kinds import fields  # noqa: PLC0415
    from paddock.dialects.vitistack.kinds.machinespec import MachineSpec  # noqa: PLC0415

    both = {"disks", "cloudInit", "os"}
    assert set(MachineSpec.__struct_fields__) == {*ownform.DOCUMENT, *ownform.OWN, *both}
    assert set(fields.MachineDisk.__struct_fields__) == {"name", *ownform.DOCUMENT_DISK, *ownform.OWN_DISK}
    assert set(fields.MachineCloudInit.__struct_fields__) == {"userData", "networkData", "secretRef", *ownform.OWN_CLOUD_INIT}
    assert set(fields.OperatingSystem.__struct_fields__) == {"imageID", *ownform.OWN_OS}


def test_the_definition_knows_the_members_whose_empty_text_means_nothing() -> None:
    """Each text of the two forms for which the declarations say so, and no other."""
    forms = (
        (MachineSpec, (*ownform.OWN, *ownform.DOCUMENT)),
        (MachineDisk, (*ownform.OWN_DISK, *ownform.DOCUMENT_DISK)),
        (MachineCloudInit, ownform.OWN_CLOUD_INIT),
        (OperatingSystem, ownform.OWN_OS),
    )
    unset = {name for cls, names in forms for name in names if shape_of(cls).properties[name].field.empty_is_unset}
    asked = set(re.findall(r"\.(\w+) != ''", ownform.OWN_CEL + ownform.DOCUMENT_CEL))
    assert asked == unset
