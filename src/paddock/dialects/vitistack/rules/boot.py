"""The boot source of a machine, and the annotations that set it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.base import quantity
from paddock.dialects.vitistack.kinds import boot, marks, ownform
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, rule

if TYPE_CHECKING:
    from paddock.dialects.vitistack.kinds.machine import Machine

_IMAGE: Path = ("spec", "os", "imageID")
_HTTP = ("http://", "https://")
_REGISTRY = ("docker://", "oci-archive://")


def _at(annotation: str) -> Path:
    return ("metadata", "annotations", annotation)


@rule("vitistack/annotations")
def annotations_are_understood(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Annotations that do something have a value that does."""
    given = machine.metadata.annotations or {}
    power = given.get(marks.POWER_STATE)
    if power is not None and power not in marks.POWER_STATES:
        yield finding.unsupported(_at(marks.POWER_STATE), power, marks.POWER_STATES, "vitistack/annotations")
    image = given.get(marks.ROOT_IMAGE)
    if image is not None and not _is_image(image):
        why = "must start with http://, https:// or docker://"
        yield finding.invalid(_at(marks.ROOT_IMAGE), image, why, "vitistack/annotations")
    kind = given.get(marks.BOOT_SOURCE_TYPE)
    if kind is not None and kind not in marks.BOOT_SOURCE_TYPES:
        yield finding.unsupported(_at(marks.BOOT_SOURCE_TYPE), kind, marks.BOOT_SOURCE_TYPES, "vitistack/annotations")
    size = given.get(marks.BOOT_SOURCE_SIZE)
    if size is not None and not (quantity.is_quantity(size) and quantity.parse(size) > 0):
        yield finding.invalid(_at(marks.BOOT_SOURCE_SIZE), size, "not a Kubernetes quantity above 0", "vitistack/annotations")


def _is_image(address: str) -> bool:
    return any(address.startswith(scheme) and len(address) > len(scheme) for scheme in marks.IMAGE_SCHEMES)


@rule("vitistack/boot-source")
def boot_source_is_complete(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """An installation image needs its annotation, the annotation its image, and the address fits the way of fetching it."""
    image = machine.spec.os.imageID if machine.spec.os else None
    source = boot.annotation(machine, marks.BOOT_SOURCE)
    iso = machine.spec.os.isoUri if machine.spec.os else None
    if iso and not iso.startswith(_HTTP):
        yield finding.invalid(("spec", "os", "isoUri"), iso, "must be an http or https URL", "vitistack/boot-source")
    elif iso and image:
        yield finding.warning(_IMAGE, "has no effect beside isoUri", "vitistack/boot-source")
    elif image and source != marks.DATA_VOLUME:
        text = f"has no effect without the annotation {marks.BOOT_SOURCE}: {marks.DATA_VOLUME}"
        yield finding.warning(_IMAGE, text, "vitistack/boot-source")
    elif source and source != marks.DATA_VOLUME:
        text = f'"{source}" has no effect here; {marks.DATA_VOLUME} is known'
        yield finding.warning(_at(marks.BOOT_SOURCE), text, "vitistack/boot-source")
    elif source and not image and not iso:
        yield finding.warning(_at(marks.BOOT_SOURCE), "has no effect without spec.os.imageID", "vitistack/boot-source")
    elif image and not boot.is_iso_of_registry(machine) and not image.startswith(_HTTP):
        yield finding.invalid(_IMAGE, image, "must be an http or https URL", "vitistack/boot-source")
    elif image and boot.is_iso_of_registry(machine) and "://" in image and not image.startswith(_REGISTRY):
        yield finding.invalid(_IMAGE, image, "must be the name of an image in a registry", "vitistack/boot-source")


@rule("vitistack/boot-order")
def cdrom_exists(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Booting from a CD-ROM needs one (a warning): it comes with an installation image."""
    for index, name in enumerate(machine.spec.bootOrder or ()):
        if name == "cdrom" and not boot.iso_url(machine):
            text = f"there is no CD-ROM to boot from: give spec.os.imageID and the annotation {marks.BOOT_SOURCE}: {marks.DATA_VOLUME}"
            yield finding.warning(("spec", "bootOrder", index), text, "vitistack/boot-order")


@rule("vitistack/no-boot-source")
def something_boots(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """The root disk starts blank unless the machine names its content (a note)."""
    if boot.root_image(machine) or boot.iso_url(machine) or "network" in (machine.spec.bootOrder or ()) or ownform.is_own(machine.spec):
        return
    text = (
        f"the root disk starts blank and nothing else can be booted: name an image in the annotation {marks.ROOT_IMAGE}, "
        "an installation image in spec.os.imageID, or boot from the network"
    )
    yield finding.note(("spec",), text, "vitistack/no-boot-source")


RULES = (annotations_are_understood, boot_source_is_complete, cdrom_exists, something_boots)
