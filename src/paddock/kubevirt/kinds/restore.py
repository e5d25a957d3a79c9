"""`snapshot.kubevirt.io/v1beta1 VirtualMachineRestore` (docs/spec/kubevirt.md 7.2)."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import Annotations, Labels, Resource
from paddock.kubernetes.meta.storage import TypedLocalReference
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field, Object, Time
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, Column, Kind, Version, rule
from paddock.kubevirt.kinds.references import MACHINE, reference_findings
from paddock.kubevirt.kinds.unchangeable import spec_is_immutable

_PATCHABLE = ("/spec/", "/metadata/labels/", "/metadata/annotations/")


class VolumeRestoreOverride(Object):
    """The differences of one restored volume."""

    volumeName: Annotated[str, Field("The volume.", required=True)] = ""
    restoreName: Annotated[str | None, Field("Name of the restored claim.", format="dns1123-subdomain", max_length=253)] = None
    labels: Labels = None
    annotations: Annotations = None


class RestoreSpec(Object):
    """The snapshot to restore, and its target."""

    target: Annotated[TypedLocalReference, Field("The machine; one that does not exist is made.", required=True)] = TypedLocalReference()
    virtualMachineSnapshotName: Annotated[str, Field("The snapshot.", required=True, format="dns1123-subdomain", max_length=253)] = ""
    targetReadinessPolicy: Annotated[
        str,
        Field(
            "What happens while the machine runs; WaitGracePeriod waits for 5 minutes.",
            enum=("StopTarget", "WaitGracePeriod", "FailImmediate", "WaitEventually"),
        ),
    ] = "WaitGracePeriod"
    volumeRestorePolicy: Annotated[
        str | None,
        Field("How restored claims are called; default: RandomizeNames.", enum=("RandomizeNames", "InPlace", "PrefixTargetName")),
    ] = None
    volumeOwnershipPolicy: Annotated[str | None, Field("Who owns the restored claims; default: Vm.", enum=("Vm", "None"))] = None
    volumeRestoreOverrides: Annotated[
        list[VolumeRestoreOverride] | None,
        Field("What is different about single volumes.", keys=("volumeName",)),
    ] = None
    patches: Annotated[
        list[str] | None, Field("JSON patch operations on the new machine: each text has one, or a list.", max_items=256)
    ] = None


class VolumeRestore(Object):
    """One restored volume."""

    volumeName: Annotated[str, Field("The volume.", required=True)] = ""
    persistentVolumeClaim: Annotated[str, Field("The restored claim.", required=True)] = ""
    volumeSnapshotName: Annotated[str, Field("The snapshot it comes from.", required=True)] = ""
    dataVolumeName: Annotated[str | None, Field("The restored DataVolume.")] = None


class RestoreStatus(Object):
    """The progress of the restore."""

    restores: Annotated[list[VolumeRestore] | None, Field("The volumes.")] = None
    restoreTime: Annotated[Time | None, Field("When it was done.")] = None
    deletedDataVolumes: Annotated[list[str] | None, Field("DataVolumes that were replaced.")] = None
    complete: Annotated[bool | None, Field("Whether it is done.")] = None
    conditions: Annotated[list[Condition] | None, Field("Ready, Progressing, Failure.", keys=("type",))] = None


class VirtualMachineRestore(Resource):
    """A request to put a machine back to what a snapshot shows."""

    spec: Annotated[RestoreSpec, Field("What is restored to where.", required=True)] = RestoreSpec()
    status: Annotated[RestoreStatus | None, Field("How far it has come.")] = None


@rule(
    "kubevirt/restore-target",
    Cel("spec.target", "self.kind == 'VirtualMachine'", "must be a VirtualMachine", ".kind", "FieldValueNotSupported"),
    Cel("spec.target", "has(self.apiGroup) && self.apiGroup == 'kubevirt.io'", "must be kubevirt.io", ".apiGroup"),
)
def target_is_a_machine(restore: VirtualMachineRestore, settings: AdmissionSettings) -> Iterator[Finding]:
    """A restore makes or changes a `VirtualMachine` of the group `kubevirt.io`."""
    yield from reference_findings(restore.spec.target, ("spec", "target"), (MACHINE,), "kubevirt/restore-target")


def operations_of(text: str) -> list[Any]:
    """Return the operations of a patch: a text has one operation, or a list of them. Raises `msgspec.DecodeError`."""
    decoded = msgspec.json.decode(text)
    return decoded if isinstance(decoded, list) else [decoded]


def patch_findings(patches: list[str] | None, path: Path, rule: str, patchable: tuple[str, ...] = _PATCHABLE) -> Iterator[Finding]:
    """Each text has JSON patch operations, and they change what a user says of the new machine."""
    for index, text in enumerate(patches or ()):
        try:
            operations = operations_of(text)
        except msgspec.DecodeError as error:
            yield finding.invalid((*path, index), text, f"not JSON: {error}", rule)
            continue
        for operation in operations:
            if not isinstance(operation, dict) or not {"op", "path"} <= operation.keys():
                yield finding.invalid((*path, index), text, 'must be a JSON patch operation: an object with "op" and "path"', rule)
            elif not str(operation["path"]).startswith(patchable):
                why = f"patching is valid only for elements under {', '.join(patchable)}"
                yield finding.invalid((*path, index), text, why, rule)


@rule("kubevirt/restore-patches")
def patches_are_operations(restore: VirtualMachineRestore, settings: AdmissionSettings) -> Iterator[Finding]:
    """Each patch is of JSON patch operations on the spec, the labels or the annotations."""
    yield from patch_findings(restore.spec.patches, ("spec", "patches"), "kubevirt/restore-patches")


KINDS = (
    Kind(
        group="snapshot.kubevirt.io",
        kind="VirtualMachineRestore",
        plural="virtualmachinerestores",
        singular="virtualmachinerestore",
        short_names=("vmrestore", "vmrestores"),
        categories=("all",),
        cls=VirtualMachineRestore,
        dialect="kubevirt",
        versions=(Version("v1alpha1", storage=False), Version("v1beta1")),
        columns=(
            Column("TargetKind", ".spec.target.kind"),
            Column("TargetName", ".spec.target.name"),
            Column("Complete", ".status.complete", "boolean"),
            Column("RestoreTime", ".status.restoreTime", "date"),
        ),
        rules=(target_is_a_machine, patches_are_operations),
        transitions=(spec_is_immutable("kubevirt/restore-change"),),
    ),
)
