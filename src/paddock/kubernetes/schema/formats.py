"""Named syntaxes of string fields: one check, one sentence for the user, one pattern for generated schemas."""

import datetime
import ipaddress
import re
from collections.abc import Callable
from functools import cache

import msgspec

from paddock.base import duration, names


class Format(msgspec.Struct, frozen=True):
    """A syntax. `accepts` is the whole truth; `pattern`, `max_length` and `native` are what a generated schema can say of it.

    `native` names formats that a kube-apiserver knows by itself; one of them has to fit.
    """

    name: str
    accepts: Callable[[str], bool]
    message: str
    pattern: str = ""
    max_length: int | None = None
    native: tuple[str, ...] = ()


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A declared pattern as a kube-apiserver (RE2) and an editor (ECMAScript) read it: ASCII classes, and `$` only at the very end."""
    text, in_class, escaped = "", False, False
    for char in pattern:
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char == "$":
            # Python's own `$` also fits before a line break at the end.
            char = r"\Z"
        text += char
    return re.compile(text, re.ASCII)


_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_OCTET = r"(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = rf"({_OCTET}\.){{3}}{_OCTET}"
_MAC = "^([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$"
# Keys become file names, and two dots lead out of a directory.
_DATA_KEY = r"^(\.?[-_a-zA-Z0-9])[-._a-zA-Z0-9]*$"
_DURATION = r"^[-+]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)\Z", re.ASCII)
_PREFIX_LENGTH = re.compile(r"(0|[1-9][0-9]{0,2})\Z", re.ASCII)


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
    # A zone means something on one host only.
    return "%" not in text


def _is_network(text: str, address: Callable[[str], bool]) -> bool:
    """An address, a slash and a prefix length; Python's own reading also takes net masks."""
    before, slash, length = text.partition("/")
    if not slash or not address(before) or _PREFIX_LENGTH.match(length) is None:
        return False
    return int(length) <= (128 if ":" in before else 32)


def _is_namespaced_name(text: str) -> bool:
    namespace, slash, name = text.rpartition("/")
    return names.is_subdomain(name) and (not slash or names.is_label(namespace))


def _is_time(text: str) -> bool:
    match = _TIME.match(text)
    if match is None:
        return False
    try:
        datetime.date.fromisoformat(match[1])
    except ValueError:
        return False
    return True


def _is_mac(text: str) -> bool:
    return compiled(_MAC).search(text) is not None


# As container runtimes read them; the first part is a registry if it looks like a host.
_HOST = r"((localhost|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?|[A-Za-z0-9-]+:[0-9]{1,5})"
_PATH = r"[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*"
_DIGEST = "(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})"
_IMAGE = rf"^((docker://)?({_HOST}/)?{_PATH}(/{_PATH})*(:[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(@{_DIGEST})?)?$"


def _is_image(text: str) -> bool:
    return len(text) <= 1024 and compiled(_IMAGE).search(text) is not None


def _is_data_key(text: str) -> bool:
    return len(text) <= 253 and compiled(_DATA_KEY).search(text) is not None


FORMATS = {
    form.name: form
    for form in (
        Format("dns1123-label", names.is_label, "must be a DNS-1123 label", f"^{_LABEL}$", 63),
        Format("dns1123-subdomain", names.is_subdomain, "must be a DNS-1123 subdomain", f"^{_SUBDOMAIN}$", 253),
        Format(
            "namespaced-name",
            _is_namespaced_name,
            "must be a name or namespace/name",
            rf"^({_LABEL}/)?{_SUBDOMAIN}$",
            317,
        ),
        Format("label-key", names.is_qualified, "must be a label key: name or prefix/name", rf"^({_SUBDOMAIN}/)?{_QUALIFIED}$", 317),
        Format(
            "label-value",
            names.is_label_value,
            "must be a label value: letters, digits, '-', '_' and '.', at most 63",
            rf"^({_QUALIFIED})?$",
            63,
        ),
        Format("duration", duration.is_duration, "must be a duration such as 30s, 5m or 1h30m", _DURATION, duration.LONGEST),
        Format("ipv4", _is_ipv4, "must be an IPv4 address without leading zeros, such as 192.0.2.1", rf"^{_IPV4}$", 15),
        Format("ip", _is_ip, "must be an IP address", max_length=45, native=("ipv4", "ipv6")),
        Format(
            "cidr4",
            lambda text: _is_network(text, _is_ipv4),
            "must be an IPv4 network such as 10.0.0.0/24",
            rf"^{_IPV4}/(3[0-2]|[12]?[0-9])$",
            18,
        ),
        Format(
            "cidr",
            lambda text: _is_network(text, _is_ip),
            "must be a network such as 10.0.0.0/24",
            max_length=49,
            native=("cidr",),
        ),
        Format("mac", _is_mac, "must be a MAC address: six hexadecimal pairs", _MAC, 17),
        Format("image", _is_image, "must name a container image such as quay.io/containerdisks/fedora:latest", _IMAGE, 1024),
        Format("data-key", _is_data_key, "must consist of letters, digits, '-', '_' and '.'", _DATA_KEY, 253),
        Format("date-time", _is_time, "must be an RFC 3339 time such as 2026-01-31T12:00:00Z", native=("date-time",)),
    )
}
