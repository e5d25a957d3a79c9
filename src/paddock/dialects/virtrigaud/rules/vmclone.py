"""The rules of VirtRigaud's VMClone."""

import ipaddress
from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.dialects.virtrigaud.rules import machine
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, rule

if TYPE_CHECKING:
    from paddock.dialects.virtrigaud.kinds.vmclone import Password, VMClone

SOURCES = ("vmRef", "snapshotRef", "templateRef", "imageRef")
SOURCE = "virtrigaud/clone-source"
ADDRESSES = "virtrigaud/clone-address"
SECRETS = "virtrigaud/clone-secret"
CUSTOMIZATION: Path = ("spec", "customization")
_GIVEN = "[has(self.vmRef), has(self.snapshotRef), has(self.templateRef), has(self.imageRef)].filter(given, given).size()"
_ONE = "exactly one of vmRef, snapshotRef, templateRef and imageRef"


@rule(
    SOURCE,
    Cel("spec.source", f"{_GIVEN} >= 1", _ONE, "", "FieldValueRequired"),
    Cel("spec.source", f"{_GIVEN} <= 1", _ONE, "", "FieldValueForbidden"),
)
def one_source(clone: "VMClone", settings: AdmissionSettings) -> Iterator[Finding]:
    """A clone has exactly one source."""
    given = [name for name in SOURCES if getattr(clone.spec.source, name) is not None]
    if not given:
        yield finding.required(("spec", "source"), SOURCE, _ONE)
    for extra in given[1:]:
        yield finding.forbidden(("spec", "source", extra), f"{_ONE}, and {given[0]} is given", SOURCE)


@rule(machine.NETWORK_REF)
def network_refs(clone: "VMClone", settings: AdmissionSettings) -> Iterator[Finding]:
    """A network card of the new machine without a VMNetworkAttachment is on the default network of its Provider (a warning)."""
    yield from machine.network_refs(clone.spec.target.networks, ("spec", "target", "networks"), settings)


@rule(machine.STATIC_ADDRESS)
def static_addresses(clone: "VMClone", settings: AdmissionSettings) -> Iterator[Finding]:
    """prefix, gateway and dns of a card belong to a static address."""
    yield from machine.static_addresses(clone.spec.target.networks, ("spec", "target", "networks"), settings)


@rule(machine.USER_DATA, Cel("spec.customization.userData", *machine.USER_DATA_CEL))
def user_data(clone: "VMClone", settings: AdmissionSettings) -> Iterator[Finding]:
    """A guest reads cloud-init or Ignition, not both."""
    if clone.spec.customization is not None:
        yield from machine.user_data(clone.spec.customization.userData, (*CUSTOMIZATION, "userData"), settings)


@rule(ADDRESSES)
def addresses_make_sense(clone: "VMClone", settings: AdmissionSettings) -> Iterator[Finding]:
    """A net mask is one, and a card has a static address with what belongs to it, or DHCP (which is a warning)."""
    cards = clone.spec.customization.networks if clone.spec.customization is not None else None
    for index, nic in enumerate(cards or ()):
        path = (*CUSTOMIZATION, "networks", index)
        if nic.subnetMask and not _is_mask(nic.subnetMask):
            yield finding.invalid((*path, "subnetMask"), nic.subnetMask, "must be a net mask such as 255.255.255.0", ADDRESSES)
        if nic.dhcp and nic.ipAddress:
            yield finding.warning((*path, "ipAddress"), "has no effect with dhcp", ADDRESSES)
        if nic.dhcp or not nic.ipAddress:
            why = "with dhcp" if nic.dhcp else "without ipAddress"
            for member in ("subnetMask", "gateway", "dns"):
                if getattr(nic, member):
                    yield finding.warning((*path, member), f"has no effect {why}", ADDRESSES)
        for position, server in enumerate(nic.dns or ()):
            if not _is_address(server):
                yield finding.invalid((*path, "dns", position), server, "must be an IP address", ADDRESSES)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_mask(text: str) -> bool:
    """Return whether a net mask has its ones before its zeros; the schema reports text that is no IPv4 address."""
    try:
        inverse = int(ipaddress.IPv4Address(text)) ^ 0xFFFFFFFF
    except ValueError:
        return True
    return inverse & (inverse + 1) == 0


@rule(SECRETS)
def secrets_are_given_once(clone: "VMClone", settings: AdmissionSettings) -> Iterator[Finding]:
    """A password and a certificate are given here or in a Secret (a warning)."""
    custom = clone.spec.customization
    if custom is None:
        return
    for index, certificate in enumerate(custom.certificates or ()):
        if not certificate.data and certificate.secretRef is None:
            path = (*CUSTOMIZATION, "certificates", index)
            yield finding.warning(path, "neither data nor secretRef: no clone is made without one of them", SECRETS)
    if custom.sysprep is None:
        return
    if not custom.sysprep.enabled:
        yield finding.warning((*CUSTOMIZATION, "sysprep"), "has no effect while enabled is false", SECRETS)
    if custom.sysprep.adminPassword is not None:
        yield from _password(custom.sysprep.adminPassword, (*CUSTOMIZATION, "sysprep", "adminPassword"))
    if custom.sysprep.joinDomain is not None:
        yield from _password(custom.sysprep.joinDomain.password, (*CUSTOMIZATION, "sysprep", "joinDomain", "password"))


def _password(password: "Password", path: Path) -> Iterator[Finding]:
    if password.value and password.secretRef is not None:
        yield finding.warning((*path, "value"), "secretRef is given, too, and is taken", SECRETS)
    elif not password.value and password.secretRef is None:
        yield finding.warning(path, "neither value nor secretRef: there is no password", SECRETS)


@rule(machine.TIMEOUT)
def timeouts_are_not_negative(clone: "VMClone", settings: AdmissionSettings) -> Iterator[Finding]:
    """Timeouts and delays are not negative."""
    options = clone.spec.options
    if options is not None:
        yield from machine.not_negative(options.timeout, ("spec", "options", "timeout"))
        if options.retryPolicy is not None:
            path = ("spec", "options", "retryPolicy", "retryDelay")
            yield from machine.not_negative(options.retryPolicy.retryDelay, path)
    commands = clone.spec.customization.guestCommands if clone.spec.customization is not None else None
    for index, command in enumerate(commands or ()):
        yield from machine.not_negative(command.timeout, (*CUSTOMIZATION, "guestCommands", index, "timeout"))


RULES = (
    one_source,
    network_refs,
    static_addresses,
    user_data,
    addresses_make_sense,
    secrets_are_given_once,
    timeouts_are_not_negative,
)
