"""Mistakes that users make, told by the server: once each, with what may be meant, and as warnings where KubeVirt takes them."""

from typing import Any

import pytest
import yaml

from tests.coroutines import scripted
from tests.kit.servers.apiharness import Harness
from tests.unit.kubevirt.kinds import objects

VMS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
STAKATER = "/apis/infrastructure.stakater.com/v1/namespaces/default/virtualmachines"
RIGAUD = "/apis/infra.virtrigaud.io/v1beta1/namespaces/default/virtualmachines"
VITISTACK = "/apis/vitistack.io/v1alpha1/namespaces/default/machines"
CDI = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
Data = dict[str, Any]


def told(warnings: list[str]) -> str:
    """All warnings as one text."""
    return "\n".join(warnings).replace('\\"', '"')


def rigaud(power: object) -> Data:
    spec = {"providerRef": {"name": "p"}, "classRef": {"name": "c"}, "imageRef": {"name": "i"}, "powerState": power}
    return {"apiVersion": "infra.virtrigaud.io/v1beta1", "kind": "VirtualMachine", "metadata": {"name": "web"}, "spec": spec}


@pytest.mark.spec("kubevirt", 127)
@scripted
async def test_a_value_that_cannot_be_read_is_not_missing_too() -> None:
    front = {
        "apiVersion": "infrastructure.stakater.com/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "web"},
        "spec": {"parameters": {"dataSource": {"name": "a", "namespace": "b"}, "storage": {"size": "20GB!"}}},
    }
    async with Harness() as api:
        refused = await api.post(STAKATER, front)
        machine = await api.post(VMS, objects.machine({"P.domain.memory": {"guest": "4GB"}}))
    assert refused.causes == {"spec.parameters.storage.size": 'Invalid value: "20GB!": not a Kubernetes quantity'}
    said = 'Invalid value: "4GB": not a Kubernetes quantity; did you mean 4G or 4Gi?'
    assert machine.causes == {"spec.template.spec.domain.memory.guest": said}


@pytest.mark.spec("kubevirt", 127)
@scripted
async def test_a_typo_is_told_with_what_may_be_meant() -> None:
    machine = objects.machine({"P.domain.memroy": {"guest": "4Gi"}})
    expected = 'unknown field "spec.template.spec.domain.memroy"; did you mean "memory"?'
    async with Harness() as api:
        warned = await api.post(f"{VMS}?dryRun=All", machine)
        strict = await api.post(f"{VMS}?fieldValidation=Strict", machine)
    assert expected in told(warned.warnings)
    assert strict.status == 400 and strict.data["message"] == f"strict decoding error: {expected}"


@pytest.mark.spec("vitistack", 80)
@scripted
async def test_fields_of_both_forms_of_a_machine_are_refused_by_name() -> None:
    machine = {
        "apiVersion": "vitistack.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": "web"},
        "spec": {"template": "small", "machineClass": "medium"},
    }
    async with Harness() as api:
        refused = await api.post(VITISTACK, machine)
    assert refused.status == 422 and "template" in refused.data["message"] and "machineClass" in refused.data["message"]


@pytest.mark.spec("kubermatic", 45)
@scripted
async def test_a_bus_that_only_the_engine_has_is_taken_with_a_warning() -> None:
    machine = objects.machine(
        {
            "P.volumes[1]": {"name": "old", "emptyDisk": {"capacity": "1Gi"}},
            "P.domain.devices.disks[1]": {"name": "old", "disk": {"bus": "ide"}},
        }
    )
    async with Harness() as api:
        made = await api.post(VMS, machine)
    assert made.status == 201
    assert "disks[1].disk.bus: KubeVirt refuses this" in told(made.warnings) and "IDE bus is not supported" in told(made.warnings)


@pytest.mark.spec("virtrigaud", 11, 116)
@scripted
async def test_a_bare_power_state_arrives_by_every_way() -> None:
    async with Harness() as api:
        made = await api.post(RIGAUD, yaml.safe_load(yaml.safe_dump(rigaud("On")).replace("'On'", "On")))
        assert made.status == 201 and made.data["spec"]["powerState"] == "On"
        assert 'spec.powerState: a bare On is a boolean to kubectl; write "On"' in told(made.warnings)
        patched = await api.merge(f"{RIGAUD}/web", {"spec": {"powerState": False}})
        assert patched.status == 200 and patched.data["spec"]["powerState"] == "Off"
        assert "a bare Off is a boolean" in told(patched.warnings)
        applied = await api.apply(f"{RIGAUD}/web", rigaud(True), force=True)
        assert applied.status == 200 and applied.data["spec"]["powerState"] == "On", applied.data
        again = await api.merge(f"{RIGAUD}/web", {"spec": {"powerState": True}})
        assert again.data["metadata"]["generation"] == applied.data["metadata"]["generation"]
        assert (await api.merge(f"{RIGAUD}/web", {"spec": {"powerState": "OffGraceful"}})).status == 200
        assert (await api.merge(f"{RIGAUD}/web", {"spec": {"powerState": "Suspended"}})).status == 422
        refused = await api.merge(f"{RIGAUD}/web", {"spec": {"powerState": 1}})
    assert refused.causes["spec.powerState"] == 'Invalid value: 1: must be a string; write one of "On", "Off", "OffGraceful"'


