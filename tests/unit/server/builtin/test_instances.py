"""What a VirtualMachineInstance gets when it is made, and what its defaults do not cover up."""

from typing import Any

import pytest

from tests.coroutines import scripted
from tests.kit.servers.apiharness import Harness

VMIS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"
CLONES = "/apis/clone.kubevirt.io/v1beta1/namespaces/default/virtualmachineclones"
DISK = {"name": "root", "disk": {"bus": "virtio"}}
IMAGE = {"name": "root", "containerDisk": {"image": "quay.io/containerdisks/fedora:38"}}


def instance(domain: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    devices = {"disks": [DISK], "interfaces": [{"name": "default", "masquerade": {}}]}
    hardware = {"devices": devices, "memory": {"guest": "1Gi"}, **(domain or {})}
    made = {"domain": hardware, "networks": [{"name": "default", "pod": {}}], "volumes": [IMAGE], **spec}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "a"}, "spec": made}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (instance({"devices": {"disks": [DISK], "interfaces": [{"name": "default"}]}}), "spec.domain.devices.interfaces[0]"),
        (
            instance({"features": {"hyperv": {"synic": {}, "vpindex": {"enabled": False}}}}),
            "spec.domain.features.hyperv.domain.features.hyperv.synic",
        ),
        (
            instance({"features": {"hyperv": {"ipi": {}, "vpindex": {"enabled": False}}}}),
            "spec.domain.features.hyperv.domain.features.hyperv.ipi",
        ),
        (
            instance({"features": {"hyperv": {"evmcs": {}, "vapic": {"enabled": False}}}}),
            "spec.domain.features.hyperv.domain.features.hyperv.evmcs",
        ),
        (
            instance(utilityVolumes=[{"name": "dump", "persistentVolumeClaim": {"claimName": "dump"}, "type": "MemoryDump"}]),
            "spec.utilityVolumes",
        ),
    ],
)
@pytest.mark.spec("kubevirt", 170)
@scripted
async def test_a_default_hides_nothing_that_is_refused(given: dict[str, Any], field: str) -> None:
    async with Harness() as api:
        reply = await api.post(VMIS, given)
    assert reply.status == 422
    assert field in reply.causes


@scripted
async def test_a_template_with_utility_volumes_is_refused() -> None:
    spec = instance(utilityVolumes=[{"name": "dump", "persistentVolumeClaim": {"claimName": "dump"}, "type": "MemoryDump"}])["spec"]
    machine = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "a"},
        "spec": {"runStrategy": "Halted", "template": {"spec": spec}},
    }
    async with Harness() as api:
        reply = await api.post(VMIS.replace("instances", "s"), machine)
    assert "spec.template.spec.utilityVolumes" in reply.causes


@pytest.mark.parametrize(("architecture", "topology"), [("amd64", "v3"), ("arm64", "v3"), ("s390x", None)])
@pytest.mark.spec("kubevirt", 171)
@scripted
async def test_an_instance_has_an_identity_and_the_layout_of_its_bus(architecture: str, topology: str | None) -> None:
    async with Harness() as api:
        made = (await api.post(VMIS, instance(architecture=architecture))).data
        again = (await api.put(f"{VMIS}/a", made)).data
    assert made["spec"]["domain"]["firmware"]["uuid"]
    assert made["metadata"]["annotations"].get("kubevirt.io/pci-topology-version") == topology
    assert again["spec"] == made["spec"]


@scripted
async def test_an_identity_that_is_given_stays() -> None:
    given = instance({"firmware": {"uuid": "fake-uuid"}})
    given["metadata"]["annotations"] = {"kubevirt.io/pci-topology-version": "v2"}
    async with Harness() as api:
        made = (await api.post(VMIS, given)).data
    assert made["spec"]["domain"]["firmware"]["uuid"] == "fake-uuid"
    assert made["metadata"]["annotations"]["kubevirt.io/pci-topology-version"] == "v2"


@pytest.mark.parametrize("target", [None, {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": ""}])
@pytest.mark.spec("kubevirt", 172)
@scripted
async def test_a_clone_names_its_target(target: dict[str, Any] | None) -> None:
    source = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}
    clone = {
        "apiVersion": "clone.kubevirt.io/v1beta1",
        "kind": "VirtualMachineClone",
        "metadata": {"name": "c"},
        "spec": {"source": source, **({"target": target} if target is not None else {})},
    }
    async with Harness() as api:
        made = (await api.post(CLONES, clone)).data
    assert made["spec"]["target"]["name"].startswith("clone-web-")
    assert made["spec"]["target"]["kind"] == "VirtualMachine"


MIGRATIONS = VMIS.replace("instances", "instancemigrations")


@pytest.mark.parametrize(
    ("spec", "field"),
    [({}, "spec.vmiName"), ({"vmiName": "gone"}, "spec.vmiName"), ({"vmiName": "a", "priority": "system-critical"}, "spec.priority")],
)
@pytest.mark.spec("kubevirt", 176)
@scripted
async def test_a_migration_is_of_an_instance_that_there_is(spec: dict[str, Any], field: str) -> None:
    move = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration", "metadata": {"name": "move"}}
    async with Harness() as api:
        await api.post(VMIS, instance())
        refused = await api.post(MIGRATIONS, {**move, "spec": spec})
        taken = await api.post(MIGRATIONS, {**move, "spec": {"vmiName": "a"}})
    assert refused.status == 422 and field in refused.causes
    assert taken.status == 201
