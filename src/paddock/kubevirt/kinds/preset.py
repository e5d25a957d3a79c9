"""`kubevirt.io VirtualMachineInstancePreset`: hardware for instances with some labels. Instancetypes took its place upstream."""

from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.selectors import LabelSelector
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field, Object
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Kind, Version, rule
from paddock.kubevirt.kinds.domain import DomainSpec
from paddock.kubevirt.kinds.instance import GROUP, VirtualMachineInstanceSpec
from paddock.kubevirt.rules import disks
from paddock.kubevirt.rules.place import HardwareContext

_DEPRECATED = "kubevirt.io/v1alpha3 is deprecated; use kubevirt.io/v1, or better an instancetype and a preference"


class PresetSpec(Object):
    """Hardware for instances with some labels."""

    selector: Annotated[LabelSelector, Field("Labels of the instances.", required=True)] = LabelSelector()
    domain: Annotated[DomainSpec | None, Field("The hardware, for what an instance does not say itself.")] = None


class VirtualMachineInstancePreset(Resource):
    """Hardware for instances with some labels."""

    spec: Annotated[PresetSpec | None, Field("Hardware for instances with some labels.")] = None


@rule("kubevirt/preset-domain")
def hardware_is_given(preset: VirtualMachineInstancePreset, settings: AdmissionSettings) -> Iterator[Finding]:
    """A preset gives hardware, and each of its disks is one thing."""
    if preset.spec is None:
        return
    if preset.spec.domain is None:
        yield finding.required(("spec", "domain"), "kubevirt/preset-domain", "give the hardware that instances get")
        return
    place = HardwareContext(spec=VirtualMachineInstanceSpec(domain=preset.spec.domain), path=("spec",), settings=settings)
    for rule_of_disks in (disks.disks_are_one_thing, disks.pci_addresses_fit, disks.block_sizes_fit):
        yield from rule_of_disks(place)


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
        rules=(hardware_is_given,),
    ),
)
