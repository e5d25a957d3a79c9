"""`clone.kubevirt.io/v1beta1 VirtualMachineClone` (docs/spec/kubevirt.md 7.3)."""

import re
from collections.abc import Iterator
from typing import Annotated

from paddock.base import ownnames
from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.storage import TypedLocalReference
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field, Object, Time
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, Column, Kind, Version, rule
from paddock.kubevirt.kinds.references import kind_findings
from paddock.kubevirt.kinds.restore import patch_findings
from paddock.kubevirt.kinds.unchangeable import spec_is_immutable

_FILTER = re.compile(r"!?([A-Za-z0-9._-]+/)?[A-Za-z0-9._-]*\*?\Z|\*\Z", re.ASCII)
_WARM_PATCHABLE = ("/metadata/labels/", "/metadata/annotations/")
_SOURCES = ("VirtualMachine", "VirtualMachineSnapshot")
Filters = Annotated[
    list[str] | None,
    Field("Which keys are copied: `*`, `prefix/*`, and `!key` or `!prefix/*` for those that are not.", max_items=256),
]


class TemplateFilters(Object):
    """The labels and annotations of the machine's template to copy."""

    annotationFilters: Filters = None
    labelFilters: Filters = None


class CloneTargetReference(Object):
    """The machine that a clone makes."""

    apiGroup: Annotated[str | None, Field("Group of the machine: kubevirt.io.")] = None
    kind: Annotated[str, Field("Kind of the machine.", required=True, min_length=1)] = ""
    name: Annotated[str | None, Field("Name of the machine; default: it is made up.", empty_is_unset=True)] = None


class CloneSpec(Object):
    """The source and the target of a clone."""

    source: Annotated[TypedLocalReference, Field("A machine or a snapshot of one.", required=True)] = TypedLocalReference()
    target: Annotated[CloneTargetReference | None, Field("The new machine; default: a name is made up.")] = None
    annotationFilters: Filters = None
    labelFilters: Filters = None
    template: Annotated[TemplateFilters | None, Field("Filters for the template of the machine.")] = None
    newMacAddresses: Annotated[
        dict[str, Annotated[str, Field(format="mac")]] | None,
        Field("MAC addresses of the new machine by the name of the interface; others are chosen."),
    ] = None
    newSMBiosSerial: Annotated[str | None, Field("Serial number of the new machine.", max_length=256)] = None
    patches: Annotated[
        list[str] | None, Field("JSON patch operations on the new machine: each text has one, or a list.", max_items=256)
    ] = None
    volumeNamePolicy: Annotated[str | None, Field("How the new volumes are called.", enum=("RandomizeNames", "PrefixTargetName"))] = None


class CloneStatus(Object):
    """The progress of a clone."""

    creationTime: Annotated[Time | None, Field("When it was begun.", nullable=True)] = None
    phase: Annotated[
        str | None,
        Field("SnapshotInProgress, CreatingTargetVM, RestoreInProgress, Succeeded, Failed or Unknown."),
    ] = None
    conditions: Annotated[list[Condition] | None, Field("Ready, Progressing.", keys=("type",))] = None
    snapshotName: Annotated[str | None, Field("The snapshot that was taken.", nullable=True)] = None
    restoreName: Annotated[str | None, Field("The restore that was made.", nullable=True)] = None
    targetName: Annotated[str | None, Field("The new machine.", nullable=True)] = None


class VirtualMachineClone(Resource):
    """A request to make a machine like another one."""

    spec: Annotated[CloneSpec, Field("What is cloned to what.", required=True)] = CloneSpec()
    status: Annotated[CloneStatus | None, Field("How far it has come.")] = None


