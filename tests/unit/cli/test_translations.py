"""Rendering and converting: what passes through, what is told, what stops."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.cli.exits import FINDINGS, GOOD, LOSSES
from tests.unit.cli.commands import Answer, paddock

STAKATER = """\
apiVersion: infrastructure.stakater.com/v1
kind: VirtualMachine
metadata: {name: web}
spec: {parameters: {cloudInit: {password: hunter2}}}
"""
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\nstringData: {userdata: x}\n"
FOREIGN = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {paused: off, replicas: 1}\n"
RIGAUD = """\
apiVersion: infra.virtrigaud.io/v1beta1
kind: VirtualMachine
metadata: {name: web}
spec:
  providerRef: {name: p}
  classRef: {name: c}
  imageRef: {name: i}
  networks: [{name: nic, networkRef: {name: lan}}]
  powerState: On
  tags: [red]
"""
CLASS = "apiVersion: infra.virtrigaud.io/v1beta1\nkind: VMClass\nmetadata: {name: c}\nspec: {cpu: 1, memory: 1Gi}\n"
IMAGE = """\
apiVersion: infra.virtrigaud.io/v1beta1
kind: VMImage
metadata: {name: i}
spec:
  source: {vsphere: {templateName: t}, libvirt: {url: "https://example.com/i.qcow2"}}
"""
KUBEVIRT = """\
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web}
spec:
  runStrategy: Halted
  template:
    spec:
      hostname: shop
      domain: {memory: {guest: 1Gi}, devices: {disks: [{name: root, disk: {bus: virtio}}, {name: ci, disk: {bus: virtio}}]}}
      volumes:
      - {name: root, dataVolume: {name: web-root}}
      - {name: ci, cloudInitNoCloud: {userData: "#cloud-config", networkData: "password: hunter2"}}
  dataVolumeTemplates:
  - metadata: {name: web-root}
    spec: {sourceRef: {kind: DataSource, name: os, namespace: images}, storage: {resources: {requests: {storage: 5Gi}}}}
"""
SNAPSHOT = """\
apiVersion: snapshot.kubevirt.io/v1beta1
kind: VirtualMachineSnapshot
metadata: {name: before}
spec: {source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web}}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("f.yaml")


def names(answer: Answer) -> list[str]:
    return [f"{data['kind']}/{data['metadata']['name']}" for data in yaml.safe_load_all(answer.out)]


def test_what_is_not_translated_passes_through(file: Path) -> None:
    file.write_text(f"{FOREIGN}---\n{STAKATER}---\n{SECRET % 'mine'}")
    answer = paddock("render", "-f", "f.yaml")
    assert names(answer) == ["Deployment/d", "Secret/web-cloudinit", "VirtualMachine/web", "Secret/mine"]
    assert next(iter(yaml.safe_load_all(answer.out)))["spec"] == {"paused": False, "replicas": 1}


def test_the_same_object_twice_is_printed_once(file: Path) -> None:
    file.write_text(f"{SECRET % 'a'}---\n{SECRET % 'a'}")
    assert names(paddock("render", "-f", "f.yaml")) == ["Secret/a"]


def test_an_object_that_the_input_has_in_another_form_stops_rendering(file: Path) -> None:
    file.write_text(f"{SECRET % 'web-cloudinit'}---\n{STAKATER}")
    answer = paddock("render", "-f", "f.yaml")
    assert (answer.code, answer.out) == (FINDINGS, "")
    assert answer.err == (
        "f.yaml:8:18: error: VirtualMachine/web: metadata.name: becomes a Secret/web-cloudinit that differs from the one that"
        " Secret/web-cloudinit becomes; rename one of them (translate/twice)\n"
    )


def test_one_bad_object_stops_all(file: Path) -> None:
    file.write_text(f"{STAKATER}---\n{SECRET % 'Not_A_Name'}")
    for command in (["render"], ["convert", "--to", "vitistack"]):
        answer = paddock(*command, "-f", "f.yaml")
        assert (answer.code, answer.out) == (FINDINGS, "")
        assert "f.yaml:8:18: error: Secret/Not_A_Name: metadata.name:" in answer.err


def test_a_translation_that_cannot_be_done_says_where(file: Path) -> None:
    file.write_text("apiVersion: vitistack.io/v1alpha1\nkind: Machine\nmetadata: {name: a}\nspec: {template: huge}\n")
    answer = paddock("render", "-f", "f.yaml")
    assert (answer.code, answer.out) == (FINDINGS, "")
    assert answer.err.startswith('f.yaml:4:18: error: Machine/a: spec.template: template "huge" not found: use small, medium')
    assert answer.err.endswith("(translate/TemplateNotFound)\n")


