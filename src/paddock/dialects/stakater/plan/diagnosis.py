"""What `paddock why` knows of Stakater's machines. Pure."""

from collections.abc import Iterator

from paddock.base.jsondata import Data, at, texts
from paddock.kubevirt.plan.changes.references import MACHINE
from paddock.kubevirt.plan.diagnosis.kinddiagnosis import DialectDiagnosis, KindDiagnosis, MadeObject, ObjectVerdict, conditions, holds

_GROUP = "infrastructure.stakater.com"


def _verdict(data: Data) -> ObjectVerdict:
    if holds(data, "Synced", "False"):
        return ObjectVerdict("bad", "is not as it should be")
    if holds(data, "Ready"):
        halted = texts(data, "spec", "parameters", "runStrategy") == "Halted"
        return ObjectVerdict("off", "is stopped, as its run strategy Halted says") if halted else ObjectVerdict("good", "runs")
    ready = conditions(data).get("Ready")
    waits = texts(ready, "reason") in ("", "Creating")
    return ObjectVerdict("waits", "is not ready yet") if waits else ObjectVerdict("bad", "is not ready")


def _made(data: Data) -> Iterator[MadeObject]:
    name = texts(data, "metadata", "name")
    yield MadeObject(MACHINE, name)
    if at(data, "spec", "parameters", "service", "enabled"):
        yield MadeObject(("", "Service"), f"vm-{name}-lb" if name[:1].isdigit() else f"{name}-lb")


def _classes(data: Data) -> Iterator[tuple[str, str]]:
    if name := texts(data, "spec", "parameters", "storage", "storageClassName"):
        yield name, "spec.parameters.storage.storageClassName"


DIAGNOSIS = DialectDiagnosis(
    kinds={(_GROUP, "VirtualMachine"): KindDiagnosis(verdict=_verdict, made=_made, classes=_classes, is_namesake=True)},
    finalizers=(f"{_GROUP}/",),
)
