"""The values of a template, and the three built-in templates."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from paddock.dialects.vitistack.kinds.fields import MOST_DISKS, MachineCpu, MachineMemory, MachineResources, TemplateDisk
from paddock.dialects.vitistack.kinds.marks import DEFAULT_CLASS, ROOT_DISK
from paddock.kubernetes.schema.field import Field, Object


class MachineTemplateSpec(Object):
    """Processors, memory and disks of a machine that says nothing else."""

    resources: Annotated[MachineResources, Field("Processors and memory.", required=True)] = MachineResources()
    disks: Annotated[
        list[TemplateDisk], Field("The disks; each with its size.", required=True, min_items=1, max_items=MOST_DISKS, keys=("name",))
    ] = []


def _plain(cores: int, memory: str, root: str) -> MachineTemplateSpec:
    return MachineTemplateSpec(
        resources=MachineResources(cpu=MachineCpu(cores=cores, threads=1, sockets=1), memory=MachineMemory(size=memory)),
        disks=[TemplateDisk(name=ROOT_DISK, size=root, storageClass=DEFAULT_CLASS)],
    )


BUILT_IN: Mapping[str, MachineTemplateSpec] = MappingProxyType(
    {
        "small": _plain(1, "2Gi", "20Gi"),
        "medium": _plain(2, "4Gi", "40Gi"),
        "large": _plain(4, "8Gi", "80Gi"),
    }
)
# `none` is what metrics call a machine without a template.
RESERVED = (*BUILT_IN, "none")


def choices() -> str:
    """The built-in names, as a sentence lists them."""
    *first, last = BUILT_IN
    return f"{', '.join(first)} or {last}"
