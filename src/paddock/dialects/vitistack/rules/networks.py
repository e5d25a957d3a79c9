from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.dialects.vitistack.kinds import macs
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, rule

if TYPE_CHECKING:
    from paddock.dialects.vitistack.kinds.machine import Machine

_UNICAST = "low bit of the first octet must be 0"
_NOT_ZERO = "must not be all zero"


@rule(
    "vitistack/mac",
    Cel(
        "spec.networks[]",
        "!has(self.macAddress) || self.macAddress.matches('^[0-9A-Fa-f][02468ACEace]')",
        _UNICAST,
        ".macAddress",
    ),
    Cel("spec.networks[]", "!has(self.macAddress) || self.macAddress.matches('[1-9A-Fa-f]')", _NOT_ZERO, ".macAddress"),
)
def addresses_are_usable(machine: "Machine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Addresses of cards are unicast, not all zero, and each stands once in a machine."""
    seen: set[str] = set()
    for index, network in enumerate(machine.spec.networks):
        given = network.macAddress
        if given is None or not macs.is_address(given):
            continue
        path = ("spec", "networks", index, "macAddress")
        address = macs.normal(given)
        if int(address[:2], 16) & 1:
            yield finding.invalid(path, given, _UNICAST, "vitistack/mac")
        elif not macs.is_usable(address):
            yield finding.invalid(path, given, _NOT_ZERO, "vitistack/mac")
        if address in seen:
            yield finding.duplicate(path, given, "vitistack/mac")
        seen.add(address)


RULES = (addresses_are_usable,)
