"""The permitted changes of a stored machine."""

from typing import Any

from paddock.kubernetes.admission import AdmissionResult, admit, admit_change
from paddock.kubernetes.schema.finding import Severity
from paddock.kubernetes.schema.kind import AdmissionSettings
from tests.unit.dialects.virtrigaud.kinds.objects import said, thing

MADE = {"id": "vm-42"}


def changed(old: dict[str, Any], new: dict[str, Any], status: dict[str, Any] | None = None) -> AdmissionResult:
    before = thing("VirtualMachine", {**old, **({"status": status} if status else {})})
    value = admit(before, AdmissionSettings()).value
    assert value is not None
    return admit_change(value, admit(thing("VirtualMachine", new), AdmissionSettings()), AdmissionSettings())


def disk(**fields: Any) -> dict[str, Any]:
    return {".disks": [{"name": "data", "sizeGiB": 10, **fields}]}


def test_disks_grow_and_never_shrink() -> None:
    assert said(changed(disk(), disk(sizeGiB=11))) == []
    assert said(changed(disk(), disk(name="other", sizeGiB=1))) == []
    ((field, message),) = said(changed(disk(), disk(sizeGiB=9)))
    assert field == "spec.disks[0].sizeGiB"
    assert message.startswith("Forbidden: a disk cannot shrink, and data has 10 GiB")


def test_what_counts_when_a_disk_is_made() -> None:
    values: dict[str, Any] = {"storageClass": "gold", "type": "thick", "scsi": {}}
    for name, value in values.items():
        change = changed(disk(), disk(**{name: value}))
        assert change.accepted
        assert [field for field, _ in said(change, Severity.WARNING)] == [f"spec.disks[0].{name}"]


def test_a_machine_that_exists_stays_with_its_provider() -> None:
    other = {".providerRef.name": "q"}
    assert said(changed({}, other)) == []
    ((field, message),) = said(changed({}, other, MADE))
    assert field == "spec.providerRef"
    assert message == "Forbidden: the machine exists at p as vm-42; move it with a VMMigration"
    # The same provider in other words.
    assert said(changed({}, {".providerRef.namespace": "team"}, MADE)) == []
    assert len(said(changed({}, {".providerRef.namespace": "elsewhere"}, MADE))) == 1


def test_the_image_counts_when_a_machine_is_made() -> None:
    new = {".imageRef.name": "newer"}
    assert said(changed({}, new), Severity.WARNING) == []
    change = changed({}, new, MADE)
    assert change.accepted
    assert [field for field, _ in said(change, Severity.WARNING)] == ["spec.imageRef"]
