"""Rules of the DataVolumes that belong to a machine: V7 to V14 (docs/spec/kubevirt.md section 2.11, docs/spec/kubermatic.md 1.1).

KubeVirt calls the list `dataVolumeTemplate` and its members otherwise than the document does; findings carry both places.
"""

from collections.abc import Iterator

import msgspec

from paddock.dialects.kubevirt import rules_datavolume
from paddock.dialects.kubevirt.datavolume import DataVolumeSpec
from paddock.dialects.kubevirt.rules.place import MachinePlace, check, standing
from paddock.meta.world import DEFAULT_NAMESPACE
from paddock.schema import finding
from paddock.schema.finding import Finding, Path


def _names(place: MachinePlace) -> list[str]:
    templates = place.spec.dataVolumeTemplates or []
    return [(template.metadata.name if template.metadata is not None else None) or "" for template in templates]


@check("kubevirt/V7")
def templates_are_named(place: MachinePlace) -> Iterator[Finding]:
    """Every template of a DataVolume has a name of its own."""
    seen = set()
    for index, name in enumerate(_names(place)):
        path, at = place.at("dataVolumeTemplate", index, "name"), place.at("dataVolumeTemplates", index)
        if not name:
            yield standing(finding.required(path, "kubevirt/V7", "metadata.name must not be empty"), at)
        elif name in seen:
            found = finding.duplicate(path, name, "kubevirt/V7", "two DataVolumes of one name")
            yield standing(found, (*at, "metadata", "name"))
        seen.add(name)


# Who asks about one template gets the whole of it: the rule is named by what of it is wrong (V8 to V12).
@check("kubevirt/V8-V12")
def templates_are_good(place: MachinePlace) -> Iterator[Finding]:
    """A template says where the content comes from and what the claim is, and obeys the rules of DataVolumes."""
    for index, template in enumerate(place.spec.dataVolumeTemplates or ()):
        field, at = place.at("dataVolumeTemplate", index), place.at("dataVolumeTemplates", index, "spec")
        for found in rules_datavolume.data_volume_findings(template.spec, at, place.settings):
            number, name = _named_by_kubevirt(template.spec, found.path[len(at) :])
            if number:
                yield msgspec.structs.replace(found, path=(*field, *name), rule=f"kubevirt/{number}", at=found.path)
            else:
                yield found


def _named_by_kubevirt(spec: DataVolumeSpec, below: Path) -> tuple[str, Path]:
    """The number of the rule and KubeVirt's name of the place, for what KubeVirt itself checks in a template."""
    if below == ("pvc",):
        return "V8", ("PVC", "Storage")
    if below == ("storage",):
        return "V9", ("PVC", "Storage")
    if below not in (("source",), ("sourceRef",)):
        return "", ()
    if spec.source is None and spec.sourceRef is None:
        return "V10", ("source", "sourceRef")
    outside = rules_datavolume.is_populated_from_outside(spec)
    return "V12" if outside else "V11", ("source",)


@check("kubevirt/V13")
def templates_are_used(place: MachinePlace) -> Iterator[Finding]:
    """Every template is the content of a volume."""
    used = set()
    for volume in place.spec.template.spec.volumes or ():
        if volume.dataVolume is not None:
            used.add(volume.dataVolume.name)
        if volume.persistentVolumeClaim is not None:
            used.add(volume.persistentVolumeClaim.claimName)
    for index, name in enumerate(_names(place)):
        if name and name not in used:
            why = "no volume uses it: it must be referenced in the VMI template's 'volumes' list"
            found = finding.invalid(place.at("dataVolumeTemplate", index), name, why, "kubevirt/V13")
            yield standing(found, place.at("dataVolumeTemplates", index, "metadata", "name"))


@check("kubevirt/V14")
def templates_stay_at_home(place: MachinePlace) -> Iterator[Finding]:
    """A template's DataVolume is made in the namespace of the machine."""
    home = place.namespace or DEFAULT_NAMESPACE
    for index, template in enumerate(place.spec.dataVolumeTemplates or ()):
        namespace = template.metadata.namespace if template.metadata is not None else None
        if namespace and namespace != home:
            why = f"the namespace differs from the machine's ({home}); leave it out"
            path = place.at("dataVolumeTemplates", index)
            found = finding.invalid(path, namespace, why, "kubevirt/V14")
            yield standing(found, (*path, "metadata", "namespace"))


CHECKS = (templates_are_named, templates_are_good, templates_are_used, templates_stay_at_home)
