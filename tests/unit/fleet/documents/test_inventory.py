"""References, duplicates and foreign kinds among the objects of an input."""

from pathlib import Path

import pytest

from tests.unit.cli.commands import paddock

CLASS = "apiVersion: infra.virtrigaud.io/v1beta1\nkind: VMClass\nmetadata: {name: %s%s}\nspec: {cpu: 1, memory: 1Gi}\n"
MACHINE = """\
apiVersion: vitistack.io/v1alpha1
kind: Machine
metadata: {name: a%s}
spec: {template: small, networks: [{name: eth0, networkName: %s}]}
"""
NETWORK = "apiVersion: vitistack.io/v1alpha1\nkind: NetworkConfiguration\nmetadata: {name: %s%s}\nspec: {bridge: br0}\n"
OTHER = ", namespace: other"
KUBEVIRT = """\
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: m}
spec:
  runStrategy: Halted
  template:
    spec:
      domain: {memory: {guest: 1Gi}, devices: {disks: [{name: d, disk: {bus: virtio}}]}}
      volumes: [{name: d, %s}]
  %s
"""
CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: root}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
TEMPLATES = "dataVolumeTemplates: [{metadata: {name: root}, spec: {source: {blank: {}}, storage: {resources: {requests: {storage: 1Gi}}}}}]"


def foreign(version: str, kind: str) -> str:
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n"


def found(tmp_path: Path, *documents: str, about: str) -> list[str]:
    """The findings of a rule, without their places."""
    file = tmp_path / "f.yaml"
    file.write_text("---\n".join(documents))
    lines = paddock("validate", "-f", str(file)).out.splitlines()
    return [line.split(": ", 1)[1].removesuffix(f" ({about})") for line in lines if line.endswith(f"({about})")]


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ([MACHINE % ("", "lan")], ['the NetworkConfiguration "lan" is not in this input']),
        ([MACHINE % ("", "lan"), NETWORK % ("lan", "")], []),
        # order does not matter
        ([NETWORK % ("lan", ""), MACHINE % ("", "lan")], []),
        ([MACHINE % ("", "lam"), NETWORK % ("lan", "")], ['the NetworkConfiguration "lam" is not in this input; did you mean "lan"?']),
        ([MACHINE % ("", "qqqq"), NETWORK % ("lan", "")], ['the NetworkConfiguration "qqqq" is not in this input; it has "lan"']),
        # namespaces are kept apart
        (
            [MACHINE % (OTHER, "lan"), NETWORK % ("lan", "")],
            ['the NetworkConfiguration "lan" of namespace other is not in this input'],
        ),
        ([MACHINE % (OTHER, "lan"), NETWORK % ("lan", OTHER)], []),
        # what a machine brings along itself
        ([KUBEVIRT % ("dataVolume: {name: root}", TEMPLATES)], []),
        ([KUBEVIRT % ("persistentVolumeClaim: {claimName: root}", "")], ['the PersistentVolumeClaim "root" is not in this input']),
        ([KUBEVIRT % ("dataVolume: {name: root}", "")], ['the DataVolume "root" is not in this input']),
        # a claim will do for a DataVolume
        (
            [
                KUBEVIRT % ("dataVolume: {name: root}", ""),
                CLAIM,
            ],
            [],
        ),
    ],
)
def test_references(documents: list[str], expected: list[str], tmp_path: Path) -> None:
    told = found(tmp_path, *documents, about="input/reference")
    assert [line.split(": ", 3)[-1] for line in told] == expected
    assert all(line.startswith("warning: ") for line in told)


def test_a_default_is_nobodys_mistake(tmp_path: Path) -> None:
    machine = """\
apiVersion: infrastructure.stakater.com/v1
kind: VirtualMachine
metadata: {name: a, namespace: openshift-virtualization-os-images}
spec: {}
"""
    assert found(tmp_path, machine, about="input/reference") == []


def test_who_refers_to_a_namespace_that_others_keep(tmp_path: Path) -> None:
    machine = """\
apiVersion: infrastructure.stakater.com/v1
kind: VirtualMachine
metadata: {name: a}
spec: {parameters: {dataSource: {name: rhel8, namespace: images}}}
"""
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: images}\n"
    assert found(tmp_path, machine, about="input/reference") == []
    assert len(found(tmp_path, machine, secret, about="input/reference")) == 1


@pytest.mark.parametrize(
    ("documents", "count"),
    [
        ([CLASS % ("a", ""), CLASS % ("b", "")], 0),
        ([CLASS % ("a", ""), CLASS % ("a", "")], 1),
        ([CLASS % ("a", ""), CLASS % ("a", OTHER)], 0),
        ([CLASS % ("a", ", namespace: default"), CLASS % ("a", "")], 1),
        ([CLASS % ("a", ""), CLASS % ("a", ""), CLASS % ("a", "")], 2),
    ],
)
def test_objects_that_stand_twice(documents: list[str], count: int, tmp_path: Path) -> None:
    told = found(tmp_path, *documents, about="input/duplicate-object")
    assert len(told) == count
    assert all("the same object stands twice, first at " in line and "f.yaml:3:18" in line for line in told)


@pytest.mark.parametrize(
    ("version", "kind", "is_foreign"),
    [
        ("apps/v1", "Deployment", True),
        ("v1", "Pod", True),
        ("v1", "PersistentVolume", True),
        ("compute.azure.com/v1", "VirtualMachine", True),
        ("example.com/v1", "Machine", True),
        ("kubevirt.io/v1", "Whatever", True),
        ("v1", "Secrt", False),
        ("v1", "ConfigMaps", False),
        ("kubevirt.io/v1", "VirtualMachne", False),
        ("kubvirt.io/v1", "VirtualMachine", False),
        ("apps/v1", "VirtualMachine", False),
    ],
)
def test_foreign_kinds(version: str, kind: str, is_foreign: bool, tmp_path: Path) -> None:
    notes = found(tmp_path, foreign(version, kind), about="input/foreign-kind")
    errors = found(tmp_path, foreign(version, kind), about="object/kind")
    assert (len(notes), len(errors)) == ((1, 0) if is_foreign else (0, 1))


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("1.10", 'Invalid value: 1.1: must be a string; quote it: "1.10"'),
        ("0777", 'Invalid value: 511: must be a string; quote it: "0777"'),
        ("1e3", 'Invalid value: 1000: must be a string; quote it: "1e3"'),
        ("yes", 'Invalid value: "yes": must be a string; kubectl reads a bare yes as a boolean, quote it: "yes"'),
    ],
)
def test_a_hint_to_quote_shows_the_word_as_it_stands(word: str, said: str, tmp_path: Path) -> None:
    told = found(tmp_path, f"apiVersion: v1\nkind: Secret\nmetadata: {{name: {word}}}\n", about="schema/type")
    assert [line.split(": ", 3)[-1] for line in told] == [said]
