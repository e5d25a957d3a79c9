"""Kinds that clients expect to be there, and that a server of virtual machines only keeps.

Volumes, templates and priorities are stored as they come.
"""

from collections.abc import Iterator
from typing import Annotated

from paddock.apiserver.resources.strategy import Context, CustomStrategy, Data
from paddock.meta.objects import Resource
from paddock.meta.storage import AccessModes, Quantities, StorageClassName, VolumeMode
from paddock.schema import finding
from paddock.schema.field import Field, Freeform, Object
from paddock.schema.finding import Finding
from paddock.schema.kind import AGE, Column, Kind, Settings, transition

_HIGHEST_PRIORITY = 1_000_000_000


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

    def validate(self, new: Data, old: Data | None, context: Context) -> Iterator[Finding]:
        """The highest priorities are the system's."""
        if (
            isinstance(new.get("value"), int)
            and new["value"] > _HIGHEST_PRIORITY
            and not new["metadata"].get("name", "").startswith("system-")
        ):
            yield finding.forbidden(("value",), f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}", "core/priority")


@transition("core/priority-change")
def priorities_stay(old: PriorityClass, new: PriorityClass, settings: Settings) -> list[Finding]:
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
