"""The formats of parameter values, and the comma-separated property strings ("local:32,format=qcow2")."""

import ipaddress
import re
from collections.abc import Callable, Mapping
from typing import Any

Schema = Mapping[str, Any]
Format = Mapping[str, Schema]

_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_TEXT: Schema = {"type": "string", "optional": 1}
_FLAG: Schema = {"type": "boolean", "optional": 1}
_BASE64: Schema = {**_TEXT, "pattern": r"[A-Za-z0-9+\/]+={0,2}"}
_VOLUME: Schema = {**_TEXT, "format": "pve-volume-id"}


class FormatError(ValueError):
    """A value that is not of its format; the text is the reason that the API gives."""


def _pattern(pattern: str, reason: str) -> Callable[[str], None]:
    compiled = re.compile(pattern)

    def check(value: str) -> None:
        if not compiled.fullmatch(value):
            raise FormatError(reason.replace("{value}", value))

    return check


def _address(kind: Callable[[str], object], reason: str, *words: str, network: bool = False) -> Callable[[str], None]:
    def check(value: str) -> None:
        if value in words:
            return
        if network and not re.fullmatch(r"[^/]+/\d{1,3}", value):
            raise FormatError(reason)
        try:
            kind(value)
        except ValueError:
            raise FormatError(reason) from None

    return check


def _identifier(kind: str) -> Callable[[str], None]:
    def check(value: str) -> None:
        if len(value) < 2:
            raise FormatError(f"{kind} ID '{value}' cannot be shorter than 2 characters")
        if not re.fullmatch(r"(?i)[a-z][a-z0-9_.-]*[a-z0-9]", value):
            raise FormatError(f"{kind} ID '{value}' contains illegal characters")

    return check


_cidr4 = "value does not look like a valid ipv4 network configuration"
_cidr6 = "value does not look like a valid ipv6 network configuration"
_dns = _pattern(rf"(?:{_LABEL}\.)*{_LABEL}", "value does not look like a valid DNS name")
_volume = _pattern(r"(?i)[a-z][a-z0-9_.-]*[a-z0-9]:.+", "unable to parse volume ID '{value}'")


def _size(value: str) -> None:
    if parse_size(value) is None:
        raise FormatError(f"value does not look like a valid disk size: {value}")


def _name_or_address(value: str) -> None:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        try:
            _dns(value)
        except FormatError:
            raise FormatError(f"value does not look like a valid address: {value}") from None


def _path_or_volume(*words: str) -> Callable[[str], None]:
    def check(value: str) -> None:
        if value not in words and not value.startswith("/"):
            _volume(value)

    return check


def _hotplug(value: str) -> None:
    if value in ("0", "1"):
        return
    for feature in split_list(value):
        if not re.fullmatch("network|disk|cpu|memory|usb|cloudinit", feature):
            raise FormatError(f"unable to parse hotplug option '{value}'" if not feature else f"invalid hotplug feature '{feature}'")


def _startup(value: str) -> None:
    if not all(re.fullmatch(r"(order=)?\d+|up=\d+|down=\d+", part) for part in value.split(",") if part.strip()):
        raise FormatError("unable to parse startup options")


def _boot_device(value: str) -> None:
    if not is_drive(value) and not re.fullmatch(r"(net|usb|hostpci)\d+", value):
        raise FormatError(f"invalid boot device '{value}'")


