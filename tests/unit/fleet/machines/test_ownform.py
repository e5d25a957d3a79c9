"""A Machine in Vitistack's own form, as `paddock ls`, `plan` and `set` see it."""

import asyncio
import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.fleet.machines import facts, planning
from paddock.fleet.machines.edits import ObjectEdit
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.servers import surroundings
from paddock.kubernetes.client.target import Key
from tests.coroutines import run_by
from tests.kit.declarations.frontkinds import VITISTACK
from tests.kit.servers.apiclient import inside
from tests.kit.servers.apiharness import Harness
from tests.unit.cli.commands import paddock
from tests.unit.fleet.machines.examples import Data, vm, vmi

GROUP = "vitistack.io/v1alpha1"
ROOT, DATA = {"name": "root", "sizeGB": 10, "boot": True}, {"name": "data", "sizeGB": 5, "type": "virtio"}
SPEC: Data = {
    "provider": "kubevirt",
    "machineClass": "small",
    "cpu": {"cores": 2, "threadsPerCore": 2, "sockets": 1},
    "memory": 2 << 30,
    "name": "web",
    "userData": "#cloud-config",
    "os": {"imageID": "http://images/root.iso", "architecture": "amd64"},
    "disks": [ROOT, DATA],
    "network": {"networkNamespaceName": "lan"},
    "tags": {"team": "shop"},
}


def machine(**spec: Any) -> Data:
    """A Machine; None takes a member away."""
    found = {key: value for key, value in {**copy.deepcopy(SPEC), **spec}.items() if value is not None}
    return {"apiVersion": GROUP, "kind": "Machine", "metadata": {"name": "web", "namespace": "default"}, "spec": found}


def machine_class(**spec: Any) -> Data:
    return {
        "apiVersion": GROUP,
        "kind": "MachineClass",
        "metadata": {"name": "tall"},
        "spec": {"cpu": {"cores": 1, "sockets": 1}, "memory": {"quantity": "1Gi"}, **spec},
    }


def status(**members: Any) -> Data:
    return {**machine(), "status": members}


# --- ls ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "made", "sizes"),
    [
        ({}, None, (4, 2 << 30)),
        ({"cpu": {"cores": 3}, "memory": None}, None, (3, 0)),
        ({"cpu": None, "memory": None}, None, (0, 0)),
        ({}, {"cpu": {"sockets": 1, "cores": 2, "threads": 1}, "memory": {"guest": "512Mi"}}, (2, 512 << 20)),
    ],
    ids=["its own", "some of its own", "its class's", "its VirtualMachine's"],
)
def test_the_sizes_are_its_own_until_it_has_a_virtual_machine(spec: Data, made: Data | None, sizes: tuple[int, int]) -> None:
    beside = vm(template={"spec": {"domain": made}}) if made else None
    found = facts.of(MachineView(kind=VITISTACK, data=machine(**spec), vm=beside))
    assert (found.cpus, found.memory) == sizes


@pytest.mark.parametrize(
    ("members", "shown"),
    [
        ({}, ("Pending", "waits")),
        ({"phase": "Creating", "state": "Provisioning"}, ("Creating", "waits")),
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}, ("Running", "good")),
        ({"phase": "Stopped"}, ("Stopped", "off")),
        (
            {"phase": "Failed", "failureReason": "KubeVirtApiError", "conditions": [{"type": "Ready", "reason": "KubeVirtApiError"}]},
            ("KubeVirtApiError", "bad"),
        ),
        ({"phase": "Pending", "conditions": [{"type": "Ready", "reason": "MachineClassNotFound"}]}, ("MachineClassNotFound", "bad")),
    ],
)
def test_the_word_of_its_status(members: Data, shown: tuple[str, str]) -> None:
    found = facts.of(MachineView(kind=VITISTACK, data=status(**members)))
    assert (found.status, found.state) == shown


def test_its_addresses_are_those_of_its_instance_or_of_its_status() -> None:
    told = status(phase="Running", ipAddresses=["10.0.0.9"], ipv6Addresses=["2001:db8::9"])
    assert facts.of(MachineView(kind=VITISTACK, data=told)).ips == ("10.0.0.9", "2001:db8::9")
    run = vmi(phase="Running", interfaces=[{"name": "eth0", "ipAddress": "10.0.0.5"}])
    assert facts.of(MachineView(kind=VITISTACK, data=told, vm=vm(), vmi=run)).ips == ("10.0.0.5",)


