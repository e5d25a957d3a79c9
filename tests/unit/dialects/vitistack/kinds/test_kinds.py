"""The names and the columns of the kinds."""

import pytest

from paddock.dialects.vitistack.kinds import marks
from paddock.kubernetes import catalog
from paddock.kubernetes.schema.kind import Kind


def found(name: str) -> Kind:
    kind = catalog.find("vitistack.io", name)
    assert kind is not None
    return kind


@pytest.mark.parametrize(
    ("name", "plural", "short", "status"),
    [
        ("Machine", "machines", "m", True),
        ("NetworkConfiguration", "networkconfigurations", "nc", True),
        ("MachineTemplate", "machinetemplates", "mt", False),
        ("MachineClass", "machineclasses", "mc", False),
    ],
)
def test_names(name: str, plural: str, short: str, *, status: bool) -> None:
    kind = found(name)
    assert (kind.plural, kind.short_names, kind.api_version) == (plural, (short,), "vitistack.io/v1alpha1")
    assert kind.namespaced is (name != "MachineClass")
    assert kind.status is status


@pytest.mark.parametrize(
    ("name", "narrow", "wide"),
    [
        ("Machine", ["PHASE", "TEMPLATE", "IPS", "NODE", "AGE"], ["READY", "VM", "CLASS"]),
        ("NetworkConfiguration", ["VLAN", "BRIDGE", "READY", "AGE"], []),
        ("MachineTemplate", ["CORES", "MEMORY", "DISKS", "AGE"], []),
        ("MachineClass", ["CORES", "MEMORY", "ENABLED", "AGE"], []),
    ],
)
def test_columns(name: str, narrow: list[str], wide: list[str]) -> None:
    columns = found(name).columns
    assert [column.name.upper() for column in columns if not column.wide] == narrow
    assert [column.name.upper() for column in columns if column.wide] == wide


def test_the_finalizer_and_the_labels_are_the_documents_own() -> None:
    assert marks.FINALIZER == "machine.vitistack.io/cleanup"
    assert (marks.MANAGED_BY, marks.OPERATOR, marks.MACHINE) == ("vitistack.io/managed-by", "kubevirt-operator", "vitistack.io/machine")
    assert (marks.CLUSTER_NAME, marks.MACHINE_TEMPLATE) == ("cluster.vitistack.io/cluster-name", "vitistack.io/machine-template")
