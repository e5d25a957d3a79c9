"""Kinds by which storage drivers and clusters talk to each other (`storage.k8s.io`). Stored, and nothing here attaches anything."""

from collections.abc import Iterator
from typing import Annotated

from paddock.apiserver.resources.strategy import Data, Strategy, WriteContext
from paddock.meta.objects import Resource
from paddock.meta.selectors import LabelSelector
from paddock.schema import finding
from paddock.schema.field import Field, Freeform, Object, Quantity, Time
from paddock.schema.finding import Finding
from paddock.schema.kind import AGE, Kind

GROUP = "storage.k8s.io"
_RULE = "core/storage-driver"
DriverName = Annotated[str, Field("Name of the driver.", required=True, min_length=1, max_length=63)]


class TokenAudience(Object):
    """A token that the driver wants."""

    audience: Annotated[str, Field("Whom the token is for.", required=True)] = ""
    expirationSeconds: Annotated[int | None, Field("How long it is valid.", ge=600, le=1 << 32)] = None


class DriverSpec(Object):
    """How the driver wants to be treated."""

    attachRequired: Annotated[bool | None, Field("Whether volumes are attached before they are mounted.")] = True
    podInfoOnMount: Annotated[bool | None, Field("Whether it wants to know for whom it mounts.")] = False
    storageCapacity: Annotated[bool | None, Field("Whether it tells how much it has left.")] = False
    fsGroupPolicy: Annotated[str | None, Field("Whether ownership may be changed.", enum=("ReadWriteOnceWithFSType", "File", "None"))] = (
        "ReadWriteOnceWithFSType"
    )
    volumeLifecycleModes: Annotated[list[Annotated[str, Field(enum=("Persistent", "Ephemeral"))]] | None, Field("Modes.")] = None
    tokenRequests: Annotated[list[TokenAudience] | None, Field("Tokens it wants.")] = None
    requiresRepublish: Annotated[bool | None, Field("Whether it wants to be called again.")] = False
    seLinuxMount: Annotated[bool | None, Field("Whether it can mount with a context.")] = False
    nodeAllocatableUpdatePeriodSeconds: Annotated[int | None, Field("How often its capacity is asked for.", ge=10)] = None
    serviceAccountTokenInSecrets: Annotated[bool | None, Field("Where it wants its tokens.")] = None
    preventPodSchedulingIfMissing: Annotated[bool | None, Field("Whether nodes without it are avoided.")] = None


class CSIDriver(Resource):
    """A storage driver."""

    spec: Annotated[DriverSpec, Field("How it wants to be treated.", required=True)] = DriverSpec()


class NodeResources(Object):
    """How many volumes."""

    count: Annotated[int | None, Field("Volumes that a node can have.", ge=0, bits=32)] = None


class NodeDriver(Object):
    """A driver on a node."""

    name: DriverName = ""
    nodeID: Annotated[str, Field("Name of the node to the driver.", required=True, min_length=1, max_length=256)] = ""
    topologyKeys: Annotated[list[str] | None, Field("Labels that say where volumes can be reached.", nullable=True)] = None
    allocatable: Annotated[NodeResources | None, Field("How many volumes.")] = None


class NodeDrivers(Object):
    """Which drivers."""

    drivers: Annotated[list[NodeDriver] | None, Field("Drivers of the node.", nullable=True, keys=("name",))] = None


class CSINode(Resource):
    """The storage drivers of a node."""

    spec: Annotated[NodeDrivers, Field("Which drivers.", required=True)] = NodeDrivers()


class AttachmentSource(Object):
    """The volume."""

    persistentVolumeName: Annotated[str | None, Field("Name of a PersistentVolume.")] = None
    inlineVolumeSpec: Annotated[Freeform | None, Field("A volume without an object of its own.")] = None


class AttachmentSpec(Object):
    """What is attached where."""

    attacher: DriverName = ""
    source: Annotated[AttachmentSource, Field("The volume.", required=True)] = AttachmentSource()
    nodeName: Annotated[str, Field("The node.", required=True, min_length=1)] = ""


class VolumeError(Object):
    """What went wrong."""

    time: Annotated[Time | None, Field("When.")] = None
    message: Annotated[str | None, Field("What.", max_length=1024)] = None
    errorCode: Annotated[int | None, Field("Code of the driver.", ge=0, bits=32)] = None


class AttachmentStatus(Object):
    """What the driver says."""

    attached: Annotated[bool, Field("Whether it is attached.", zero=True)] = False
    attachmentMetadata: Annotated[dict[str, str] | None, Field("What the driver needs to know again.")] = None
    attachError: Annotated[VolumeError | None, Field("What went wrong when attaching.")] = None
    detachError: Annotated[VolumeError | None, Field("What went wrong when detaching.")] = None