CHECKS: Mapping[str, Callable[[str], None]] = {
    "pve-node": _pattern(_LABEL, "value does not look like a valid node name"),
    "pve-vmid": _pattern(r"[1-9][0-9]{2,8}", "value does not look like a valid VM ID"),
    "pve-storage-id": _identifier("storage"),
    "pve-configid": _pattern(r"(?i)[a-z][a-z0-9_-]+", "invalid configuration ID '{value}'"),
    "pve-bridge-id": _pattern(r"[-_.\w\d]+", "invalid bridge ID '{value}'"),
    "pve-poolid": _pattern(r"[A-Za-z0-9._-]+(?:/[A-Za-z0-9._-]+){0,2}", "pool name '{value}' contains invalid characters"),
    "pve-userid": _pattern(r"[^\s:/]+@[A-Za-z][A-Za-z0-9._-]+", "value '{value}' does not look like a valid user name"),
    "pve-tokenid": _pattern(r"[^\s:/]+@[A-Za-z][A-Za-z0-9._-]+![A-Za-z][A-Za-z0-9._-]+", "value '{value}' is no valid token ID"),
    "pve-realm": _pattern(r"[A-Za-z][A-Za-z0-9._-]+", "value does not look like a valid realm"),
    "pve-volume-id": _volume,
    "pve-volume-id-or-absolute-path": _path_or_volume(),
    "pve-volume-id-or-qm-path": _path_or_volume("none", "cdrom"),
    "pve-iface": _pattern(r"(?i)[a-z][a-z0-9_]{1,20}([:.]\d+)?", "invalid network interface name '{value}'"),
    "pve-storage-content": _pattern("images|rootdir|vztmpl|iso|backup|snippets|import|none", "invalid content type '{value}'"),
    "pve-tag": _pattern(r"(?i)[a-z0-9_][a-z0-9_\-+.]*", "invalid characters in tag"),
    "pve-task-status-type": _pattern("(?i)ok|error|warning|unknown", "invalid status '{value}'"),
    "pve-priv": _pattern(r"[A-Z][A-Za-z.]+", "invalid privilege '{value}'"),
    "pve-cpuset": _pattern(r"\d+(-\d+)?(,\d+(-\d+)?)*", "unable to parse cpuset option"),
    "pve-qm-bootdisk": _pattern(r"(ide|sata|scsi|virtio)\d+", "invalid boot disk '{value}'"),
    "pve-qm-bootdev": _boot_device,
    "pve-hotplug-features": _hotplug,
    "pve-startup-order": _startup,
    "mac-addr": _pattern(r"(?i)[a-f0-9][02468ace](?::[a-f0-9]{2}){5}", "value does not look like a valid unicast MAC address"),
    "dns-name": _dns,
    "address": _name_or_address,
    "ipv4": _address(ipaddress.IPv4Address, "value does not look like a valid IPv4 address"),
    "ipv6": _address(ipaddress.IPv6Address, "value does not look like a valid IPv6 address"),
    "ip": _address(ipaddress.ip_address, "value does not look like a valid IP address"),
    "pve-ipv4-config": _address(ipaddress.IPv4Interface, _cidr4, "dhcp", "manual", network=True),
    "pve-ipv6-config": _address(ipaddress.IPv6Interface, _cidr6, "auto", "dhcp", "manual", network=True),
    "disk-size": _size,
    "urlencoded": _pattern(r"[-%a-zA-Z0-9_.!~*'()]*", "invalid urlencoded string: {value}"),
}
# Formats that are property strings and that the published tree only names.
NAMED: Mapping[str, Format] = {
    "pve-qm-ipconfig": {
        "ip": {**_TEXT, "format": "pve-ipv4-config"},
        "gw": {**_TEXT, "format": "ipv4", "requires": "ip"},
        "ip6": {**_TEXT, "format": "pve-ipv6-config"},
        "gw6": {**_TEXT, "format": "ipv6", "requires": "ip6"},
    },
    "pve-qm-boot": {
        "legacy": {**_TEXT, "default_key": 1, "pattern": "[acdn]{1,4}"},
        "order": {**_TEXT, "format": "pve-qm-bootdev-list"},
    },
    "pve-qm-cicustom": {"meta": _VOLUME, "network": _VOLUME, "user": _VOLUME, "vendor": _VOLUME},
    "pve-qm-smbios1": {
        "uuid": {**_TEXT, "pattern": "[a-fA-F0-9]{8}(?:-[a-fA-F0-9]{4}){3}-[a-fA-F0-9]{12}"},
        **dict.fromkeys(("version", "serial", "manufacturer", "product", "sku", "family"), _BASE64),
        "base64": _FLAG,
    },
    "pve-qm-watchdog": {
        "model": {**_TEXT, "default_key": 1, "enum": ["i6300esb", "ib700"]},
        "action": {**_TEXT, "enum": ["reset", "shutdown", "poweroff", "pause", "debug", "none"]},
    },
    "pve-qm-rng": {
        "source": {"type": "string", "default_key": 1, "enum": ["/dev/urandom", "/dev/random", "/dev/hwrng"]},
        "max_bytes": {"type": "integer", "optional": 1},
        "period": {"type": "integer", "optional": 1},
    },
    "pve-vm-cpu-conf": {
        "cputype": {**_TEXT, "default_key": 1},
        "reported-model": _TEXT,
        "hidden": _FLAG,
        "hv-vendor-id": {**_TEXT, "pattern": "[a-zA-Z0-9]{1,12}"},
        "flags": {**_TEXT, "pattern": r"[+-][a-zA-Z0-9_.-]+(;[+-][a-zA-Z0-9_.-]+)*"},
        "guest-phys-bits": {"type": "integer", "optional": 1, "minimum": 32, "maximum": 64},
        "phys-bits": _TEXT,
        "level": {"type": "integer", "optional": 1, "minimum": 0},
    },
}
# How many devices of a kind a machine can have.
DRIVES: Mapping[str, int] = {"ide": 4, "scsi": 31, "virtio": 16, "sata": 6, "efidisk": 1, "tpmstate": 1}
INDEXED: Mapping[str, int] = {
    **DRIVES,
    "net": 32,
    "ipconfig": 32,
    "unused": 256,
    "serial": 4,
    "parallel": 3,
    "usb": 14,
    "hostpci": 16,
    "numa": 8,
    "virtiofs": 10,
}


