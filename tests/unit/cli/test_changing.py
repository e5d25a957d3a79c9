"""`paddock set`, `disk` and `nic` on a server: what is asked, what is written, and into which object."""

import itertools
from typing import Any
from unittest.mock import AsyncMock

import pytest

from paddock.cli import changing, confirming
from paddock.cli.console import Console
from paddock.fleet.kinds import VM
from paddock.fleet.machines import sizes, waiting
from paddock.fleet.machines.claims import CLAIMS
from paddock.fleet.machines.edits import ChangeRefused, ObjectEdit, merge_patch
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.planning import ChangePlan
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client import options
from paddock.kubernetes.client.errors import Conflict, StatusDetails
from paddock.kubernetes.meta.patch import apply_merge_patch
from tests.unit.fleet.machines.fakeserver import Data, FakeServer

VIRT = "kubevirt.io/v1"
_DEVICES = {"disks": [{"name": "root", "disk": {"bus": "virtio"}}], "interfaces": [{"name": "default", "masquerade": {}}]}


def vm(**spec: Any) -> Data:
    hardware = {
        "domain": {"cpu": {"sockets": 2}, "memory": {"guest": "2Gi"}, "devices": _DEVICES},
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [{"name": "root", "dataVolume": {"name": "web-root"}}],
    }
    storage = {"resources": {"requests": {"storage": "10Gi"}}}
    template = {"metadata": {"name": "web-root"}, "spec": {"source": {"blank": {}}, "storage": storage}}
    inner = {"runStrategy": "Halted", "dataVolumeTemplates": [template], "template": {"spec": hardware}, **spec}
    return {"apiVersion": VIRT, "kind": "VirtualMachine", "metadata": {"name": "web"}, "spec": inner}


STAKATER: Data = {
    "apiVersion": "infrastructure.stakater.com/v1",
    "kind": "VirtualMachine",
    "metadata": {"name": "web"},
    "spec": {
        "parameters": {
            "dataSource": {"name": "rhel9", "namespace": "images"},
            "storage": {"size": "30Gi"},
            "cpu": {"cores": 2, "sockets": 1, "threads": 1},
            "memory": {"guest": "4Gi"},
            "additionalDisks": [{"name": "data", "size": "10Gi"}],
        }
    },
}
VITISTACK: Data = {
    "apiVersion": "vitistack.io/v1alpha1",
    "kind": "Machine",
    "metadata": {"name": "web"},
    "spec": {"template": "medium", "disks": [{"name": "data", "size": "10Gi"}]},
}
OWN_FORM: Data = {
    "apiVersion": "vitistack.io/v1alpha1",
    "kind": "Machine",
    "metadata": {"name": "web"},
    "spec": {"provider": "kubevirt", "machineClass": "small", "cpu": {"cores": 2}, "disks": [{"name": "data", "sizeGB": 10}]},
}
NO_DISKS: Data = {**OWN_FORM, "spec": {"provider": "kubevirt"}}
VIRTRIGAUD: Data = {
    "apiVersion": "infra.virtrigaud.io/v1beta1",
    "kind": "VirtualMachine",
    "metadata": {"name": "web"},
    "spec": {
        "providerRef": {"name": "esx"},
        "classRef": {"name": "small"},
        "imageRef": {"name": "debian"},
        "disks": [{"name": "data", "sizeGiB": 10}],
    },
}
CLASS: Data = {
    "apiVersion": "infra.virtrigaud.io/v1beta1",
    "kind": "VMClass",
    "metadata": {"name": "small"},
    "spec": {"cpu": 2, "memory": "4Gi", "firmware": "UEFI", "diskDefaults": {"size": "40Gi"}},
}
LAN: Data = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": {"name": "lan"}, "spec": {"config": ""}}
CONFIGURATION: Data = {
    "apiVersion": "vitistack.io/v1alpha1",
    "kind": "NetworkConfiguration",
    "metadata": {"name": "lan"},
    "spec": {"name": "lan"},
}
CLAIM: Data = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "web-root"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}},
}


def at(data: Data, path: str) -> Any:
    found: Any = data
    for step in path.split("."):
        found = found[int(step)] if step.isdecimal() else found[step]
    return found


