"""What `paddock why` knows of Vitistack's machines, networks, classes and templates. Pure."""

from collections.abc import Iterator

from paddock.base.jsondata import Data, at, entries, texts
from paddock.kubevirt.plan.changes.references import ATTACHMENT, MACHINE
from paddock.kubevirt.plan.diagnosis.kinddiagnosis import (
    DialectDiagnosis,
    KindDiagnosis,
    MadeObject,
    MissingKind,
    ObjectVerdict,
    OwnStatement,
    conditions,
    holds,
)

_GROUP = "vitistack.io"


def _machine(data: Data) -> ObjectVerdict:
    """Also of a Machine that Vitistack's own operator reports on: with phases of its own, and without conditions."""
    phase = texts(data, "status", "phase")
    if phase == "Running" and not holds(data, "Ready", "False"):
        return ObjectVerdict("good", "runs")
    if phase in ("Stopped", "Succeeded", "Terminated"):
        broken = any(holds(data, each, "False") for each in ("StorageReady", "NetworkReady", "VirtualMachineReady"))
        return ObjectVerdict("bad", "is stopped, and not as it should be") if broken else ObjectVerdict("off", "is stopped")
    if phase == "Failed":
        return ObjectVerdict("bad", "has failed")
    if phase in ("Stopping", "Terminating"):
        return ObjectVerdict("waits", "is stopping")
    said = texts(conditions(data).get("Ready"), "reason")
    waits = phase in ("Pending", "Creating", "") and said in ("", "MachineNotReady")
    return ObjectVerdict("waits", "does not run yet") if waits else ObjectVerdict("bad", "does not run")


def _network(data: Data) -> ObjectVerdict:
    """A network is made for the first machine that uses it."""
    if at(data, "status", "ready") is not False:
        return ObjectVerdict("good", "is ready") if at(data, "status", "ready") else ObjectVerdict("waits", "is not ready yet")
    used = bool(at(data, "status", "connectedMachines"))
    return ObjectVerdict("bad", "is not ready") if used else ObjectVerdict("off", "is used by no machine")


def _made_of_machine(data: Data) -> Iterator[MadeObject]:
    yield MadeObject(MACHINE, texts(data, "status", "vmName") or texts(data, "metadata", "name"), "status.vmName")


def _made_of_network(data: Data) -> Iterator[MadeObject]:
    yield MadeObject(ATTACHMENT, texts(data, "metadata", "name"))


def _classes(data: Data) -> Iterator[tuple[str, str]]:
    for index, disk in enumerate(entries(data, "spec", "disks")):
        name = texts(disk, "storageClass")
        if name not in ("", "default"):
            yield name, f"spec.disks[{index}].storageClass"


def _statement(data: Data) -> OwnStatement | None:
    """Vitistack's own operator writes no conditions."""
    if texts(data, "status", "phase") != "Failed" or entries(data, "status", "conditions"):
        return None
    return OwnStatement("status.failureMessage", texts(data, "status", "failureMessage"), texts(data, "status", "failureReason"))


DIAGNOSIS = DialectDiagnosis(
    kinds={
        (_GROUP, "Machine"): KindDiagnosis(
            verdict=_machine, made=_made_of_machine, classes=_classes, statement=_statement, is_namesake=True
        ),
        (_GROUP, "NetworkConfiguration"): KindDiagnosis(
            verdict=_network,
            made=_made_of_network,
            missing=MissingKind("networkconfiguration-missing", "NetworkConfiguration", "networkconfigurations"),
            is_network=True,
        ),
        (_GROUP, "MachineClass"): KindDiagnosis(
            is_wide=True,
            is_passive=True,
            missing=MissingKind(
                "machineclass-missing", "MachineClass", "machineclasses", "small, medium, large, xlarge, largememory, and "
            ),
        ),
        (_GROUP, "MachineTemplate"): KindDiagnosis(
            is_passive=True,
            missing=MissingKind("template-missing", "MachineTemplate", "machinetemplates", "small, medium, large, and "),
        ),
    },
    finalizers=("vitistack.io/",),
)
