"""What a translation may take for granted of disks that are there: their class is decided, whatever has become of it since."""

from collections.abc import Mapping

import msgspec

from paddock.dialects.core.storageclass import StorageClass
from paddock.dialects.vitistack import marks
from paddock.dialects.vitistack.effective import Effective
from paddock.dialects.vitistack.machine import Machine
from paddock.dialects.vitistack.marks import DEFAULT_CLASS
from paddock.meta.objects import ObjectMeta
from paddock.meta.rendering import Rendering
from paddock.plan.vitistack.claims import ExistingClaim


def decided_classes(merged: Effective, found: Mapping[str, ExistingClaim]) -> list[StorageClass]:
    """The classes of the claims that are there, by disk. A class that is gone is still the class of its claims."""
    names = {each.spec.storageClassName for each in found.values() if each.spec.storageClassName}
    if len(found) < len(merged.disks):
        # A disk that is still to be made gets the default of today.
        names.discard(DEFAULT_CLASS)
    return [StorageClass(metadata=ObjectMeta(name=name)) for name in sorted(names)]


def with_decided_default(rendering: Rendering, merged: Effective, found: Mapping[str, ExistingClaim]) -> Rendering:
    """What `default` stands for, when all disks that say it have their claims."""
    disks = [disk.name for disk in merged.disks if disk.storageClass == DEFAULT_CLASS]
    if not disks or any(name not in found for name in disks):
        return rendering
    return msgspec.structs.replace(rendering, default_storage_class=found[disks[0]].spec.storageClassName)


def without_image(machine: Machine) -> Machine:
    """The machine without the image of its root disk: the disk is there, and has what it has."""
    kept = {key: value for key, value in (machine.metadata.annotations or {}).items() if key != marks.ROOT_IMAGE}
    return msgspec.structs.replace(machine, metadata=msgspec.structs.replace(machine.metadata, annotations=kept))