@pytest.mark.parametrize(
    ("machine", "words", "wrote"),
    [
        (vm(), "set web cpu=4 mem=4Gi", {"template.spec.domain.cpu.sockets": 4, "template.spec.domain.memory.guest": "4Gi"}),
        (vm(), "set web run=Always grace=7", {"runStrategy": "Always", "template.spec.terminationGracePeriodSeconds": 7}),
        (STAKATER, "set web cpu=8 mem=6Gi", {"parameters.cpu.sockets": 4, "parameters.cpu.cores": 2, "parameters.memory.guest": "6Gi"}),
        (STAKATER, "set web cpu=3", {"parameters.cpu.sockets": 3, "parameters.cpu.cores": 1}),
        (VITISTACK, "set web cpus=4 memory=6Gi", {"resources.cpu.sockets": 4, "resources.memory.size": "6Gi"}),
        (VITISTACK, "set web template=large", {"template": "large"}),
        (OWN_FORM, "set web cpu=4 mem=6Gi class=large", {"cpu.sockets": 2, "memory": 6 << 30, "machineClass": "large"}),
        (OWN_FORM, "set web cpu=3", {"cpu": {"cores": 1, "threadsPerCore": 1, "sockets": 3}}),
        (VIRTRIGAUD, "set web cpu=4 mem=6Gi", {"resources.cpu": 4, "resources.memoryMiB": 6144}),
        (VIRTRIGAUD, "set web class=large", {"classRef.name": "large"}),
        (vm(), "disk add web data 20Gi", {"template.spec.volumes.1.dataVolume": {"name": "web-data", "hotpluggable": True}}),
        (vm(), "disk add web more --claim old", {"template.spec.volumes.1.persistentVolumeClaim.claimName": "old"}),
        (STAKATER, "disk add web more 20Gi", {"parameters.additionalDisks.1.size": "20Gi"}),
        (VITISTACK, "disk add web more 20Gi --storage-class fast", {"disks.1.storageClass": "fast", "disks.1.size": "20Gi"}),
        (OWN_FORM, "disk add web more 20Gi --bus sata", {"disks.1": {"name": "more", "sizeGB": 20, "type": "sata"}}),
        (NO_DISKS, "disk add web more 20Gi", {"disks.0": {"name": "root", "sizeGB": 10, "boot": True}, "disks.1.sizeGB": 20}),
        (VIRTRIGAUD, "disk add web more 20Gi", {"disks.1.sizeGiB": 20}),
        (STAKATER, "disk grow web data +5Gi", {"parameters.additionalDisks.0.size": "15Gi"}),
        (STAKATER, "disk grow web root 40Gi", {"parameters.storage.size": "40Gi"}),
        (VITISTACK, "disk grow web root 80Gi", {"disks.1": {"name": "root", "size": "80Gi"}}),
        (OWN_FORM, "disk grow web data 20Gi", {"disks": [{"name": "data", "sizeGB": 20}]}),
        (NO_DISKS, "disk grow web root 20Gi", {"disks": [{"name": "root", "sizeGB": 20}]}),
        (VIRTRIGAUD, "disk grow web data 20Gi", {"disks.0.sizeGiB": 20}),
        (STAKATER, "disk rm web data", {"parameters.additionalDisks": []}),
        (VITISTACK, "disk rm web data", {"disks": []}),
        (VIRTRIGAUD, "disk rm web data", {"disks": []}),
        (vm(), "nic add web lan", {"template.spec.networks.1.multus.networkName": "lan"}),
        (vm(), "nic add web default/lan --name fast --mac 52:54:00:00:00:07", {"template.spec.domain.devices.interfaces.1.name": "fast"}),
        (STAKATER, "nic add web lan", {"parameters.networks.1.multus.networkName": "lan", "parameters.networks.0.name": "default"}),
        (VITISTACK, "nic add web lan", {"networks.0.networkName": "lan"}),
    ],
)
def test_each_dialect_gets_the_wish_in_its_own_fields(
    machine: Data, words: str, wrote: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = FakeServer(monkeypatch, machine, CLASS, LAN, CONFIGURATION)
    answer = server.run(*words.split(), "--yes")
    assert (answer.code, answer.out.startswith(("vm/web ", "stakater/web ", "vitistack/web ", "virtrigaud/web "))) == (0, True), answer
    assert {path: at(server.found[0]["spec"], path) for path in wrote} == wrote


@pytest.mark.parametrize(
    ("machine", "words", "says"),
    [
        (vm(), "set web cpu=four", '"four" is no number for cpu; write a whole number: cpu=4'),
        (vm(), "set web mem=2GB", "did you mean 2G or 2Gi?"),
        (vm(), "set web cpuu=4", 'did you mean "cpu"?'),
        (vm(), "set web cpu", "write a key, = and a value"),
        (vm(), "set web class=large", "kubevirt has no field for it; its keys are cpu, mem"),
        (VIRTRIGAUD, "set web run=Halted", "its keys are cpu, mem, class"),
        (VIRTRIGAUD, "set web mem=4500k", "VirtRigaud counts memory in whole MiB"),
        (vm(), "disk add web root 1Gi", 'already has a disk "root"'),
        (vm(), "disk grow web dat 1Gi", 'has no disk "dat"; its disks: root'),
        (vm(), "disk grow web root 1Gi", "cannot shrink to 1Gi (it has 10Gi"),
        (vm(), "disk add web data", "give a size for an empty disk, or --claim CLAIM"),
        (STAKATER, "disk add web data2 --claim old", "makes the disks of its machines itself"),
        (VIRTRIGAUD, "disk grow web root 80Gi", "diskDefaults of the VMClass small"),
        (VIRTRIGAUD, "disk add web more 1500Mi", "whole GiB; write 2Gi"),
        (VIRTRIGAUD, "nic add web lan", "VirtRigaud wires a machine when it makes it"),
        (VIRTRIGAUD, "nic rm web lan", "VirtRigaud wires a machine when it makes it"),
        (VITISTACK, "nic add web pod", "NetworkConfiguration"),
        (OWN_FORM, "nic add web lan", "Vitistack's own form of the Machine has one card"),
        (OWN_FORM, "set web template=large", "Vitistack's own form has classes; write class=large"),
        (VITISTACK, "set web class=large", "the document's form has templates; write template=large"),
        (OWN_FORM, "disk add web more 1500Mi", "Vitistack's own form counts disks in whole GiB; write 2Gi"),
        (OWN_FORM, "disk add web more 2Gi --storage-class fast", "Vitistack's own form of the Machine has no field for it"),
        (OWN_FORM, "disk grow web root 20Gi", 'has no disk "root"; its disks: data'),
        (vm(), "nic add web pod --name more", "KubeVirt allows one"),
        (vm(), "nic rm web lan", 'no interface "lan" in its spec'),
        (STAKATER, "nic add web lan --mac 52:54:00:00:00:07", "stakater has no field for it; leave --mac out"),
        (STAKATER, "clone web twin", "--dialect kubevirt"),
        (vm(), "nic add web lan", "default; make it first; `paddock explain NetworkAttachmentDefinition`"),
        (vm(), "nic add web infra/lan", "there is no NetworkAttachmentDefinition lan in the namespace infra"),
        (
            VITISTACK,
            "nic add web lan",
            "there is no NetworkConfiguration lan in the namespace default; make it first; `paddock explain NetworkConfiguration`",
        ),
        (vm(), "clone web web", "vm/web already"),
        (vm(), "restore web", "for that: paddock backup restore web"),
        (vm(), "restore web one --dir /tmp", "paddock backup restore FILE --dir DIR"),
        (vm(), "restore web one", 'has no snapshot "one"; it has none'),
        (vm(), "suspend web", "it does not run; `paddock start vm/web` starts it"),
        (vm(), "resume web", "it is not suspended; `paddock info vm/web`"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_way(machine: Data, words: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer(monkeypatch, machine, CLASS)
    answer = server.run(*words.split())
    assert (answer.code, answer.out) == (2, "")
    assert says.replace(" (it has", "; it has") in answer.err.replace(": it has", "; it has").replace(": VirtRigaud", "; VirtRigaud"), (
        answer.err
    )


def test_a_dry_run_shows_the_plan_and_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer(monkeypatch, vm())
    answer = server.run("set", "web", "cpu=4", "--dry-run")
    assert answer.code == 0
    assert "spec.template.spec.domain.cpu.sockets: 2 -> 4" in answer.err
    assert "The machine does not run; it starts with this." in answer.err
    assert at(server.found[0], "spec.template.spec.domain.cpu.sockets") == 2


def test_the_servers_own_checks_come_before_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer(monkeypatch, vm())
    answer = server.run("set", "web", "run=Sometimes", "--yes")
    assert answer.code == 2
    assert "runStrategy" in answer.err
    assert server.found[0]["spec"]["runStrategy"] == "Halted"


@pytest.mark.parametrize("meanwhile", ["status", "spec", "spec, time and again"])
def test_only_endless_changes_of_the_spec_are_a_conflict(meanwhile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = changing._planned
    names = itertools.count()

    async def beside(server: ServerSession, machine: MachineView, edit: ObjectEdit) -> ChangePlan:
        now: Data = await server.client.get(edit.target, edit.key)
        if meanwhile == "status":
            status = {**now, "status": {"created": True}}
            await server.client.update(edit.target, status, options.WriteOptions(subresource="status"))
        elif meanwhile != "spec" or not next(names):
            labels = {f"other-{next(names)}": "change"}
            await server.client.patch(edit.target, edit.key, options.merge_patch({"spec": {"template": {"metadata": {"labels": labels}}}}))
        return await planned(server, machine, edit)

    monkeypatch.setattr(changing, "_planned", beside)
    server = FakeServer(monkeypatch, vm())
    answer = server.run("set", "web", "cpu=4", "--yes")
    is_endless = meanwhile.endswith("again")
    assert (answer.code, answer.out) == ((2, "") if is_endless else (0, "vm/web set\n"))
    assert ("the object has been modified" in answer.err) is is_endless
    assert at(server.found[0], "spec.template.spec.domain.cpu.sockets") == (2 if is_endless else 4)
    # What the other wrote stays.
    metadata = at(server.found[0], "spec.template.metadata")
    assert ("other-1" in metadata.get("labels", {})) is (meanwhile != "status")


@pytest.mark.parametrize(
    ("words", "out"),
    [
        ("disk grow web root +10Gi", "vm/web has 20Gi on the disk root\n"),
        ("disk rm web root", "vm/web no longer has the disk root\n"),
        ("disk rm web root --purge", "vm/web no longer has the disk root\nclaim/web-root deleted\n"),
    ],
)
def test_a_disk_is_grown_or_removed_anew_when_a_controller_was_faster(words: str, out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planned, questions = changing._planned, list[str]()

    async def beside(server: ServerSession, machine: MachineView, edit: ObjectEdit) -> ChangePlan:
        if "labels" not in at(machine.data, "spec.template.metadata"):
            labels = {"spec": {"template": {"metadata": {"labels": {"controllers": "change"}}}}}
            await server.client.patch(edit.target, edit.key, options.merge_patch(labels))
        return await planned(server, machine, edit)

    def agreed(console: Console, question: str, *, yes: bool) -> bool:
        questions.extend(() if yes else (question,))
        return True

    monkeypatch.setattr(changing, "_planned", beside)
    monkeypatch.setattr(confirming, "agreed", agreed)
    server = FakeServer(monkeypatch, vm(), *([CLAIM] if "grow" in words else []))
    answer = server.run(*words.split())
    assert (answer.code, answer.out) == (0, out), answer.err
    assert at(server.found[0], "spec.template.metadata.labels") == {"controllers": "change"}
    assert len(questions) == len(set(questions))


def test_what_a_disk_grows_by_counts_once_however_often_the_edit_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    write, attempts = changing._write, itertools.count()

    async def overtaken(server: ServerSession, edit: ObjectEdit, *, dry_run: bool) -> None:
        if edit.target is CLAIMS and not dry_run and not next(attempts):
            raise changing._Overtaken(409, StatusDetails(message="the object has been modified", reason="Conflict"))
        await write(server, edit, dry_run=dry_run)

    monkeypatch.setattr(changing, "_write", overtaken)
    server = FakeServer(monkeypatch, vm(), CLAIM)
    answer = server.run("disk", "grow", "web", "root", "+10Gi")
    assert (answer.code, answer.out, next(attempts)) == (0, "vm/web has 20Gi on the disk root\n", 2), answer.err
    assert at(server.found[0], "spec.dataVolumeTemplates.0.spec.storage.resources.requests.storage") == "20Gi"
    assert at(server.found[1], "spec.resources.requests.storage") == "20Gi"


def test_a_refused_restart_is_no_reason_to_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    restart = AsyncMock(side_effect=Conflict(409, StatusDetails(message="VM is not running", reason="Conflict")))
    monkeypatch.setattr(changing, "_restart", restart)
    monkeypatch.setattr(waiting, "runs", lambda machine: True)
    answer = FakeServer(monkeypatch, vm(runStrategy="Always")).run("set", "web", "cpu=1", "--restart", "--yes")
    assert ([call.args[1].name for call in restart.await_args_list], answer.code) == (["web"], 2), answer.err
    assert "VM is not running" in answer.err and "nothing to change" not in answer.err


def test_nothing_to_change_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer(monkeypatch, vm())
    assert "is like that already; nothing to change" in server.run("set", "web", "cpu=2").err


def test_a_disk_of_kubevirt_grows_with_its_claim_and_its_template(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer(monkeypatch, vm(), CLAIM)
    answer = server.run("disk", "grow", "web", "root", "+10Gi")
    assert (answer.code, answer.out) == (0, "vm/web has 20Gi on the disk root\n")
    assert at(server.found[0], "spec.dataVolumeTemplates.0.spec.storage.resources.requests.storage") == "20Gi"
    assert at(server.found[1], "spec.resources.requests.storage") == "20Gi"
    # The machine may say less than its claim has.
    server.objects[1]["spec"]["resources"]["requests"]["storage"] = "40Gi"
    assert "the claim web-root of vm/web cannot shrink to 30Gi" in server.run("disk", "grow", "web", "root", "30Gi").err


def test_an_instancetype_leaves_no_room_for_own_sizes() -> None:
    data = vm(instancetype={"name": "u1.small", "kind": "VirtualMachineInstancetype", "revisionName": "web-1"})
    machine = MachineView(kind=VM, data=data, vm=data)
    with pytest.raises(ChangeRefused, match=r"its sizes come from the instancetype u1.small; .*instancetype=NAME"):
        sizes.resized(machine, {"cpu": "4"})
    # The revision belongs to the former instancetype.
    after = sizes.resized(machine, {"instancetype": "u1.large"})
    assert after["spec"]["instancetype"] == {"name": "u1.large", "kind": "VirtualMachineInstancetype"}
    with pytest.raises(ChangeRefused, match="it has sizes of its own"):
        sizes.resized(MachineView(kind=VM, data=vm()), {"instancetype": "u1.large"})


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1, "b": 2}, {"a": 1}, {"b": None}),
        ({"a": {"b": 1, "c": 1}}, {"a": {"b": 2, "c": 1}}, {"a": {"b": 2}}),
        ({"a": [1]}, {"a": [1, 2]}, {"a": [1, 2]}),
        ({}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    ],
)
def test_a_merge_patch_is_the_difference(before: Data, after: Data, patch: Data) -> None:
    assert merge_patch(before, after) == patch
    assert apply_merge_patch(before, patch) == after


def test_lists_show_what_the_machine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer(monkeypatch, vm())
    answer = server.run("disk", "ls", "web")
    assert answer.err == ""
    assert answer.out.split() == [
        "NAME",
        "SIZE",
        "SOURCE",
        "BUS",
        "GUEST",
        "STATE",
        "root",
        "10Gi",
        "dataVolume",
        "virtio",
        "-",
        "-",
    ]
    assert server.run("nic", "ls", "web", "-o", "name").out == "default\n"
    assert server.run("disk", "ls", "web", "-o", "yaml").out.startswith("- name: root\n")


def test_the_last_interface_leaves_no_default_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer(monkeypatch, vm())
    assert server.run("nic", "rm", "web", "default").code == 0
    devices = at(server.found[0], "spec.template.spec.domain.devices")
    assert (devices["autoattachPodInterface"], devices.get("interfaces", [])) == (False, [])


def test_the_pod_network_that_nobody_wrote_stays_beside_a_new_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = vm(template={"spec": {"domain": {"devices": {}, "memory": {"guest": "1Gi"}}}}, dataVolumeTemplates=[])
    server = FakeServer(monkeypatch, bare, LAN)
    assert server.run("nic", "add", "web", "lan").code == 0
    assert [each["name"] for each in at(server.found[0], "spec.template.spec.networks")] == ["default", "lan"]


def test_a_network_that_does_not_exist_is_answered_with_the_nearest_one(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer(monkeypatch, vm(), LAN)
    answer = server.run("nic", "add", "web", "lam")
    assert (answer.code, answer.out) == (2, "")
    assert 'did you mean "lan"?' in answer.err
    assert server.run("nic", "add", "web", "outside").err.endswith("the namespace has lan\n")