# --- plan -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "field", "effect"),
    [
        ({"cpu": {"cores": 4, "threadsPerCore": 2, "sockets": 1}}, "spec.cpu.cores", "restart"),
        ({"cpu": {"cores": 2, "threadsPerCore": 2, "sockets": 2}}, "spec.cpu.sockets", "live"),
        ({"cpu": {"cores": 2, "threadsPerCore": 1, "sockets": 1}}, "spec.cpu.threadsPerCore", "restart"),
        ({"memory": 4 << 30}, "spec.memory", "live"),
        ({"memory": 1 << 30}, "spec.memory", "restart"),
        # Its own sizes stand above those of its class.
        ({"machineClass": "large"}, "spec.machineClass", "no effect"),
        ({"machineClass": "large", "memory": None}, "spec.memory", "restart"),
        ({"name": "shop"}, "spec.name", "restart"),
        ({"userData": "#cloud-config\n# other"}, "spec.userData", "restart"),
        ({"os": {"imageID": "http://images/other.iso", "architecture": "amd64"}}, "spec.os.imageID", "no effect"),
        ({"os": {"isoUri": "http://images/other.iso", "architecture": "amd64"}}, "spec.os.isoUri", "restart"),
        ({"os": {"imageID": "http://images/root.iso", "architecture": "arm64"}}, "spec.os.architecture", "restart"),
        ({"disks": [ROOT, {**DATA, "sizeGB": 9}]}, "spec.disks[data].sizeGB", "live"),
        ({"disks": [ROOT, {**DATA, "sizeGB": 2}]}, "spec.disks[data].sizeGB", "refused"),
        ({"disks": [ROOT, {**DATA, "type": "scsi"}]}, "spec.disks[data].type", "restart"),
        ({"disks": [ROOT, {**DATA, "iops": 100}]}, "spec.disks[data].iops", "no effect"),
        ({"disks": [ROOT, DATA, {"name": "more", "sizeGB": 1}]}, "spec.disks[more]", "restart"),
        ({"disks": [ROOT]}, "spec.disks[data]", "restart"),
        ({"network": {"networkNamespaceName": "wan"}}, "spec.network.networkNamespaceName", "restart"),
        ({"tags": {"team": "books"}}, "spec.tags.team", "no effect"),
    ],
)
def test_the_effect_of_each_change(spec: Data, field: str, effect: str, tmp_path: Path) -> None:
    for name, data in (("old", machine()), ("new", machine(**spec))):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(data))
    answer = paddock("plan", "-f", str(tmp_path / "new.yaml"), "--against", str(tmp_path / "old.yaml"), "-o", "yaml")
    found = {each["field"]: each["effect"] for each in yaml.safe_load(answer.out)["changes"]}
    assert found[field] == effect, answer


@pytest.mark.parametrize(
    ("spec", "effects"), [({"name": None}, {"no effect"}), ({}, {"no effect", "live", "restart"})], ids=["all of it", "but for its name"]
)
def test_the_machine_in_the_other_form_is_the_same_machine(spec: Data, effects: set[str], tmp_path: Path) -> None:
    given = machine(tags=None, os=None, network=None, **spec)
    (tmp_path / "old.yaml").write_text(yaml.safe_dump(given))
    converted = paddock("convert", "-f", str(tmp_path / "old.yaml"), "--to", "vitistack", "--form", "document")
    (tmp_path / "new.yaml").write_text(converted.out)
    answer = paddock("plan", "-f", str(tmp_path / "new.yaml"), "--against", str(tmp_path / "old.yaml"), "-o", "yaml")
    assert {each["effect"] for each in yaml.safe_load(answer.out)["changes"]} == effects, (converted, answer)


@pytest.mark.parametrize(
    ("classes", "effect"), [((machine_class(),), "no effect"), ((), "restart")], ids=["its class is there", "nobody knows it"]
)
@run_by(asyncio.run)
async def test_a_change_on_a_server_is_judged_with_its_class(classes: tuple[Data, ...], effect: str) -> None:
    before, after = machine(), machine(machineClass="tall")
    async with Harness() as server, inside(server) as client:
        for each in classes:
            assert (await server.post(f"/apis/{GROUP}/machineclasses", each)).status == 201
        world = await surroundings.read(client, after)
        edit = ObjectEdit(target=VITISTACK.target, key=Key("default", "web"), before=before, after=after)
        (change,) = planning.plan(edit, "web", world, running=True).changes
    assert change.effect == effect
