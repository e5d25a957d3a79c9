"""`vitistack.io/v1alpha1 MachineTemplate`: a template of one's own (docs/design/0004-vitistack-templates.md)."""

from collections.abc import Iterator
from typing import Annotated

from paddock.dialects.vitistack.kinds.templates import BUILT_IN, RESERVED, MachineTemplateSpec
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.world import ObjectSet
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Cel, Column, Kind, Version, rule, transition


class MachineTemplate(Resource):
    """A named size for machines of its namespace, beside the built-in small, medium and large."""

    spec: Annotated[MachineTemplateSpec, Field("What a machine has that says nothing else.", required=True)] = MachineTemplateSpec()


def find(name: str, namespace: str, object_set: ObjectSet) -> MachineTemplateSpec | None:
    """The template of this name: a built-in one, else the namespace's own. None is called `none`."""
    if name in RESERVED:
        return BUILT_IN.get(name)
    found = object_set.get(MachineTemplate, namespace, name)
    return found.spec if found else None


@rule(
    "vitistack/template-name",
    Cel(
        "",
        "!(self.metadata.name in ['small', 'medium', 'large', 'none'])",
        "reserved template name",
        ".metadata.name",
    ),
    Cel("", "self.metadata.name.size() <= 63", "must be no more than 63 characters", ".metadata.name"),
)
def name_is_free(template: MachineTemplate, settings: AdmissionSettings) -> Iterator[Finding]:
    """Built-in templates cannot be replaced, and the name becomes a label value."""
    name, path = template.metadata.name, ("metadata", "name")
    if name in RESERVED:
        yield finding.invalid(path, name, "reserved template name", "vitistack/template-name")
    if len(name) > 63:
        yield finding.invalid(path, name, "must be no more than 63 characters", "vitistack/template-name")


@rule(
    "vitistack/template-complete",
    Cel(
        "spec.resources",
        "has(self.memory) && has(self.memory.size)",
        "a template gives the memory",
        ".memory",
        "FieldValueRequired",
    ),
    Cel("spec.disks[]", "has(self.size)", "a template gives each disk's size", ".size", "FieldValueRequired"),
)
def template_is_complete(template: MachineTemplate, settings: AdmissionSettings) -> Iterator[Finding]:
    """A machine may name a template and nothing else, so the template gives the memory and the size of each disk."""
    spec = template.spec
    if spec.resources.memory is None or spec.resources.memory.size is None:
        yield finding.required(("spec", "resources", "memory", "size"), "vitistack/template-complete", "a template gives the memory")
    for index, disk in enumerate(spec.disks):
        if disk.size is None:
            path = ("spec", "disks", index, "size")
            yield finding.required(path, "vitistack/template-complete", "a template gives each disk's size")


@transition("vitistack/template-immutable", Cel("", "self.spec == oldSelf.spec", "field is immutable", ".spec"))
def template_stays(old: MachineTemplate, new: MachineTemplate, settings: AdmissionSettings) -> Iterator[Finding]:
    """Machines were made from a template: what it gives stays as it is. Another size is another template."""
    if old.spec != new.spec:
        message = "Invalid value: field is immutable; make a template of another name"
        yield Finding(path=("spec",), message=message, rule="vitistack/template-immutable")


RULES = (name_is_free, template_is_complete)
TRANSITIONS = (template_stays,)

KINDS = (
    Kind(
        group="vitistack.io",
        kind="MachineTemplate",
        plural="machinetemplates",
        singular="machinetemplate",
        short_names=("mt",),
        cls=MachineTemplate,
        dialect="vitistack",
        versions=(Version("v1alpha1"),),
        columns=(
            Column("Cores", ".spec.resources.cpu.cores", "integer"),
            Column("Memory", ".spec.resources.memory.size"),
            Column("Disks", ".spec.disks[*].size"),
            AGE,
        ),
        status=False,
        rules=RULES,
        transitions=TRANSITIONS,
    ),
)
