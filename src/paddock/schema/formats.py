"""Named syntaxes of string fields: one check, one sentence for the user, one pattern for generated schemas."""

import ipaddress
import re
from collections.abc import Callable

import msgspec

from paddock.base import duration, names


class Format(msgspec.Struct, frozen=True):
    """A syntax. `pattern` and `max_length` are what a CRD can say of it; `accepts` is the whole truth."""

    name: str
    accepts: Callable[[str], bool]
    message: str
    pattern: str = ""
    max_length: int | None = None


_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_OCTET = r"(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = rf"({_OCTET}\.){{3}}{_OCTET}"
_MAC = re.compile(r"([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}\Z", re.ASCII)
_ENV_KEY = re.compile(r"[-._a-zA-Z0-9]+\Z", re.ASCII)


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_cidr4(text: str) -> bool:
    try:
        ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def _is_cidr(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def _is_namespaced_name(text: str) -> bool:
    namespace, slash, name = text.rpartition("/")
    return names.is_subdomain(name) and (not slash or names.is_label(namespace))


FORMATS = {
    form.name: form
    for form in (
        Format("dns1123-label", names.is_label, "must be a DNS-1123 label", rf"^{_LABEL}$", 63),
        Format("dns1123-subdomain", names.is_subdomain, "must be a DNS-1123 subdomain", rf"^{_LABEL}(\.{_LABEL})*$", 253),
        Format(
            "namespaced-name",
            _is_namespaced_name,
            "must be a name or namespace/name",
            rf"^({_LABEL}/)?{_LABEL}(\.{_LABEL})*$",
            317,
        ),
        Format("label-key", names.is_qualified, "must be a label key: name or prefix/name"),
        Format("label-value", names.is_label_value, "must be a label value: letters, digits, '-', '_' and '.', at most 63"),
        Format("duration", duration.is_duration, "must be a duration such as 30s, 5m or 1h30m"),
        Format("ipv4", _is_ipv4, "must be an IPv4 address", rf"^{_IPV4}$"),
        Format("ip", _is_ip, "must be an IP address"),
        Format("cidr4", _is_cidr4, "must be an IPv4 network such as 10.0.0.0/24", rf"^{_IPV4}/(3[0-2]|[12]?[0-9])$"),
        Format("cidr", _is_cidr, "must be a network such as 10.0.0.0/24"),
        Format(
            "mac",
            lambda text: _MAC.match(text) is not None,
            "must be a MAC address: six hexadecimal pairs",
            "^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$",
        ),
        Format(
            "data-key",
            lambda text: _ENV_KEY.match(text) is not None,
            "must consist of letters, digits, '-', '_' and '.'",
            "^[-._a-zA-Z0-9]+$",
            253,
        ),
        Format("date-time", lambda text: True, "must be an RFC 3339 time"),
    )
}
