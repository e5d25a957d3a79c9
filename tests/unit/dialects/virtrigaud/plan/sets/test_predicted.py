"""The table of changes says of a set's template what its controller does: in place, or by replacing machines."""

from typing import Any

import msgspec
import pytest

from paddock.base.jsondata import copied
from paddock.dialects.virtrigaud.kinds.vmset import SetTemplate, VMSet
from paddock.dialects.virtrigaud.plan.sets import templates
from paddock.dialects.virtrigaud.plan.sets.templates import TemplateChange
from paddock.kubernetes import admission, catalog
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.plan.changes import table
from paddock.kubevirt.plan.changes.differences import differences
from paddock.kubevirt.plan.changes.effects import Effect
from tests.unit.dialects.virtrigaud.controllers.test_sets import vmset

Data = dict[str, Any]
DISK = {"name": "data", "sizeGiB": 10}
BASE: Data = {
    "disks": [DISK],
    "resources": {"cpu": 2, "memoryMiB": 2048},
    "tags": ["a"],
    "powerState": "On",
    "placement": {"folder": "/a"},
    "userData": {"cloudInit": {"inline": "#cloud-config\n"}},
}
CHANGES: dict[str, tuple[Data, TemplateChange]] = {
    "class": ({"classRef": {"name": "large"}}, TemplateChange.REPLACE),
    "image": ({"imageRef": {"name": "debian"}}, TemplateChange.REPLACE),
    "provider": ({"providerRef": {"name": "other"}}, TemplateChange.REPLACE),
    "network": ({"networks": [{"name": "lan", "networkRef": {"name": "wan"}}]}, TemplateChange.REPLACE),
    "tags": ({"tags": ["b"]}, TemplateChange.REPLACE),
    "place": ({"placement": {"folder": "/b"}}, TemplateChange.REPLACE),
    "guest": ({"userData": {"cloudInit": {"inline": "#cloud-config\na: 1\n"}}}, TemplateChange.REPLACE),
    "hook": ({"lifecycle": {"gracefulShutdownTimeout": "5s"}}, TemplateChange.REPLACE),
    "gpu": ({"resources": {"cpu": 2, "memoryMiB": 2048, "gpu": {"count": 1}}}, TemplateChange.REPLACE),
    "disk's type": ({"disks": [{**DISK, "type": "thick"}]}, TemplateChange.REPLACE),
    "disk gone": ({"disks": []}, TemplateChange.REPLACE),
    "power": ({"powerState": "Off"}, TemplateChange.IN_PLACE),
    "processors": ({"resources": {"cpu": 4, "memoryMiB": 2048}}, TemplateChange.IN_PLACE),
    "memory": ({"resources": {"cpu": 2, "memoryMiB": 4096}}, TemplateChange.IN_PLACE),
    "disk grows": ({"disks": [{**DISK, "sizeGiB": 20}]}, TemplateChange.IN_PLACE),
    "disk comes": ({"disks": [DISK, {"name": "more", "sizeGiB": 1}]}, TemplateChange.IN_PLACE),
}


def form(change: Data) -> tuple[Data, VMSet]:
    """A set as the server stores it."""
    admitted = admission.admit(vmset(template={**copied(BASE), **copied(change)}), AdmissionSettings())
    assert isinstance(admitted.value, VMSet)
    return admitted.data, admitted.value


@pytest.mark.spec("virtrigaud", 94)
@pytest.mark.parametrize("name", CHANGES)
def test_plan_and_controller_agree(name: str) -> None:
    change, expected = CHANGES[name]
    (before, old), (after, new) = form({}), form(change)
    assert templates.change(_template(old), _template(new)) is expected
    kind = catalog.find("infra.virtrigaud.io", "VMSet")
    assert kind is not None
    rows = [table.judge(kind, each) for each in differences(shape.shape_of(kind.cls), before, after)]
    worst = max((row.effect for row in rows if row is not None), key=lambda each: each.weight)
    assert (worst is Effect.LOSS) is (expected is TemplateChange.REPLACE), [row and (row.path, row.effect) for row in rows]


def _template(found: VMSet) -> SetTemplate:
    return msgspec.convert(msgspec.to_builtins(found.spec.template), SetTemplate)
