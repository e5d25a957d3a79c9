"""Names, labels, and what has to be there when no template gives it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.base import names
from paddock.base.nearest import nearest
from paddock.dialects.vitistack.kinds import ownform, templates
from paddock.dialects.vitistack.kinds.effective import effective
from paddock.dialects.vitistack.kinds.marks import MACHINE_TEMPLATE
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, rule

if TYPE_CHECKING:
    from paddock.dialects.vitistack.kinds.machine import Machine

_TEMPLATED = "(has(self.template) && self.template != '')"


@rule(
    "vitistack/name",
    Cel("", "self.metadata.name.size() <= 63", "must be no more than 63 characters", ".metadata.name"),
    Cel("", "!self.metadata.name.contains('.')", "must be a DNS-1123 label", ".metadata.name"),
)
def name_is_a_label(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """The name becomes a label value and a prefix, so it is a DNS-1123 label of at most 63 characters."""
    name = machine.metadata.name
    if len(name) > 63:
        yield finding.invalid(("metadata", "name"), name, "must be no more than 63 characters", "vitistack/name")
    elif name and names.is_subdomain(name) and not names.is_label(name):
        yield finding.invalid(("metadata", "name"), name, "must be a DNS-1123 label", "vitistack/name")


@rule("vitistack/template")
def template_is_known(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """A template that is not built in has to exist as a MachineTemplate, which shows when the machine is made.

    A note, and a warning where no MachineTemplate can have the name or a built-in one seems to be meant.
    """
    name, path = machine.spec.template, ("spec", "template")
    if not name or name in templates.BUILT_IN:
        return
    text = f'template "{name}" is not built in: use {templates.choices()}'
    if name in templates.RESERVED or not names.is_label(name) or nearest(name, templates.BUILT_IN):
        yield finding.warning(path, text, "vitistack/template")
    else:
        yield finding.note(path, f'{text}, or see that a MachineTemplate "{name}" exists in the namespace', "vitistack/template")


@rule("vitistack/template-label")
def label_agrees(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """The label that names a template is information only: spec.template decides (a warning when they differ)."""
    label = (machine.metadata.labels or {}).get(MACHINE_TEMPLATE)
    template = machine.spec.template or ""
    if label is not None and label != template:
        text = f'the label says "{label}" and spec.template says "{template}"; spec.template decides'
        yield finding.warning(("metadata", "labels", MACHINE_TEMPLATE), text, "vitistack/template-label")


@rule(
    "vitistack/memory",
    Cel(
        "spec",
        f"{ownform.OWN_CEL} || {_TEMPLATED} || (has(self.resources) && has(self.resources.memory) && has(self.resources.memory.size))",
        "needed when spec.template is not set",
        ".resources.memory.size",
        "FieldValueRequired",
    ),
)
def memory_is_given(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Without a template the memory has to be given."""
    resources = machine.spec.resources
    given = resources is not None and resources.memory is not None and resources.memory.size is not None
    if not machine.spec.template and not given and not ownform.is_own(machine.spec):
        path = ("spec", "resources", "memory", "size")
        yield finding.required(path, "vitistack/memory", "needed when spec.template is not set")


@rule(
    "vitistack/disks",
    Cel(
        "spec",
        f"{ownform.OWN_CEL} || {_TEMPLATED} || self.disks.size() > 0 || "
        "(has(self.bootOrder) && self.bootOrder.size() > 0 && self.bootOrder[0] == 'network')",
        "a machine without a template needs a disk",
        ".disks",
        "FieldValueRequired",
    ),
)
def there_is_a_disk(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Without a template there is a disk, or the machine boots from the network first."""
    spec = machine.spec
    if not (spec.template or spec.disks or ownform.is_own(spec)) and (spec.bootOrder or [""])[0] != "network":
        yield finding.required(("spec", "disks"), "vitistack/disks", "a machine without a template needs a disk")


@rule("vitistack/vcpus")
def vcpus_are_limited(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Each number may be fine and their product more than a machine can have (a warning: the machine will not start)."""
    merged = effective(machine.spec.resources, (), templates.BUILT_IN.get(machine.spec.template or ""))
    count = merged.cores * merged.threads * merged.sockets
    if count > settings.max_vcpus:
        text = f"{count} vCPUs exceed the limit {settings.max_vcpus}; the machine will not start"
        yield finding.warning(("spec", "resources", "cpu"), text, "vitistack/vcpus")


RULES = (name_is_a_label, template_is_known, label_agrees, memory_is_given, there_is_a_disk, vcpus_are_limited)
