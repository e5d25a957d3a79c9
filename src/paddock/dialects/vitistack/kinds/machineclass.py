"""`vitistack.io/v1alpha1 MachineClass`: a named size for machines in Vitistack's own form (docs/design/0027-vitistack-forms.md)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from paddock.dialects.vitistack.kinds.ownfields import PROVIDER
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.world import DEFAULT_NAMESPACE, ObjectSet
from paddock.kubernetes.schema.field import Field, Object, Quantity
from paddock.kubernetes.schema.kind import AGE, Column, Kind, Version

_AS_IT_IS = "the memory of a machine counts as it is"
_FOR_PEOPLE = "it helps people to choose a class"


class ClassCpu(Object):
    """The processors of a class."""

    cores: Annotated[int, Field("Cores per socket.", required=True, ge=1, le=256)] = 0
    sockets: Annotated[int | None, Field("Sockets; 0 or none: 1.", ge=0, le=16)] = None
    threads: Annotated[int | None, Field("Threads per core; 0 or none: 1.", ge=0, le=8)] = None


class ClassMemory(Object):
    """The memory of a class."""

    quantity: Annotated[Quantity, Field("Memory the guest sees, such as 8Gi.", required=True, at_least="1Mi", whole=True)] = 0
    minQuantity: Annotated[Quantity | None, Field("The least that is sensible.", not_honoured=_AS_IT_IS)] = None
    maxQuantity: Annotated[Quantity | None, Field("The most that is sensible.", not_honoured=_AS_IT_IS)] = None


class ClassGpu(Object):
    """The graphics processors of a class."""

    cores: Annotated[int, Field("Cores.", required=True, ge=0)] = 0
    manufacturer: Annotated[str | None, Field("Manufacturer.")] = None


class MachineClassSpec(Object):
    """Processors and memory of a machine that says nothing else."""

    enabled: Annotated[bool, Field("Whether machines may use it.")] = True
    default: Annotated[bool, Field("Whether it is offered first.", not_honoured="a machine without a class has 2 cores and 2Gi")] = False
    category: Annotated[str, Field("Kind of size.", not_honoured=_FOR_PEOPLE)] = "Standard"
    memory: Annotated[ClassMemory, Field("The memory.", required=True)] = ClassMemory()
    cpu: Annotated[ClassCpu, Field("The processors.", required=True)] = ClassCpu()
    machineProviders: Annotated[
        list[str] | None, Field("Providers that have the class; none means all. Here it must be one of kubevirt's.", max_items=16)
    ] = None
    gpu: Annotated[ClassGpu | None, Field("Graphics processors.", not_honoured="machines get none by their class")] = None
    description: Annotated[str | None, Field("Description.", not_honoured=_FOR_PEOPLE)] = None
    displayName: Annotated[str | None, Field("Name for people.", not_honoured=_FOR_PEOPLE)] = None


class MachineClass(Resource):
    """A named size for machines of every namespace that are written in Vitistack's own form."""

    spec: Annotated[MachineClassSpec, Field("What a machine has that says nothing else.", required=True)] = MachineClassSpec()


def _plain(cores: int, memory: str, sockets: int = 1, *, enabled: bool = True) -> MachineClassSpec:
    cpu = ClassCpu(cores=cores, sockets=sockets, threads=1)
    return MachineClassSpec(enabled=enabled, memory=ClassMemory(quantity=memory), cpu=cpu, machineProviders=[PROVIDER])


# What Vitistack publishes with its operator. An object of the same name stands in for the built-in class.
BUILT_IN: Mapping[str, MachineClassSpec] = MappingProxyType(
    {
        "small": _plain(2, "8Gi"),
        "medium": _plain(4, "16Gi"),
        "large": _plain(4, "32Gi"),
        "xlarge": _plain(4, "48Gi"),
        "largememory": _plain(4, "64Gi"),
        "largecpu": _plain(8, "16Gi", 2, enabled=False),
    }
)
# Of a machine that names no class.
NO_CLASS = _plain(2, "2Gi")


def find(name: str, object_set: ObjectSet) -> MachineClassSpec | None:
    """The class of this name: an object, else a built-in one."""
    found = object_set.get(MachineClass, DEFAULT_NAMESPACE, name)
    return found.spec if found else BUILT_IN.get(name)


def choices() -> str:
    """The built-in names that machines may use, as a sentence lists them."""
    *first, last = (name for name, spec in BUILT_IN.items() if spec.enabled)
    return f"{', '.join(first)} or {last}"


KINDS = (
    Kind(
        group="vitistack.io",
        kind="MachineClass",
        plural="machineclasses",
        singular="machineclass",
        short_names=("mc",),
        cls=MachineClass,
        dialect="vitistack",
        namespaced=False,
        versions=(Version("v1alpha1"),),
        columns=(
            Column("Cores", ".spec.cpu.cores", "integer"),
            Column("Memory", ".spec.memory.quantity"),
            Column("Enabled", ".spec.enabled", "boolean"),
            AGE,
        ),
        status=False,
    ),
)