def seeded(text: str) -> Data:
    return objects.machine(
        {"P.volumes[1]": {"name": "seed", "cloudInitNoCloud": {"userData": text}}, "P.domain.devices.disks[1]": {"name": "seed"}}
    )


@pytest.mark.spec("kubevirt", 126)
@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("#cloud-config\npasword: x\n", 'line 2: cloud-init knows no "pasword"; did you mean "password"?'),
        ("#cloud-config\na: [\n", "not valid cloud-config: line 3: did not find expected node content"),
        ("password: x\n", "no header that cloud-init knows"),
        ("#cloud-config\npassword: x\n", ""),
        ("#!/bin/sh\npasword: x\n", ""),
    ],
)
@scripted
async def test_cloud_init_is_read(text: str, warning: str) -> None:
    async with Harness() as api:
        reply = await api.post(VMS, seeded(text))
    assert reply.status == 201
    said = told(reply.warnings)
    assert ("cloudInitNoCloud.userData" in said) is bool(warning) and warning in said


def carded(name: str, *addresses: str) -> Data:
    interfaces = [{"name": f"n{number}", "bridge": {}, "macAddress": each} for number, each in enumerate(addresses)]
    networks = [{"name": f"n{number}", "multus": {"networkName": "lan"}} for number in range(len(addresses))]
    return objects.machine({"metadata.name": name, "P.domain.devices.interfaces": interfaces, "P.networks": networks})


@pytest.mark.spec("kubevirt", 126)
@scripted
async def test_addresses_that_two_cards_have() -> None:
    async with Harness() as api:
        twice = await api.post(VMS, carded("twice", "02:00:00:00:00:0a", "02-00-00-00-00-0A"))
        assert twice.status == 201 and "interfaces[1].macAddress: the card n0 of this machine has the same address" in told(twice.warnings)
        other = await api.post(VMS, carded("other", "02:00:00:00:00:0A"))
        assert "interfaces[0].macAddress: the VirtualMachine twice has the same address on the same network" in told(other.warnings)
        more = await api.post(VMS, carded("more", "02:00:00:00:00:0a"))
        assert told(more.warnings).count("has the same") + told(more.warnings).count("have the same") == 1
        assert "the VirtualMachine twice and others have the same address on the same network" in told(more.warnings)
        assert (await api.post(VMS, carded("third", "02:00:00:00:00:0b"))).warnings == []
        # What did not change is not told again.
        assert (await api.merge(f"{VMS}/other", {"metadata": {"labels": {"a": "b"}}})).warnings == []
        await api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}})
        far = carded("far", "02:00:00:00:00:0a")
        far["metadata"]["namespace"] = "far"
        assert (await api.post(VMS.replace("default", "far"), far)).warnings == []


@pytest.mark.spec("kubevirt", 126)
@scripted
async def test_a_template_that_was_carried_out_is_edited_in_vain() -> None:
    def templates(size: str) -> Data:
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        return {"dataVolumeTemplates": [{"metadata": {"name": "disk"}, "spec": {"source": {"blank": {}}, "pvc": claim}}]}

    machine = objects.machine({"P.volumes[0]": {"name": "root", "dataVolume": {"name": "disk"}}})
    machine["spec"] |= templates("1Gi")
    async with Harness() as api:
        assert (await api.post(VMS, machine)).status == 201
        assert (await api.merge(f"{VMS}/vm", {"spec": templates("2Gi")})).warnings == []
        made = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume", "metadata": {"name": "disk"}}
        assert (await api.post(CDI, made | {"spec": machine["spec"]["dataVolumeTemplates"][0]["spec"]})).status == 201
        edited = await api.merge(f"{VMS}/vm", {"spec": templates("3Gi")})
    assert edited.status == 200
    assert "spec.dataVolumeTemplates[0].spec: has no effect: the DataVolume disk is there already" in told(edited.warnings)
