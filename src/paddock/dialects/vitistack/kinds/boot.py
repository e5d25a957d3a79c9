"""The boot source of a machine, from its annotations and `spec.os` (docs/spec/vitistack.md section 5.3)."""

from typing import TYPE_CHECKING

from paddock.base import quantity
from paddock.dialects.vitistack.kinds import marks

if TYPE_CHECKING:
    from paddock.dialects.vitistack.kinds.machine import Machine

UNKNOWN_ISO_SIZE = "8Gi"
_GI = 2**30


def annotation(machine: "Machine", key: str) -> str:
    """An annotation of the machine; empty when it has none."""
    return (machine.metadata.annotations or {}).get(key, "")


def iso_url(machine: "Machine") -> str:
    """The installation image that goes into the CD-ROM; empty when there is none, or no longer."""
    os = machine.spec.os
    if os is None or "true" in (annotation(machine, marks.OS_INSTALLED), annotation(machine, marks.CDROM_EJECTED)):
        return ""
    image = os.imageID if annotation(machine, marks.BOOT_SOURCE) == marks.DATA_VOLUME else None
    return os.isoUri or image or ""


def is_iso_of_registry(machine: "Machine") -> bool:
    """Return whether the installation image comes from a registry instead of a web server."""
    os = machine.spec.os
    return annotation(machine, marks.BOOT_SOURCE_TYPE) == "registry" and not (os is not None and os.isoUri)


def iso_size(machine: "Machine") -> str:
    """Room for the installation image: a tenth more than its size, in whole Gi; 8Gi when nobody knows it."""
    given = annotation(machine, marks.BOOT_SOURCE_SIZE)
    if not quantity.is_quantity(given):
        return UNKNOWN_ISO_SIZE
    return f"{-(-quantity.whole(given) * 11 // (10 * _GI))}Gi"


def root_image(machine: "Machine") -> str:
    """The image that the root disk starts with; empty when it starts blank."""
    return annotation(machine, marks.ROOT_IMAGE)


def is_stopped(machine: "Machine") -> bool:
    """Return whether the machine is declared to be off."""
    return annotation(machine, marks.POWER_STATE) == "stopped"