def test_losses_tell_the_place_the_value_and_what_happens(file: Path) -> None:
    file.write_text(f"{RIGAUD}---\n{CLASS}---\n{IMAGE}")
    answer = paddock("render", "-f", "f.yaml")
    assert answer.code == GOOD
    assert 'f.yaml:8:45: loss: VirtualMachine/web: spec.networks[0].networkRef.name: "lan": ' in answer.err
    # A loss may be about an object that the machine refers to.
    assert "f.yaml:21:12: loss: VMImage/i: spec.source.vsphere: " in answer.err
    assert all(line.startswith("f.yaml:") and ": loss: " in line for line in answer.err.splitlines())


def test_losses_do_not_show_secrets(file: Path) -> None:
    file.write_text(KUBEVIRT)
    answer = paddock("convert", "-f", "f.yaml", "--to", "stakater")
    assert answer.code == GOOD
    assert "networkData: (not shown): " in answer.err
    assert "hunter2" not in answer.err
    assert 'f.yaml:8:17: loss: VirtualMachine/web: spec.template.spec.hostname: "shop": ' in answer.err


def test_losses_of_a_second_translation_point_at_the_object(file: Path) -> None:
    file.write_text(f"{FOREIGN}---\n{STAKATER}")
    answer = paddock("convert", "-f", "f.yaml", "--to", "vitistack")
    lines = [line for line in answer.err.splitlines() if ": loss: VirtualMachine/web: " in line]
    assert lines
    assert all(line.startswith("f.yaml:6:1: ") for line in lines)
    assert "hunter2" not in answer.err


@pytest.mark.parametrize("target", ["stakater", "vitistack", "virtrigaud", "kubermatic", "kubevirt"])
def test_objects_beside_machines(target: str, file: Path) -> None:
    file.write_text(f"{KUBEVIRT}---\n{SNAPSHOT}---\n{FOREIGN}---\n{SECRET % 'mine'}")
    answer = paddock("convert", "-f", "f.yaml", "--to", target)
    assert {"Deployment/d", "Secret/mine"} <= set(names(answer))
    keeps = target in ("kubevirt", "kubermatic")
    assert ("VirtualMachineSnapshot/before" in names(answer)) is keeps
    said = "loss: VirtualMachineSnapshot/before: " in answer.err
    assert said is not keeps


def test_what_is_of_the_dialect_stays_as_it_was_written(file: Path) -> None:
    file.write_text(RIGAUD)
    answer = paddock("convert", "-f", "f.yaml", "--to", "virtrigaud")
    assert answer.err == ""
    (data,) = yaml.safe_load_all(answer.out)
    assert data["spec"]["powerState"] == "On"


def test_translations_are_the_same_every_time(file: Path) -> None:
    file.write_text(f"{KUBEVIRT}---\n{STAKATER.replace('web', 'shop')}---\n{RIGAUD.replace('web', 'rig')}")
    for target in ("stakater", "vitistack", "virtrigaud", "kubermatic", "kubevirt"):
        assert len({paddock("convert", "-f", "f.yaml", "--to", target) for _ in range(3)}) == 1


MACHINE = """\
apiVersion: vitistack.io/v1alpha1
kind: Machine
metadata: {name: box, namespace: default}
spec: {resources: {memory: {size: 5Gi}}, disks: [{name: root, size: 41Gi}, {name: data, size: 100Gi, storageClass: fast-ssd}]}
"""
BRIDGED = """\
apiVersion: infra.virtrigaud.io/v1beta1
kind: VMNetworkAttachment
metadata: {name: lan}
spec: {network: {libvirt: {bridge: {name: br7}}, type: bridged}}
"""
POOL = """\
apiVersion: kubevirt.io/v1alpha1
kind: VirtualMachinePool
metadata: {name: many}
spec:
  selector: {matchLabels: {of: many}}
  virtualMachineTemplate:
    metadata: {labels: {of: many}}
    spec:
      runStrategy: Halted
      domain: {memory: {guest: 1Gi}, devices: {disks: [{name: root, disk: {bus: virtio}}]}}
      volumes: [{name: root, dataVolume: {name: disk}}]
      dataVolumeTemplates:
      - metadata: {name: disk}
        spec:
          sourceRef: {kind: DataSource, name: os, apiGroup: cdi.kubevirt.io}
          pvc: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
"""
DATA_SOURCE = """\
apiVersion: cdi.kubevirt.io/v1beta1
kind: DataSource
metadata: {name: os}
spec: {source: {http: {url: "https://example.com/os.qcow2"}}}
"""


