"""The moment at which the disks of a machine are made, by who has written the machine."""

from typing import Any

import pytest

from paddock.kubernetes.meta.wire import from_data, to_data
from paddock.kubevirt.kinds.datasource import DataSource
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.plan.storage import sourcerefs
from tests.scenario.fronts.kubermatic.making import machine, source

STAKATER = ("infrastructure.stakater.com/v1", "VirtualMachine")
POOL = ("pool.kubevirt.io/v1beta1", "VirtualMachinePool")
ADDRESS = from_data(source(), DataSource)


@pytest.mark.parametrize(
    ("owner", "note", "lazy"),
    [
        pytest.param(None, "", True, id="a user, in Kubermatic's form"),
        pytest.param(POOL, "", True, id="a pool, in Kubermatic's form"),
        pytest.param(STAKATER, "", False, id="another dialect, whose DataSource has an address"),
        pytest.param(STAKATER, "false", True, id="an annotation wins"),
        pytest.param(None, "true", False, id="an annotation of a user"),
    ],
)
def test_disks_wait_for_the_first_start(owner: tuple[str, str] | None, note: str, lazy: bool) -> None:
    given: dict[str, Any] = machine(strategy="Halted")
    if owner is not None:
        reference = {"apiVersion": owner[0], "kind": owner[1], "name": "web", "uid": "1", "controller": True}
        given["metadata"]["ownerReferences"] = [reference]
    if note:
        given["metadata"]["annotations"] = {"kubevirt.io/immediate-data-volume-creation": note}
    assert sourcerefs.is_lazy(from_data(given, VirtualMachine), lambda namespace, name: ADDRESS) is lazy


@pytest.mark.parametrize(
    ("sources", "copied"),
    [
        ({"debian": {"pvc": {"name": "golden", "namespace": "images"}}}, {"pvc": {"name": "golden", "namespace": "images"}}),
        ({"debian": {"snapshot": {"name": "golden"}}}, {"snapshot": {"name": "golden", "namespace": "shared"}}),
        (
            {"debian": {"dataSource": {"name": "twelve"}}, "twelve": {"pvc": {"name": "golden"}}},
            {"pvc": {"name": "golden", "namespace": "shared"}},
        ),
        ({"debian": {"http": {"url": "http://images.test/debian.img"}}}, None),
        ({"debian": {}}, None),
        ({}, None),
    ],
)
def test_a_reference_becomes_what_is_copied(sources: dict[str, Any], copied: dict[str, Any] | None) -> None:
    reference = {"kind": "DataSource", "name": "debian", "namespace": "shared"}
    volume = from_data({"metadata": {"name": "disk", "namespace": "default"}, "spec": {"sourceRef": reference}}, DataVolume)

    def find(namespace: str, name: str) -> DataSource | None:
        data = {"metadata": {"name": name, "namespace": namespace}, "spec": {"source": sources.get(name)}}
        return from_data(data, DataSource) if namespace == "shared" and name in sources else None

    spec = to_data(sourcerefs.followed(volume, find))["spec"]
    assert (spec.get("sourceRef"), spec.get("source")) == ((reference, None) if copied is None else (None, copied))
