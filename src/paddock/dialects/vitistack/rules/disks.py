from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.dialects.vitistack.kinds import effective, ownform, templates
from paddock.dialects.vitistack.kinds.marks import RESERVED_DISKS, ROOT_DISK
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, rule

if TYPE_CHECKING:
    from paddock.dialects.vitistack.kinds.machine import Machine
    from paddock.dialects.vitistack.kinds.machinespec import MachineSpec

_BUILT_IN = "['small', 'medium', 'large']"
_TEMPLATED = "(has(self.template) && self.template != '')"
_WRITABLE = "the root disk must be writable"


@rule(
    "vitistack/reserved-disk",
    Cel("spec.disks[]", "!(self.name in ['cloudinitdisk', 'cdrom-iso'])", "reserved disk name", ".name"),
)
def disk_names_are_free(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """The disks that the translation adds keep their names."""
    for index, disk in enumerate(machine.spec.disks):
        if disk.name in RESERVED_DISKS:
            yield finding.invalid(("spec", "disks", index, "name"), disk.name, "reserved disk name", "vitistack/reserved-disk")


@rule(
    "vitistack/disk-size",
    Cel(
        "spec",
        f"{ownform.OWN_CEL} || ({_TEMPLATED} && !(self.template in {_BUILT_IN})) || "
        f"self.disks.all(d, has(d.size) || ({_TEMPLATED} && d.name == 'root'))",
        "a disk that the template does not have needs a size",
        ".disks",
        "FieldValueRequired",
    ),
)
def sizes_are_given(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """A disk has a size, its own or that of the template's disk of the same name.

    What a MachineTemplate gives is not known here; the translation looks.
    """
    spec = machine.spec
    if ownform.is_own(spec) or (spec.template and spec.template not in templates.BUILT_IN):
        return
    base = templates.BUILT_IN[spec.template] if spec.template else None
    sized = {disk.name for disk in base.disks} if base else set()
    for index, disk in enumerate(spec.disks):
        if disk.size is None and disk.name not in sized:
            why = f'the template "{spec.template}" has no disk of this name' if base else "no template gives it"
            yield finding.required(("spec", "disks", index, "size"), "vitistack/disk-size", why)


@rule(
    "vitistack/root-writable",
    Cel(
        "spec",
        "self.disks.all(d, d.name != 'root' || !has(d.accessMode) || d.accessMode != 'ReadOnlyMany')",
        _WRITABLE,
        ".disks",
    ),
    Cel(
        "spec",
        f"{_TEMPLATED} || self.disks.size() == 0 || self.disks.exists(d, d.name == 'root') || "
        "!has(self.disks[0].accessMode) || self.disks[0].accessMode != 'ReadOnlyMany'",
        _WRITABLE,
        ".disks",
    ),
)
def root_is_writable(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Nothing can be installed on a root disk that is read-only."""
    index = _root(machine.spec)
    if index is not None and machine.spec.disks[index].accessMode == "ReadOnlyMany":
        yield finding.invalid(("spec", "disks", index, "accessMode"), "ReadOnlyMany", _WRITABLE, "vitistack/root-writable")


def _root(spec: "MachineSpec") -> int | None:
    """Return the index of the root disk in the machine's own list, or None."""
    names = [disk.name for disk in spec.disks]
    if spec.template:
        return names.index(ROOT_DISK) if ROOT_DISK in names else None
    return effective.root_index(names)


RULES = (disk_names_are_free, sizes_are_given, root_is_writable)