class VolumeAttachment(Resource):
    """A volume that shall be attached to a node."""

    spec: Annotated[AttachmentSpec, Field("What is attached where.", required=True)] = AttachmentSpec()
    status: Annotated[AttachmentStatus | None, Field("What the driver says.")] = None


class CSIStorageCapacity(Resource):
    """How much a driver has left in one place."""

    nodeTopology: Annotated[LabelSelector | None, Field("Nodes that reach it.")] = None
    storageClassName: Annotated[str, Field("The class that this is about.", required=True, min_length=1)] = ""
    capacity: Annotated[Quantity | None, Field("How much there is.", at_least="0")] = None
    maximumVolumeSize: Annotated[Quantity | None, Field("How large a volume can be.", at_least="0")] = None


class VolumeAttributesClass(Resource):
    """Attributes of volumes that can be changed later."""

    driverName: DriverName = ""
    parameters: Annotated[dict[str, str] | None, Field("The attributes, as the driver names them.", max_items=512)] = None


def _unchanged(new: Data, old: Data | None, *path: str) -> Iterator[Finding]:
    if old is None:
        return
    here, before = new, old
    for part in path[:-1]:
        here, before = here.get(part) or {}, before.get(part) or {}
    if here.get(path[-1]) != before.get(path[-1]):
        yield finding.invalid(path, here.get(path[-1]), "field is immutable", _RULE)


class DriverStrategy(Strategy):
    """Volumes persist unless the driver says otherwise."""

    def complete(self, new: Data) -> None:
        """Defaults that are lists."""
        spec = new.get("spec") or {}
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """What volumes were made by stays."""
        yield from _unchanged(new, old, "spec", "attachRequired")
        yield from _unchanged(new, old, "spec", "volumeLifecycleModes")


class NodeDriversStrategy(Strategy):
    """A driver on a node stays as it registered."""

    def complete(self, new: Data) -> None:
        """No drivers are an empty list."""
        spec = new.setdefault("spec", {})
        spec["drivers"] = spec.get("drivers") or []

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        before = {each.get("name"): each for each in ((old or {}).get("spec") or {}).get("drivers") or ()}
        for each in (new.get("spec") or {}).get("drivers") or ():
            known = before.get(each.get("name"))
            if known is not None and {**known, "allocatable": None} != {**each, "allocatable": None}:
                yield finding.invalid(("spec", "drivers"), each, "field is immutable", _RULE)


class AttachmentStrategy(Strategy):
    """Nothing is attached yet, and what shall be attached does not change."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        new["status"] = {"attached": False}
        return new

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """One volume."""
        source = (new.get("spec") or {}).get("source") or {}
        path, why = ("spec", "source"), "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        named, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
        if named is None and inline is None:
            yield finding.required(path, _RULE, why)
        elif named is not None and inline is not None:
            yield finding.forbidden(path, why, _RULE)
        elif named == "":
            yield finding.required((*path, "persistentVolumeName"), _RULE, "must specify non empty persistentVolumeName")
        yield from _unchanged(new, old, "spec")


class CapacityStrategy(Strategy):
    """What is told stays about the same place."""

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        yield from _unchanged(new, old, "nodeTopology")
        yield from _unchanged(new, old, "storageClassName")


class AttributesStrategy(Strategy):
    """Volumes were made by the class, so it does not change."""

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        if not new.get("parameters"):
            yield finding.required(("parameters",), _RULE, "must contain at least one key/value pair")
        yield from _unchanged(new, old, "driverName")
        yield from _unchanged(new, old, "parameters")


def _kind(cls: type[Resource], plural: str, short: str = "", *, namespaced: bool = False, status: bool = False) -> Kind:
    return Kind(
        group=GROUP,
        kind=cls.__name__,
        plural=plural,
        singular=cls.__name__.lower(),
        cls=cls,
        dialect="core",
        short_names=(short,) if short else (),
        namespaced=namespaced,
        columns=(AGE,),
        status=status,
        builtin=True,
    )


KINDS = (
    _kind(CSIDriver, "csidrivers"),
    _kind(CSINode, "csinodes"),
    _kind(VolumeAttachment, "volumeattachments", status=True),
    _kind(CSIStorageCapacity, "csistoragecapacities", namespaced=True),
    _kind(VolumeAttributesClass, "volumeattributesclasses", "vac"),
)
STRATEGIES: dict[tuple[str, str], Strategy] = {
    (GROUP, "CSIDriver"): DriverStrategy(),
    (GROUP, "CSINode"): NodeDriversStrategy(),
    (GROUP, "VolumeAttachment"): AttachmentStrategy(),
    (GROUP, "CSIStorageCapacity"): CapacityStrategy(),
    (GROUP, "VolumeAttributesClass"): AttributesStrategy(),
}
