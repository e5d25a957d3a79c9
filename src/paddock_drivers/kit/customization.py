"""The customization of a clone as a request describes it. Pure."""

import ipaddress
from typing import Any

import msgspec

from paddock.base import names, quantity
from paddock.contract import payloads
from paddock.contract.payloads import ClassPayload, NetworkPayload
from paddock_drivers.kit import refusals

_MIB = 1 << 20
# Without these the clone would not be what was asked for.
_REFUSED = ("sysprep", "guestCommands", "certificates")
_IGNORED = ("domain", "timeZone", "tags")


class CloneCustomization(msgspec.Struct, frozen=True, kw_only=True):
    """The differences of a clone from its source."""

    hardware: ClassPayload | None = None
    hostname: str = ""
    networks: tuple[NetworkPayload, ...] = ()
    user_data: bytes = b""
    limitations: tuple[str, ...] = ()
    # the snapshot that the disks are copied from; empty: the machine as it is
    snapshot: str = ""
    # the VirtualMachine of the manager that the clone is for
    whose: str = ""

    def __repr__(self) -> str:
        return f"CloneCustomization(hostname={self.hostname!r})"


def read(class_json: str, customize_json: str, *, obeyed: frozenset[str] = frozenset()) -> CloneCustomization:
    """Return what a request asks for; raises InvalidSpec and NotSupported.

    `obeyed` names the members that the driver reads itself, so that they are neither refused nor a limitation.
    """
    given = payloads.decode_manifest(customize_json)
    refused = next((name for name in _REFUSED if name not in obeyed and given.get(name) and _is_on(given[name])), None)
    if refused is not None:
        raise refusals.not_supported(
            f"a clone cannot be customized with {refused}", why="the hypervisor runs nothing in guests", fix="use userData"
        )
    hostname = given.get("hostname") or ""
    if not isinstance(hostname, str) or (hostname and not names.is_label(hostname)):
        raise refusals.invalid("customization.hostname cannot be the name of a host", fix="use lower-case letters, digits and '-'")
    left = [name for name in _IGNORED if name not in obeyed and given.get(name)]
    ignored = tuple(f"customization.{name}: the hypervisor has no field for it; say it in userData" for name in left)
    return CloneCustomization(
        hardware=_class(class_json),
        hostname=hostname,
        networks=tuple(_network(each) for each in given.get("networks") or () if isinstance(each, dict)),
        user_data=_document(given.get("userData")),
        limitations=ignored,
        snapshot=str(given.get("snapshotId") or ""),
    )


def _is_on(value: Any) -> bool:
    return not isinstance(value, dict) or value.get("enabled", True) is not False


def _class(text: str) -> ClassPayload | None:
    """The size of the clone, in the words of the contract or of a VMClass."""
    given = payloads.decode_manifest(text)
    if not given:
        return None
    memory = given.get("memory")
    if "MemoryMiB" not in given and isinstance(memory, str | int) and quantity.is_quantity(memory):
        given = {**given, "MemoryMiB": quantity.whole(memory) // _MIB}
    known = {"CPU", "cpu", "MemoryMiB", "Firmware", "firmware", "PerformanceProfile", "ResourceLimits"}
    found = payloads.decode(msgspec.json.encode({key: value for key, value in given.items() if key in known}).decode(), ClassPayload)
    if found.cpu < 1 or found.memory_mib < 1:
        raise refusals.invalid("the class of the clone has no size", why="it says no CPU or no MemoryMiB")
    return found


def _network(given: dict[str, Any]) -> NetworkPayload:
    mask = given.get("subnetMask") or ""
    try:
        prefix = ipaddress.IPv4Network(f"0.0.0.0/{mask}").prefixlen if mask else 0
    except ValueError as error:
        raise refusals.invalid(f'customization.networks: "{mask}" is no subnet mask') from error
    static = "" if given.get("dhcp") else str(given.get("ipAddress") or "")
    return NetworkPayload(
        name=str(given.get("name") or ""),
        static_ip=static,
        prefix=prefix,
        gateway=str(given.get("gateway") or ""),
        dns=",".join(str(each) for each in given.get("dns") or ()),
        mac_address=str(given.get("macAddress") or ""),
    )


def _document(document: Any) -> bytes:
    """A document for the guest: written plainly, or as a VirtualMachine has it."""
    if isinstance(document, str):
        return document.encode()
    for kind in ("cloudInit", "ignition"):
        part = document.get(kind) if isinstance(document, dict) else None
        if isinstance(part, dict) and part.get("inline"):
            return str(part["inline"]).encode()
        if isinstance(part, dict) and part.get("secretRef"):
            raise refusals.not_supported("a clone's document cannot be in a Secret", why="the contract carries none", fix="send it inline")
    return b""
