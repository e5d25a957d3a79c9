"""Rules of the DataVolumes that belong to a machine: V7 to V14 (docs/spec/kubevirt.md section 2.11, docs/spec/kubermatic.md 1.1).

KubeVirt calls the list `dataVolumeTemplate` and its members otherwise than the document does; findings carry both places.
"""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from paddock.kubernetes.meta.world import DEFAULT_NAMESPACE
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import CrossFieldRule
from paddock.kubevirt.kinds.datavolume import DataVolumeSpec
from paddock.kubevirt.rules import datavolume as rules_datavolume
from paddock.kubevirt.rules.place import Check, MachinePlace, check, once, standing


def _names(machine_place: MachinePlace) -> list[str]:
    templates = machine_place.spec.dataVolumeTemplates or []
    return [(template.metadata.name if template.metadata is not None else None) or "" for template in templates]


@check("kubevirt/V7", given=("spec.dataVolumeTemplates",))
def templates_are_named(machine_place: MachinePlace) -> Iterator[Finding]:
    """Every template of a DataVolume has a name of its own."""
    seen = set()
    for index, name in enumerate(_names(machine_place)):
        path, at = machine_place.at("dataVolumeTemplate", index, "name"), machine_place.at("dataVolumeTemplates", index)
        if not name:
            yield standing(finding.required(path, "kubevirt/V7", "metadata.name must not be empty"), at)
        elif name in seen:
            found = finding.duplicate(path, name, "kubevirt/V7", "two DataVolumes of one name")
            yield standing(found, (*at, "metadata", "name"))
        seen.add(name)


@once
def _specs(machine_place: MachinePlace) -> Iterator[tuple[Path, DataVolumeSpec]]:
    for index, template in enumerate(machine_place.spec.dataVolumeTemplates or ()):
        yield machine_place.at("dataVolumeTemplates", index, "spec"), template.spec


# Findings about a template are those of DataVolumes; some of them KubeVirt makes itself, at places of its own.
_OF_DATA_VOLUMES = rules_datavolume.data_volume_rules(_specs)
_OF_MACHINES = (
    ("V8", rules_datavolume.CLAIM, "A template says what the claim is."),
    ("V9", rules_datavolume.CLAIM, "A template says once what the claim is."),
    ("V10", rules_datavolume.SOURCE, "A template says where the content comes from."),
    ("V11", rules_datavolume.SOURCE, "The content comes from exactly one source."),
    ("V12", rules_datavolume.SOURCE, "Content from a source and content that fills the claim from outside exclude each other."),
)


def _known_as(finding: Finding, machine_place: MachinePlace) -> tuple[str, Path]:
    """The number and the place under which KubeVirt makes a finding about a template, if it makes it."""
    _, index, _, *member = finding.path[len(machine_place.path) :]
    field = machine_place.at("dataVolumeTemplate", index)
    spec = (machine_place.spec.dataVolumeTemplates or [])[int(index)].spec
    if finding.rule == rules_datavolume.CLAIM and member in (["pvc"], ["storage"]):
        return "V8" if member == ["pvc"] else "V9", (*field, "PVC", "Storage")
    if finding.rule != rules_datavolume.SOURCE or member not in (["source"], ["sourceRef"]):
        return "", ()
    if spec.source is None and spec.sourceRef is None:
        return "V10", (*field, "source", "sourceRef")
    return "V12" if rules_datavolume.is_populated_from_outside(spec) else "V11", (*field, "source")


Look = Callable[[MachinePlace], Iterable[Finding]]
_TEMPLATES = "spec.dataVolumeTemplates"
_GIVEN = {
    rules_datavolume.CONTENT: (f"{_TEMPLATES}[].spec.contentType",),
    rules_datavolume.CLASS: (f"{_TEMPLATES}[].spec.storageClassName",),
    rules_datavolume.URL: (f"{_TEMPLATES}[].spec.source",),
    rules_datavolume.REGISTRY: (f"{_TEMPLATES}[].spec.source.registry",),
    rules_datavolume.CERTIFICATES: (f"{_TEMPLATES}[].spec.source.http",),
}


def _of_templates(findings: Look, number: str = "") -> Callable[[MachinePlace], Iterator[Finding]]:
    """The findings of a rule about DataVolumes that have this number, or that have none."""

    def judge(machine_place: MachinePlace) -> Iterator[Finding]:
        for found in findings(machine_place):
            known, field = _known_as(found, machine_place)
            if known == number:
                yield msgspec.structs.replace(found, path=field, rule=f"kubevirt/{number}", at=found.path) if number else found

    return judge


def _asked(rule: CrossFieldRule) -> Look:
    """The findings of a rule; several checks take their share of them."""
    return once(lambda place: iter(rule.check(place, place.settings)))


_BY_ID = {rule.id: _asked(rule) for rule in _OF_DATA_VOLUMES}
_CHECKED: tuple[Check[MachinePlace], ...] = (
    *(Check(f"kubevirt/{number}", text, _of_templates(_BY_ID[rule], number), given=(_TEMPLATES,)) for number, rule, text in _OF_MACHINES),
    *(
        Check(rule.id, rule.text, _of_templates(_BY_ID[rule.id]), warns=rule.warns, given=_GIVEN.get(rule.id, (_TEMPLATES,)))
        for rule in _OF_DATA_VOLUMES
    ),
)


@check("kubevirt/V13", given=("spec.dataVolumeTemplates",))
def templates_are_used(machine_place: MachinePlace) -> Iterator[Finding]:
    """Every template is the content of a volume."""
    used = set()
    for volume in machine_place.spec.template.spec.volumes or ():
        if volume.dataVolume is not None:
            used.add(volume.dataVolume.name)
        if volume.persistentVolumeClaim is not None:
            used.add(volume.persistentVolumeClaim.claimName)
    for index, name in enumerate(_names(machine_place)):
        if name and name not in used:
            why = "no volume uses it: it must be referenced in the VMI template's 'volumes' list"
            found = finding.invalid(machine_place.at("dataVolumeTemplate", index), name, why, "kubevirt/V13")
            yield standing(found, machine_place.at("dataVolumeTemplates", index, "metadata", "name"))


@check("kubevirt/V14", given=("spec.dataVolumeTemplates[].metadata.namespace",))
def templates_stay_at_home(machine_place: MachinePlace) -> Iterator[Finding]:
    """A template's DataVolume is made in the namespace of the machine."""
    home = machine_place.namespace or DEFAULT_NAMESPACE
    for index, template in enumerate(machine_place.spec.dataVolumeTemplates or ()):
        namespace = template.metadata.namespace if template.metadata is not None else None
        if namespace and namespace != home:
            why = f"the namespace differs from the machine's ({home}); leave it out"
            path = machine_place.at("dataVolumeTemplates", index)
            found = finding.invalid(path, namespace, why, "kubevirt/V14")
            yield standing(found, (*path, "metadata", "namespace"))


CHECKS = (templates_are_named, *_CHECKED, templates_are_used, templates_stay_at_home)
