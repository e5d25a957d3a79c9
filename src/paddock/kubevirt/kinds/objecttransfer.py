"""`cdi.kubevirt.io/v1beta1 ObjectTransfer`: moves a claim or a DataVolume to another namespace (docs/spec/kubevirt.md 5.7)."""

from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field, Object
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Cel, Column, Kind, Version, rule
from paddock.kubevirt.kinds.datavolume_kind import DataCondition
from paddock.kubevirt.kinds.unchangeable import spec_is_immutable

KINDS_THAT_MOVE = ("DataVolume", "PersistentVolumeClaim")


class TransferSource(Object):
    """The object to move."""

    apiVersion: Annotated[str | None, Field("Group and version of the object.")] = None
    kind: Annotated[str, Field("Kind of the object.", required=True, enum=KINDS_THAT_MOVE)] = ""
    namespace: Annotated[str, Field("Namespace of the object.", required=True, format="dns1123-label")] = ""
    name: Annotated[str, Field("Name of the object.", required=True, format="dns1123-subdomain", max_length=253)] = ""
    requiredAnnotations: Annotated[dict[str, str] | None, Field("Annotations the object must have before it moves.")] = None


class TransferTarget(Object):
    """The destination of the object."""

    namespace: Annotated[str | None, Field("New namespace; default: the same.", format="dns1123-label")] = None
    name: Annotated[str | None, Field("New name; default: the same.", format="dns1123-subdomain", max_length=253)] = None


class ObjectTransferSpec(Object):
    """The object to move, and its destination."""

    source: Annotated[TransferSource, Field("What moves.", required=True)] = TransferSource()
    target: Annotated[TransferTarget, Field("Where it goes.", required=True)] = TransferTarget()
    parentName: Annotated[str | None, Field("The transfer this one belongs to.")] = None


class ObjectTransferStatus(Object):
    """The progress of the transfer."""

    phase: Annotated[str | None, Field("Pending, Running, Complete or Error.")] = None
    data: Annotated[dict[str, str] | None, Field("What is kept meanwhile.")] = None
    conditions: Annotated[list[DataCondition] | None, Field("Conditions of the transfer.", keys=("type",))] = None


class ObjectTransfer(Resource):
    """A request to move a claim or a DataVolume to another namespace or name."""

    spec: Annotated[ObjectTransferSpec, Field("What moves, and where it goes.", required=True)] = ObjectTransferSpec()
    status: Annotated[ObjectTransferStatus | None, Field("How far it has come.")] = None


@rule(
    "kubevirt/transfer-target",
    Cel("spec", "has(self.target.namespace) || has(self.target.name)", "give a new namespace or a new name", ".target"),
)
def something_changes(transfer: ObjectTransfer, settings: AdmissionSettings) -> Iterator[Finding]:
    """A transfer names a new namespace, a new name, or both, and is not to where the object is."""
    source, target = transfer.spec.source, transfer.spec.target
    if not target.namespace and not target.name:
        yield finding.required(("spec", "target"), "kubevirt/transfer-target", "give a new namespace or a new name")
    elif source.name and (target.namespace or source.namespace, target.name or source.name) == (source.namespace, source.name):
        where = f"{source.namespace}/{source.name}"
        yield finding.invalid(("spec", "target"), where, "the object is already there", "kubevirt/transfer-target")


KINDS = (
    Kind(
        group="cdi.kubevirt.io",
        kind="ObjectTransfer",
        plural="objecttransfers",
        singular="objecttransfer",
        short_names=("ot", "ots"),
        namespaced=False,
        cls=ObjectTransfer,
        dialect="kubevirt",
        versions=(Version("v1beta1"),),
        columns=(AGE, Column("Phase", ".status.phase")),
        rules=(something_changes,),
        transitions=(spec_is_immutable("kubevirt/transfer-change"),),
    ),
)
