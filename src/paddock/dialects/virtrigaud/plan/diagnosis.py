"""What `paddock why` knows of VirtRigaud's kinds. Pure."""

from collections.abc import Iterator

from paddock.base.jsondata import Data, at, texts
from paddock.dialects.virtrigaud.plan.polls import MachinePolls
from paddock.kubevirt.plan.changes.references import DATA_VOLUME, MACHINE
from paddock.kubevirt.plan.diagnosis.kinddiagnosis import (
    DialectDiagnosis,
    KindDiagnosis,
    MadeObject,
    MissingKind,
    ObjectVerdict,
    conditions,
    holds,
)

_GROUP = "infra.virtrigaud.io"
_MACHINE = (_GROUP, "VirtualMachine")


def _machine(data: Data) -> ObjectVerdict:
    phase, ready = texts(data, "status", "phase"), conditions(data).get("Ready")
    if holds(data, "Ready"):
        return ObjectVerdict("off", "is off, as its spec says") if phase == "Stopped" else ObjectVerdict("good", "runs")
    if phase == "Failed":
        return ObjectVerdict("bad", "has failed")
    waits = texts(ready, "reason") in ("", "TaskInProgress", "Creating", "Updating", "ReconcileSuccess")
    return ObjectVerdict("waits", "is not ready yet") if waits else ObjectVerdict("bad", "is not ready")


def _image(data: Data) -> ObjectVerdict:
    """An image is prepared for the first machine that needs it."""
    phase, reason = texts(data, "status", "phase"), texts(conditions(data).get("Ready"), "reason")
    if holds(data, "Ready"):
        return ObjectVerdict("good", "is ready")
    if phase == "Pending" and reason == "WaitingForDependencies":
        return ObjectVerdict("off", "is needed by no machine")
    bad = phase == "Failed" or reason in ("WaitingForImage", "PreparationFailed")
    return ObjectVerdict("bad", "is not ready") if bad else ObjectVerdict("waits", "is not ready yet")


def _provider(data: Data) -> ObjectVerdict:
    running, available = conditions(data).get("ProviderRuntimeReady"), conditions(data).get("ProviderAvailable")
    if holds(data, "ProviderAvailable"):
        return ObjectVerdict("good", "answers")
    if texts(running, "status") == "False" and texts(running, "reason") not in ("DeploymentNotReady", ""):
        return ObjectVerdict("bad", "is not served")
    if texts(available, "reason") == "RemoteUnchecked" and texts(running, "status") == "True":
        unchecked = at(data, "spec", "healthCheck", "enabled") is False
        return ObjectVerdict("good", "is served, and nobody checks it") if unchecked else ObjectVerdict("waits", "is not checked yet")
    return ObjectVerdict("bad", "does not answer") if texts(available, "status") == "False" else ObjectVerdict("waits", "is not ready yet")


def _phased(data: Data) -> ObjectVerdict:
    """Snapshots, clones and migrations."""
    phase = texts(data, "status", "phase")
    if phase == "Ready":
        return ObjectVerdict("good", "is complete")
    if phase == "Expired":
        return ObjectVerdict("off", "has expired")
    if at(data, "spec", "schedule", "enabled") and holds(data, "Ready"):
        return ObjectVerdict("good", "is kept to")
    return ObjectVerdict("bad", "has failed") if phase == "Failed" else ObjectVerdict("waits", "is not complete yet")


def _made_of_machine(data: Data) -> Iterator[MadeObject]:
    """The machine of a Provider of type qemu is KubeVirt's, on this server."""
    found = at(data, "status", "provider") or {}
    if texts(found, "namespace") and texts(found, "uid"):
        yield MadeObject(MACHINE, texts(found, "name"), "status.provider.name", texts(found, "namespace"))


def _made_of_image(data: Data) -> Iterator[MadeObject]:
    """The disk of an image at a Provider of type qemu is a DataVolume."""
    if holds(data, "Ready"):
        return
    for provider, entry in (at(data, "status", "providerStatus") or {}).items():
        # The image tells what failed there.
        if (name := texts(entry, "id")) and not texts(entry, "reason"):
            namespace = provider.partition("/")[0] if "/" in provider else ""
            yield MadeObject(DATA_VOLUME, name, f"status.providerStatus[{provider}].id", namespace)


DIAGNOSIS = DialectDiagnosis(
    kinds={
        _MACHINE: KindDiagnosis(
            verdict=_machine,
            made=_made_of_machine,
            missing=MissingKind("machine-missing", "VirtualMachine", "virtualmachines.infra.virtrigaud.io"),
            polls=(MachinePolls().running, MachinePolls().off),
        ),
        (_GROUP, "VMImage"): KindDiagnosis(
            verdict=_image, made=_made_of_image, missing=MissingKind("vmimage-missing", "VMImage", "vmimages"), is_image=True
        ),
        (_GROUP, "Provider"): KindDiagnosis(
            verdict=_provider, missing=MissingKind("provider-missing", "Provider", "providers.infra.virtrigaud.io")
        ),
        (_GROUP, "VMSet"): KindDiagnosis(members=_MACHINE),
        (_GROUP, "VMClass"): KindDiagnosis(is_passive=True, missing=MissingKind("vmclass-missing", "VMClass", "vmclasses")),
        (_GROUP, "VMNetworkAttachment"): KindDiagnosis(
            is_passive=True, missing=MissingKind("vmnetwork-missing", "VMNetworkAttachment", "vmnetworkattachments")
        ),
        (_GROUP, "VMPlacementPolicy"): KindDiagnosis(
            missing=MissingKind("placementpolicy-missing", "VMPlacementPolicy", "vmplacementpolicies")
        ),
        (_GROUP, "VMSnapshot"): KindDiagnosis(
            verdict=_phased, missing=MissingKind("snapshot-missing", "VMSnapshot", "vmsnapshots.infra.virtrigaud.io")
        ),
        (_GROUP, "VMClone"): KindDiagnosis(verdict=_phased),
        (_GROUP, "VMMigration"): KindDiagnosis(verdict=_phased),
    },
    finalizers=tuple(
        f"{each}.infra.virtrigaud.io/" for each in ("virtualmachine", "provider", "snapshot", "clone", "vmmigration", "vmset")
    ),
)