def converted(file: Path, text: str, target: str) -> list[dict[str, Any]]:
    file.write_text(text)
    return list(yaml.safe_load_all(paddock("convert", "-f", "f.yaml", "--to", target).out))


def test_disks_beside_a_machine_become_stakaters_own(file: Path) -> None:
    (machine,) = converted(file, MACHINE, "stakater")
    parameters = machine["spec"]["parameters"]
    assert parameters["storage"] == {"size": "41Gi"}
    (disk,) = parameters["additionalDisks"]
    assert (disk["name"], disk["size"], disk["storageClassName"]) == ("data", "100Gi", "fast-ssd")


def test_a_claim_that_virtrigaud_boots_from_goes_along(file: Path) -> None:
    made = converted(file, MACHINE, "virtrigaud")
    (claim,) = (each for each in made if each["kind"] == "PersistentVolumeClaim")
    machine = made[[each["kind"] for each in made].index("VirtualMachine")]
    assert machine["spec"]["importedDisk"] == {"diskID": claim["metadata"]["name"]}
    assert claim["spec"]["resources"] == {"requests": {"storage": "41Gi"}}
    (disk,) = machine["spec"]["disks"]
    assert (disk["sizeGiB"], disk["storageClass"]) == (100, "fast-ssd")


def test_a_bridge_stays_the_same(file: Path) -> None:
    (network, _) = converted(file, f"{RIGAUD}---\n{CLASS}---\n{IMAGE}---\n{BRIDGED}", "vitistack")
    assert network["spec"] == {"bridge": "br7"}
    text = f"{MACHINE.rstrip()}\n".replace("spec: {", "spec: {networks: [{name: eth0, networkName: lan}], ")
    network_of_vitistack = (
        "apiVersion: vitistack.io/v1alpha1\nkind: NetworkConfiguration\nmetadata: {name: lan, namespace: default}\nspec: {bridge: br7}\n"
    )
    made = converted(file, f"{network_of_vitistack}---\n{text}", "virtrigaud")
    (attachment,) = (each for each in made if each["kind"] == "VMNetworkAttachment")
    assert attachment["spec"]["network"]["libvirt"]["bridge"] == {"name": "br7"}


def test_a_data_source_stays_with_the_pool_that_refers_to_it(file: Path) -> None:
    assert [each["kind"] for each in converted(file, f"{POOL}---\n{DATA_SOURCE}", "kubermatic")] == ["VirtualMachinePool", "DataSource"]


def test_a_data_source_of_a_pool_that_is_left_out_is_reported(file: Path) -> None:
    file.write_text(f"{POOL}---\n{DATA_SOURCE}")
    answer = paddock("convert", "-f", "f.yaml", "--to", "stakater", "--strict")
    assert answer.code == LOSSES
    assert "loss: VirtualMachinePool/many:" in answer.err and "loss: DataSource/os:" in answer.err


OWN_FORM = """
apiVersion: vitistack.io/v1alpha1
kind: Machine
metadata: {name: web}
spec: {provider: kubevirt, machineClass: small, disks: [{name: sys, sizeGB: 5, boot: true, type: sata}]}
"""
DOCUMENT = """
apiVersion: vitistack.io/v1alpha1
kind: Machine
metadata: {name: web}
spec: {template: small, bootOrder: [disk, network], domain: {firmware: {bootloader: {efi: true}}}}
"""


@pytest.mark.spec("vitistack", 88)
@pytest.mark.parametrize(
    ("text", "form", "members", "told"),
    [
        (OWN_FORM, "document", {"resources": {"cpu": {"cores": 2}, "memory": {"size": "8Gi"}}}, "every disk of a Machine is virtio"),
        (OWN_FORM, "own", {"provider": "kubevirt", "machineClass": "small"}, ""),
        (DOCUMENT, "own", {"provider": "kubevirt", "memory": 2 << 30, "disks": [{"name": "root", "sizeGB": 20, "boot": True}]}, ""),
        (DOCUMENT, "document", {"template": "small"}, ""),
    ],
)
def test_a_machine_is_written_in_the_form_that_is_asked_for(file: Path, text: str, form: str, members: dict[str, Any], told: str) -> None:
    file.write_text(text)
    answer = paddock("convert", "-f", str(file), "--to", "vitistack", "--form", form)
    (machine,) = yaml.safe_load_all(answer.out)
    assert members.items() <= machine["spec"].items(), machine
    assert (told in answer.err) if told else answer.err == ""


def test_a_form_is_vitistacks() -> None:
    answer = paddock("convert", "-f", "-", "--to", "stakater", "--form", "own")
    assert answer.code == 2 and "write --to vitistack, or leave it out" in answer.err
