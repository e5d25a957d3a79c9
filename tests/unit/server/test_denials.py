"""Refusals in the words of KubeVirt's webhooks."""

import pytest

from paddock.kubernetes.schema import finding
from paddock.server.resources import denials

pytestmark = pytest.mark.spec("kubevirt", 184)

PREFERENCE = "virtualmachineclusterpreference-validator.instancetype.kubevirt.io"


@pytest.mark.parametrize(
    ("group", "kind", "updates", "name"),
    [
        ("kubevirt.io", "VirtualMachine", False, "virtualmachine-validator.kubevirt.io"),
        ("kubevirt.io", "VirtualMachine", True, "virtualmachine-validator.kubevirt.io"),
        ("kubevirt.io", "VirtualMachineInstance", False, "virtualmachineinstances-create-validator.kubevirt.io"),
        ("kubevirt.io", "VirtualMachineInstance", True, "virtualmachineinstances-update-validator.kubevirt.io"),
        ("kubevirt.io", "VirtualMachineInstanceMigration", True, "migration-update-validator.kubevirt.io"),
        ("pool.kubevirt.io", "VirtualMachinePool", False, "virtualmachinepool-validator.kubevirt.io"),
        ("snapshot.kubevirt.io", "VirtualMachineSnapshot", False, "virtualmachinesnapshot-validator.snapshot.kubevirt.io"),
        ("instancetype.kubevirt.io", "VirtualMachineClusterPreference", False, PREFERENCE),
        ("clone.kubevirt.io", "VirtualMachineClone", False, "vm-clone-validator.kubevirt.io"),
        ("cdi.kubevirt.io", "DataVolume", False, "datavolume-validate.cdi.kubevirt.io"),
        ("apps", "Deployment", False, ""),
        ("notkubevirt.io", "Thing", False, ""),
    ],
)
def test_a_kind_is_judged_by_the_webhook_that_kubevirt_has_for_it(group: str, kind: str, updates: bool, name: str) -> None:
    assert denials.validator(group, kind, updates=updates) == name


def test_the_message_has_kubevirts_words_and_the_causes_say_what_to_do() -> None:
    found = [
        finding.required(("spec", "image"), "a/1", "name one", "spec must be defined with an image"),
        finding.invalid(("spec", "size"), 3, "must be even", "a/2"),
    ]
    status = denials.denial("x.kubevirt.io", found).to_status()
    said = "spec must be defined with an image, spec.size: Invalid value: 3: must be even"
    assert status["message"] == f'admission webhook "x.kubevirt.io" denied the request: {said}'
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["details"] == {
        "causes": [
            {"reason": "FieldValueRequired", "message": "Required value: name one", "field": "spec.image"},
            {"reason": "FieldValueInvalid", "message": "Invalid value: 3: must be even", "field": "spec.size"},
        ]
    }
