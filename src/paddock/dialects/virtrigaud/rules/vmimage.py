"""The rules of VirtRigaud's VMImage."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.dialects.virtrigaud.rules import machine
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, rule

if TYPE_CHECKING:
    from paddock.dialects.virtrigaud.kinds.vmimage import VMImage

SOURCE: Path = ("spec", "source")
BLOCKS = ("vsphere", "libvirt", "proxmox", "http", "registry", "dataVolume")
# What a block has to name for a provider to find something.
_LOCATIONS = {
    "vsphere": ("templateName", "contentLibrary", "ovaURL"),
    "libvirt": ("path", "url"),
    "proxmox": ("templateID", "templateName"),
}
_DIGITS = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128}
_LOGINS = ("basicAuth", "bearer", "clientCert")
SOURCE_RULE = "virtrigaud/image-source"
AUTH = "virtrigaud/image-authentication"
CHECKSUM = "virtrigaud/image-checksum"


@rule(SOURCE_RULE)
def source_is_somewhere(image: "VMImage", settings: AdmissionSettings) -> Iterator[Finding]:
    """An image has at least one source, and each source names a place (warnings)."""
    source = image.spec.source
    if all(getattr(source, name) is None for name in BLOCKS):
        text = f"no source: give at least one of {', '.join(BLOCKS)}"
        yield finding.warning(SOURCE, text, SOURCE_RULE)
    for name, locations in _LOCATIONS.items():
        block = getattr(source, name)
        if block is not None and all(getattr(block, location) is None for location in locations):
            text = f"names no image: give {' or '.join(locations)}"
            yield finding.warning((*SOURCE, name), text, SOURCE_RULE)


@rule(
    AUTH,
    Cel(
        "spec.source.http.authentication",
        "[has(self.basicAuth), has(self.bearer), has(self.clientCert)].filter(given, given).size() <= 1",
        "only one of basicAuth, bearer and clientCert",
        "",
        "FieldValueForbidden",
    ),
)
def one_authentication(image: "VMImage", settings: AdmissionSettings) -> Iterator[Finding]:
    """There is one way to log in where the image is."""
    http = image.spec.source.http
    if http is None or http.authentication is None:
        return
    path = (*SOURCE, "http", "authentication")
    given = [name for name in _LOGINS if getattr(http.authentication, name) is not None]
    if not given:
        yield finding.warning(path, "names no way to log in: give basicAuth, bearer or clientCert", AUTH)
    for extra in given[1:]:
        why = f"only one of basicAuth, bearer and clientCert, and {given[0]} is given"
        yield finding.forbidden((*path, extra), why, AUTH)


@rule(CHECKSUM)
def checksums_have_their_length(image: "VMImage", settings: AdmissionSettings) -> Iterator[Finding]:
    """A checksum has as many hexadecimal digits as its type says (a warning)."""
    source = image.spec.source
    for name in ("vsphere", "libvirt", "http"):
        block = getattr(source, name)
        if block is None or not block.checksum or block.checksumType not in _DIGITS:
            continue
        digits = _DIGITS[block.checksumType]
        plain = block.checksum.removeprefix(f"{block.checksumType}:")
        if len(plain) != digits or not set(plain) <= set("0123456789abcdefABCDEF"):
            text = f"is no {block.checksumType} checksum: it has {digits} hexadecimal digits"
            yield finding.warning((*SOURCE, name, "checksum"), text, CHECKSUM)


@rule(machine.TIMEOUT)
def timeouts_are_not_negative(image: "VMImage", settings: AdmissionSettings) -> Iterator[Finding]:
    """The time that preparing or downloading may take is not negative."""
    if image.spec.prepare is not None:
        yield from machine.not_negative(image.spec.prepare.timeout, ("spec", "prepare", "timeout"))
    if image.spec.source.http is not None:
        yield from machine.not_negative(image.spec.source.http.timeout, (*SOURCE, "http", "timeout"))


RULES = (source_is_somewhere, one_authentication, checksums_have_their_length, timeouts_are_not_negative)
