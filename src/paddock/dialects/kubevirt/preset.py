"""`kubevirt.io VirtualMachineInstancePreset`: hardware for instances with some labels. Instancetypes took its place upstream."""

from typing import Annotated

from paddock.dialects.kubevirt.domain import DomainSpec
from paddock.dialects.kubevirt.instance import GROUP
from paddock.meta.objects import Resource
from paddock.meta.selectors import LabelSelector
from paddock.schema.field import Field, Object
from paddock.schema.kind import AGE, Kind, Version

_DEPRECATED = "kubevirt.io/v1alpha3 is deprecated; use kubevirt.io/v1, or better an instancetype and a preference"


class PresetSpec(Object):
    """Hardware for instances with some labels."""

    selector: Annotated[LabelSelector, Field("Labels of the instances.", required=True)] = LabelSelector()
    domain: Annotated[DomainSpec | None, Field("The hardware, for what an instance does not say itself.")] = None


class VirtualMachineInstancePreset(Resource):
    """Hardware for instances with some labels."""

    spec: Annotated[PresetSpec | None, Field("Hardware for instances with some labels.")] = None


KINDS = (
    Kind(
        group=GROUP,
        kind="VirtualMachineInstancePreset",
        plural="virtualmachineinstancepresets",
        singular="virtualmachineinstancepreset",
        short_names=("vmipreset", "vmipresets"),
        categories=("all",),
        cls=VirtualMachineInstancePreset,
        dialect="kubevirt",
        versions=(Version("v1", storage=False), Version("v1alpha3", deprecated=_DEPRECATED)),
        columns=(AGE,),
        status=False,
    ),
)
