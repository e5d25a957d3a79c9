"""Fields that cannot change once a machine is stored."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.base import quantity
from paddock.dialects.vitistack.kinds import ownform
from paddock.dialects.vitistack.kinds.effective import Effective, EffectiveDisk, effective
from paddock.dialects.vitistack.kinds.templates import BUILT_IN
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, transition

if TYPE_CHECKING:
    from paddock.dialects.vitistack.kinds.machine import Machine
    from paddock.dialects.vitistack.kinds.machinespec import MachineSpec

_IMMUTABLE = "field is immutable"
_CLASS = "(!has({0}.storageClass) || {0}.storageClass == '' ? 'default' : {0}.storageClass)"
_MODE = "(has({0}.accessMode) ? {0}.accessMode : 'ReadWriteOnce')"
_VOLUME = "(has({0}.volumeMode) ? {0}.volumeMode : '')"
_KEPT = ("storageClass", "accessMode", "volumeMode")


def _seen(spec: "MachineSpec") -> Effective:
    """Return the effective form as far as it is known here: without the disks of a MachineTemplate only the machine's own count."""
    return effective(spec.resources, ownform.disks(spec), BUILT_IN.get(spec.template or ""))


def _pairs(old: "Machine", new: "Machine") -> Iterator[tuple[EffectiveDisk, EffectiveDisk]]:
    """Disks that are there before and after."""
    before = {disk.name: disk for disk in _seen(old.spec).disks if disk.name}
    for disk in _seen(new.spec).disks:
        if disk.name in before:
            yield before[disk.name], disk


def _own(spec: "MachineSpec", name: str) -> int | None:
    return next((index for index, disk in enumerate(spec.disks) if disk.name == name), None)


@transition("vitistack/shrink")
def disks_do_not_shrink(old: "Machine", new: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """A disk grows or stays, whether its size is the machine's word or the template's."""
    for before, after in _pairs(old, new):
        if before.size is None or after.size is None or quantity.parse(after.size) >= quantity.parse(before.size):
            continue
        index = _own(new.spec, after.name)
        member = next((name for name in ("size", "sizeGB") if index is not None and getattr(new.spec.disks[index], name) is not None), None)
        if index is not None and member:
            yield finding.forbidden(("spec", "disks", index, member), "disks cannot shrink", "vitistack/shrink")
        else:
            why = f"{after.name} disk cannot shrink from {before.size} to {after.size}"
            path: Path = ("spec", "disks") if ownform.is_own(new.spec) else ("spec", "template")
            yield finding.forbidden(path, why, "vitistack/shrink")


@transition(
    "vitistack/immutable",
    *(
        Cel("spec.disks[]", f"{form.format('self')} == {form.format('oldSelf')}", _IMMUTABLE, f".{name}")
        for name, form in zip(_KEPT, (_CLASS, _MODE, _VOLUME), strict=True)
    ),
)
def claims_stay(old: "Machine", new: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """The class and the modes of a disk are those of its claim, which cannot change them."""
    for before, after in _pairs(old, new):
        index = _own(new.spec, after.name)
        for name in _KEPT:
            if getattr(before, name) != getattr(after, name):
                place: Path = ("spec", "disks") if index is None else ("spec", "disks", index, name)
                yield finding.invalid(place, getattr(after, name), _IMMUTABLE, "vitistack/immutable")


TRANSITIONS = (disks_do_not_shrink, claims_stay)