def is_drive(key: str) -> bool:
    """Return True for the key of a drive: scsi0 to scsi30, efidisk0 and so on."""
    match = re.fullmatch(r"([a-z]+)(0|[1-9]\d*)", key)
    return match is not None and int(match[2]) < DRIVES.get(match[1], 0)


def split_list(value: str) -> list[str]:
    """Return the entries of a list, separated by commas, semicolons, blanks or nulls."""
    return [part for part in re.split(r"[\0,;\s]+", value) if part]


def parse_size(value: str) -> int | None:
    """Return the bytes of "32G", or None."""
    if not (match := re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT](?:iB)?)?", value)):
        return None
    return int(float(match[1]) * 1024 ** (" KMGT".index(match[2][0]) if match[2] else 0))


def format_size(size: int) -> str:
    """Return the shortest exact text of a size."""
    for unit in ("", "K", "M", "G"):
        if size % 1024:
            return f"{size}{unit}"
        size //= 1024
    return f"{size}T"


def parse_boolean(value: str) -> str:
    """Return "1" or "0" for the words that property strings accept, and anything else as it is."""
    word = value.lower()
    return "1" if word in ("1", "on", "yes", "true") else "0" if word in ("0", "off", "no", "false") else value


def parse_properties(format: Format, text: str) -> dict[str, str]:
    """Return the members of a property string without checking their values; aliases have their real names."""
    found: dict[str, str] = {}
    default = next((name for name, schema in format.items() if schema.get("default_key")), "")
    for part in text.split(","):
        if not part.strip():
            continue
        name, equals, value = part.partition("=")
        if not equals:
            if not default:
                raise FormatError("value without key, but schema does not define a default key")
            name, value = default, part
        elif not name or not value:
            raise FormatError("missing key in comma-separated list property")
        if name in found:
            raise FormatError(f"duplicate key in comma-separated list property: {name}")
        if name in format and (alias := format[name].get("alias")):
            if kind := format[name].get("keyAlias"):
                found[kind] = name
            name = alias
        if name not in format:
            raise FormatError(f"invalid key in comma-separated list property: {name}")
        found[name] = parse_boolean(value) if format[name].get("type") == "boolean" else value
    return found
