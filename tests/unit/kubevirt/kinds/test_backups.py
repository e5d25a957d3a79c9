"""Backups and their trackers: what is accepted and refused, and what may change (docs/spec/kubevirt.md 7.6)."""

import copy
from typing import Any

import pytest

from paddock.kubernetes.admission import AdmissionResult, admit, admit_change
from paddock.kubernetes.schema.kind import AdmissionSettings
from tests.unit.kubevirt.kinds.objects import errors

BACKUP, TRACKER = "VirtualMachineBackup", "VirtualMachineBackupTracker"
VM = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}
CHAIN = {"apiGroup": "backup.kubevirt.io", "kind": TRACKER, "name": "nightly"}
FOREIGN = {**VM, "apiGroup": "x.io"}
NO_GROUP = {"kind": "VirtualMachine", "name": "web"}


def judged(kind: str, spec: dict[str, Any]) -> AdmissionResult:
    return admit(
        {"apiVersion": "backup.kubevirt.io/v1alpha1", "kind": kind, "metadata": {"name": "first"}, "spec": spec}, AdmissionSettings()
    )


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (BACKUP, {"source": VM, "pvcName": "backups"}),
        (BACKUP, {"source": CHAIN, "pvcName": "backups", "mode": "Push", "forceFullBackup": True}),
        (TRACKER, {"source": VM}),
    ],
)
def test_accepted(kind: str, spec: dict[str, Any]) -> None:
    assert judged(kind, spec).findings == ()


@pytest.mark.parametrize(
    ("kind", "spec", "field", "words"),
    [
        (BACKUP, {"source": {**VM, "kind": "Pod"}, "pvcName": "b"}, "spec.source.kind", "Unsupported value"),
        (BACKUP, {"source": FOREIGN, "pvcName": "b"}, "spec.source.apiGroup", '"kubevirt.io"'),
        (BACKUP, {"source": {**CHAIN, "apiGroup": "kubevirt.io"}, "pvcName": "b"}, "spec.source.apiGroup", '"backup.kubevirt.io"'),
        (BACKUP, {"source": NO_GROUP, "pvcName": "b"}, "spec.source.apiGroup", "Required value"),
        (BACKUP, {"source": VM}, "spec.pvcName", "Required value"),
        (BACKUP, {"source": VM, "pvcName": "b", "mode": "Pull"}, "spec.tokenSecretRef", "required when mode is Pull"),
        (BACKUP, {"source": VM, "pvcName": "b", "mode": "Send"}, "spec.mode", "Unsupported value"),
        (TRACKER, {"source": CHAIN}, "spec.source.kind", "Unsupported value"),
        (TRACKER, {"source": FOREIGN}, "spec.source.apiGroup", '"kubevirt.io"'),
        (TRACKER, {"source": NO_GROUP}, "spec.source.apiGroup", "Required value"),
    ],
)
def test_refused_at_its_place(kind: str, spec: dict[str, Any], field: str, words: str) -> None:
    refused = errors(judged(kind, spec))
    assert [at for at, message in refused if words in message] == [field], refused


@pytest.mark.parametrize(
    ("kind", "spec", "changes"),
    [
        (BACKUP, {"source": VM, "pvcName": "a"}, {"pvcName": "b"}),
        (TRACKER, {"source": VM}, {"source": {**VM, "name": "other"}}),
    ],
)
def test_the_spec_stays(kind: str, spec: dict[str, Any], changes: dict[str, Any]) -> None:
    before = judged(kind, spec).value
    assert before is not None
    changed = admit_change(before, judged(kind, {**spec, **changes}), AdmissionSettings())
    assert errors(changed) == [("spec", "Invalid value: spec is immutable after creation")]
    assert errors(admit_change(before, judged(kind, copy.deepcopy(spec)), AdmissionSettings())) == []
