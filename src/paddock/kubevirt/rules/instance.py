"""All rules about the hardware of a machine, and the rules of a running instance."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import CauseType, Finding
from paddock.kubernetes.schema.kind import AdmissionSettings, transition
from paddock.kubevirt.rules import (
    claims,
    disks,
    features,
    firmware,
    gates,
    memory,
    networks,
    processors,
    running,
    scheduling,
    security,
    volumes,
)
from paddock.kubevirt.rules.place import HardwareContext, rules_of

if TYPE_CHECKING:
    from paddock.kubevirt.kinds.instance import VirtualMachineInstance

CHECKS = (
    *memory.CHECKS,
    *processors.CHECKS,
    *firmware.CHECKS,
    *disks.CHECKS,
    *volumes.CHECKS,
    *networks.CHECKS,
    *running.CHECKS,
    *scheduling.CHECKS,
    *security.CHECKS,
    *claims.CHECKS,
    *features.CHECKS,
    gates.gates_are_open,
)


def _place(instance: "VirtualMachineInstance", settings: AdmissionSettings) -> HardwareContext:
    return HardwareContext(
        spec=instance.spec,
        path=("spec",),
        labels=instance.metadata.labels or {},
        annotations=instance.metadata.annotations or {},
        settings=settings,
        running=True,
        stored=instance.metadata.uid is not None,
    )


@transition("kubevirt/V104")
def spec_stays(old: "VirtualMachineInstance", new: "VirtualMachineInstance", settings: AdmissionSettings) -> Iterator[Finding]:
    """The spec of a running machine is changed by controllers only."""
    if not settings.trusted and to_data(old.spec) != to_data(new.spec):
        why = "update of VMI object is restricted: change the VirtualMachine instead"
        yield finding.forbidden(("spec",), why, "kubevirt/V104")


@transition("kubevirt/V83-change")
def reserved_labels_stay(old: "VirtualMachineInstance", new: "VirtualMachineInstance", settings: AdmissionSettings) -> Iterator[Finding]:
    """The labels by which KubeVirt knows its objects are changed by controllers only."""
    if settings.trusted:
        return
    before, after = old.metadata.labels or {}, new.metadata.labels or {}
    for label in running.RESERVED_LABELS:
        if before.get(label) != after.get(label):
            message = f'Unsupported value: "{label}": reserved kubevirt.io/ labels are changed by KubeVirt itself'
            path = ("metadata", "labels")
            yield Finding(path=path, message=message, rule="kubevirt/V83-change", cause=CauseType.NOT_SUPPORTED, at=(*path, label))


RULES = rules_of(CHECKS, _place, "spec")
TRANSITIONS = (spec_stays, reserved_labels_stay)
