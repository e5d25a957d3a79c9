"""Kinds that clients expect to be there, and that a server of virtual machines only keeps.

Volumes, templates and priorities are stored as they come.
"""

from collections.abc import Iterator
from typing import Annotated

from paddock.apiserver.resources.strategy import CustomStrategy, Data, WriteContext
from paddock.meta import failure
from paddock.meta.objects import Resource
from paddock.meta.storage import AccessModes, Quantities, StorageClassName, VolumeMode
from paddock.schema import finding
from paddock.schema.field import Field, Freeform, Object
from paddock.schema.finding import Finding
from paddock.schema.kind import AGE, AdmissionSettings, Column, Kind, transition

_HIGHEST_PRIORITY = 1_000_000_000
# The priorities that the system itself has, and why nobody else may begin a name like that.
SYSTEM_PRIORITIES = {
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    "system-node-critical": (2_000_001_000, "Used for system critical pods that must not be moved from their current node."),
}
_RESERVED = "priority class names with 'system-' prefix are reserved for system use only. error: "


class VolumeSpec(Object):
    """What the volume is. What it is made of is kept as it comes."""

    OPEN = True

    capacity: Annotated[Quantities | None, Field("Size of the volume, as storage.")] = None
    accessModes: AccessModes = None
    volumeMode: VolumeMode = None
    storageClassName: StorageClassName = None
    persistentVolumeReclaimPolicy: Annotated[
        str | None, Field("What becomes of it when its claim is gone.", enum=("Retain", "Delete", "Recycle"))
    ] = None
    claimRef: Annotated[Freeform | None, Field("The claim that has it.")] = None
    mountOptions: Annotated[list[str] | None, Field("Options of the mount.")] = None
    nodeAffinity: Annotated[Freeform | None, Field("Nodes that reach it.")] = None


class VolumeStatus(Object):
    """What was observed."""

    phase: Annotated[str | None, Field("Pending, Available, Bound, Released or Failed.")] = None
    message: Annotated[str | None, Field("Why, for people.")] = None
    reason: Annotated[str | None, Field("Why, in one word.")] = None
    lastPhaseTransitionTime: Annotated[str | None, Field("When the phase last changed.")] = None


class PersistentVolume(Resource):
    """A piece of storage that a claim can have."""

    spec: Annotated[VolumeSpec | None, Field("What it is.")] = None
    status: Annotated[VolumeStatus | None, Field("What was observed.")] = None


class PodTemplate(Resource):
    """What pods would be made of."""

    template: Annotated[Freeform | None, Field("The template.")] = None


class PriorityClass(Resource):
    """A name for a priority."""

    value: Annotated[int, Field("The priority.", required=True, bits=32)] = 0
    globalDefault: Annotated[bool | None, Field("Whether it holds where none is named.")] = None
    description: Annotated[str | None, Field("When to use it.")] = None
    preemptionPolicy: Annotated[str | None, Field("Whether lower ones have to give way.", enum=("PreemptLowerPriority", "Never"))] = None


class PriorityStrategy(CustomStrategy):
    """A priority pushes others away unless it says otherwise."""

    def complete(self, new: Data) -> None:
        """Defaults."""
        new.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """The highest priorities are the system's, and so are the names."""
        name, value = new["metadata"].get("name", ""), new.get("value")
        if name.startswith("system-"):
            if name not in SYSTEM_PRIORITIES:
                yield finding.forbidden(("metadata", "name"), f"{_RESERVED}{name} is not a known system priority class", "core/priority")
            elif value != SYSTEM_PRIORITIES[name][0]:
                why = f"{_RESERVED}value of {name} PriorityClass must be {SYSTEM_PRIORITIES[name][0]}"
                yield finding.forbidden(("metadata", "name"), why, "core/priority")
        elif isinstance(value, int) and value > _HIGHEST_PRIORITY:
            yield finding.forbidden(("value",), f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}", "core/priority")

    def before_delete(self, old: Data, context: WriteContext) -> None:
        """The system's own stay."""
        name = old["metadata"]["name"]
        if name in SYSTEM_PRIORITIES:
            about = failure.FailureTarget(name=name, group="scheduling.k8s.io", kind="priorityclasses")
            raise failure.forbidden(about, "this is a system priority class and cannot be deleted")


@transition("core/priority-change")
def priorities_stay(old: PriorityClass, new: PriorityClass, settings: AdmissionSettings) -> list[Finding]:
    """The value of a priority does not change, nor whether it pushes others away."""
    return [
        finding.forbidden((name,), "may not be changed in an update.", "core/priority-change")
        for name in ("value", "preemptionPolicy")
        if getattr(old, name) != getattr(new, name)
    ]


def _kind(group: str, cls: type[Resource], plural: str, *columns: Column, short: str = "", status: bool = False) -> Kind:
    return Kind(
        group=group,
        kind=cls.__name__,
        plural=plural,
        cls=cls,
        dialect="core",
        short_names=(short,) if short else (),
        namespaced=cls not in (PersistentVolume, PriorityClass),
        columns=(*columns, AGE),
        status=status,
        builtin=True,
        transitions=(priorities_stay,) if cls is PriorityClass else (),
    )


KINDS = (
    _kind("", PersistentVolume, "persistentvolumes", short="pv", status=True),
    _kind("", PodTemplate, "podtemplates"),
    _kind(
        "scheduling.k8s.io",
        PriorityClass,
        "priorityclasses",
        Column("Value", ".value", "integer"),
        Column("Global-Default", ".globalDefault", "boolean"),
        short="pc",
    ),
)