@rule(
    "kubevirt/clone-source",
    Cel(
        "spec.source",
        "self.kind in ['VirtualMachine', 'VirtualMachineSnapshot']",
        "must be a VirtualMachine or a VirtualMachineSnapshot",
        ".kind",
        "FieldValueNotSupported",
    ),
)
def source_can_be_cloned(clone: VirtualMachineClone, settings: AdmissionSettings) -> Iterator[Finding]:
    """A machine or a snapshot of one is cloned, to a machine of another name."""
    spec = clone.spec
    yield from kind_findings(spec.source, ("spec", "source"), _SOURCES, "kubevirt/clone-source")
    if spec.source.kind and not spec.source.apiGroup:
        yield finding.required(("spec", "source", "apiGroup"), "kubevirt/clone-source", "give the group of the source")
    yield from kind_findings(spec.target, ("spec", "target"), ("VirtualMachine",), "kubevirt/clone-source")
    if spec.target is not None and spec.source.kind == "VirtualMachine" and spec.source.name and spec.source.name == spec.target.name:
        why = "the target must have another name than the source"
        yield finding.invalid(("spec", "target", "name"), spec.target.name, why, "kubevirt/clone-source")


@rule("kubevirt/clone-filters")
def filters_are_readable(clone: VirtualMachineClone, settings: AdmissionSettings) -> Iterator[Finding]:
    """A filter is a key with at most a leading `!` and a closing `*`; each patch is of JSON patch operations on the spec, the labels or
    the annotations."""
    spec = clone.spec
    yield from _filters(spec.annotationFilters, ("spec", "annotationFilters"))
    yield from _filters(spec.labelFilters, ("spec", "labelFilters"))
    if spec.template is not None:
        yield from _filters(spec.template.annotationFilters, ("spec", "template", "annotationFilters"))
        yield from _filters(spec.template.labelFilters, ("spec", "template", "labelFilters"))
    yield from patch_findings(spec.patches, ("spec", "patches"), "kubevirt/clone-filters")


@rule("kubevirt/clone-warm")
def warm_clone_keeps_hardware(clone: VirtualMachineClone, settings: AdmissionSettings) -> Iterator[Finding]:
    """The annotation `paddock.dev/warm` is true or false. A warm clone has no new serial number, and patches of labels and annotations
    only: its guest has found its hardware already."""
    value = (clone.metadata.annotations or {}).get(ownnames.WARM.name)
    if value not in (None, "true", "false"):
        path = ("metadata", "annotations", ownnames.WARM.name)
        yield finding.invalid(path, value, 'must be "true" or "false"', "kubevirt/clone-warm")
    if value != "true":
        return
    if clone.spec.newSMBiosSerial:
        why = "the guest of a warm clone has read its serial number already"
        yield finding.invalid(("spec", "newSMBiosSerial"), clone.spec.newSMBiosSerial, why, "kubevirt/clone-warm")
    yield from patch_findings(clone.spec.patches, ("spec", "patches"), "kubevirt/clone-warm", _WARM_PATCHABLE)


def _filters(filters: list[str] | None, path: Path) -> Iterator[Finding]:
    for index, text in enumerate(filters or ()):
        if text in ("", "!") or _FILTER.match(text) is None:
            why = "must be a key, optionally with a leading ! and a closing *"
            yield finding.invalid((*path, index), text, why, "kubevirt/clone-filters")


KINDS = (
    Kind(
        group="clone.kubevirt.io",
        kind="VirtualMachineClone",
        plural="virtualmachineclones",
        singular="virtualmachineclone",
        short_names=("vmclone", "vmclones"),
        categories=("all",),
        cls=VirtualMachineClone,
        dialect="kubevirt",
        versions=(Version("v1alpha1", storage=False), Version("v1beta1")),
        columns=(
            Column("Phase", ".status.phase"),
            Column("SourceVirtualMachine", ".spec.source.name"),
            Column("TargetVirtualMachine", ".spec.target.name"),
        ),
        rules=(source_can_be_cloned, filters_are_readable, warm_clone_keeps_hardware),
        transitions=(spec_is_immutable("kubevirt/clone-change"),),
    ),
)
