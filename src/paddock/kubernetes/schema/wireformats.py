"""The string formats that a kube-apiserver enforces (docs/spec/kube-api.md section 6.4)."""

import base64
import binascii
import datetime
import ipaddress
import re
from collections.abc import Callable
from functools import cached_property

from paddock.base import duration, names

Accepts = Callable[[str], bool]


class _Pattern:
    """A pattern that is compiled when a text first meets it: compiling all of these takes longer than many a start."""

    def __init__(self, text: str, flags: int = 0) -> None:
        self._text = text
        self._flags = flags

    @cached_property
    def match(self) -> "Callable[[str], re.Match[str] | None]":
        return re.compile(self._text, self._flags).match

    @cached_property
    def search(self) -> "Callable[[str], re.Match[str] | None]":
        return re.compile(self._text, self._flags).search


_LETTER = r"[a-zA-Z0-9¡-￿]"
_HOSTNAME = _Pattern(rf"(?:{_LETTER}(?:-?{_LETTER}{{0,62}})?|(?:{_LETTER}(?:[a-zA-Z0-9¡-￿-]{{0,61}}{_LETTER})?\.)+[a-zA-Z¡-￿]{{2,63}})\Z")
_MAC = _Pattern(
    r"(?:[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){5}|[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){7}|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4}){2,3}"
    r"|[0-9a-fA-F]{12}|[0-9a-fA-F]{2}(?:[:-][0-9a-fA-F]{2}){19})\Z"
)
_UUID = _Pattern(r"[0-9a-f]{8}-?[0-9a-f]{4}-?([0-9a-f])[0-9a-f]{3}-?([0-9a-f])[0-9a-f]{3}-?[0-9a-f]{12}\Z", re.IGNORECASE | re.ASCII)
_DATE = _Pattern(r"\d{4}-\d\d-\d\d\Z", re.ASCII)
_TIME = _Pattern(r"(\d{4}-\d\d-\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)\Z", re.ASCII)
_WORDY_DURATION = _Pattern(
    r"(\d+\s*(?:ns|nanoseconds?|us|µs|μs|micros?|microseconds?|ms|millis?|milliseconds?|s|secs?|seconds?|m|mins?|minutes?"
    r"|h|hours?|hrs?|d|days?|w|wks?|weeks?)\s*)+\Z",
    re.ASCII,
)
_EMAIL = _Pattern(r"[^\s@<>()\[\],;:\\\"]+@[^\s@<>()\[\],;:\\\"]+\Z")
_NAMED_EMAIL = _Pattern(r"[^<>]*<([^<>]+)>\s*\Z")
_RGB = _Pattern(r"rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)\Z", re.ASCII)
_URI = _Pattern(r"(?:[a-zA-Z][a-zA-Z0-9+.-]*:[^\s]*|/[^\s]*)\Z")
_BAD_ESCAPE = _Pattern(r"%(?![0-9a-fA-F]{2})")


def _fits(pattern: str) -> Accepts:
    found = _Pattern(rf"(?:{pattern})\Z", re.ASCII)
    return lambda text: found.match(text) is not None


def _uuid(version: str = "", variants: str = "0123456789abcdef") -> Accepts:
    def accepts(text: str) -> bool:
        match = _UUID.match(text)
        return match is not None and (not version or match[1] == version) and match[2].lower() in variants

    return accepts


def is_ipv4(text: str) -> bool:
    """Four decimal numbers; leading zeros are let pass, as they always were."""
    parts = text.split(".")
    return len(parts) == 4 and all(part.isascii() and part.isdigit() and len(part) <= 3 and int(part) <= 255 for part in parts)


def is_ipv6(text: str) -> bool:
    """An address of version 6 without a zone."""
    try:
        return "%" not in text and bool(ipaddress.IPv6Address(text))
    except ValueError:
        return False


def _is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    if not slash or not (length.isascii() and length.isdigit()) or len(length) > 3:
        return False
    return (is_ipv4(address) and int(length) <= 32) or (is_ipv6(address) and int(length) <= 128)


def _is_uri(text: str) -> bool:
    return _URI.match(text) is not None and _BAD_ESCAPE.search(text) is None


def _is_email(text: str) -> bool:
    named = _NAMED_EMAIL.match(text)
    return _EMAIL.match(named[1] if named else text) is not None


def _is_isbn10(text: str) -> bool:
    digits = text.replace("-", "").replace(" ", "")
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    return sum((index + 1) * (10 if digit == "X" else int(digit)) for index, digit in enumerate(digits)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = text.replace("-", "").replace(" ", "")
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    return sum((3 if index % 2 else 1) * int(digit) for index, digit in enumerate(digits)) % 10 == 0


def _is_creditcard(text: str) -> bool:
    digits = re.sub(r"[^0-9]+", "", text)
    if not 12 <= len(digits) <= 19:
        return False
    total = 0
    for index, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if index % 2 else 1)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _is_base64(text: str) -> bool:
    try:
        return bool(text) and bool(base64.b64decode(text, validate=True) or True)
    except (binascii.Error, ValueError):
        return False


def _is_date(text: str) -> bool:
    try:
        return _DATE.match(text) is not None and bool(datetime.date.fromisoformat(text))
    except ValueError:
        return False


def is_time(text: str) -> bool:
    """RFC 3339."""
    match = _TIME.match(text)
    return match is not None and _is_date(match[1]) and int(match[2]) < 24 and int(match[3]) < 60 and int(match[4]) < 60


def is_duration(text: str) -> bool:
    """Go's form, or numbers with the words of days and weeks."""
    return duration.is_duration(text) or (len(text) <= 128 and _WORDY_DURATION.match(text) is not None)


def _is_rgb(text: str) -> bool:
    match = _RGB.match(text)
    return match is not None and all(int(each) <= 255 for each in match.groups())


FORMATS: dict[str, Accepts] = {
    "bsonobjectid": _fits("[0-9a-fA-F]{24}"),
    "uri": _is_uri,
    "email": _is_email,
    "hostname": lambda text: len(text) <= 255 and _HOSTNAME.match(text) is not None,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "cidr": _is_cidr,
    "mac": lambda text: _MAC.match(text) is not None,
    "uuid": _uuid(),
    "uuid3": _uuid("3"),
    "uuid4": _uuid("4", "89ab"),
    "uuid5": _uuid("5", "89ab"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_creditcard,
    "ssn": _fits(r"\d{3}[- ]\d{2}[- ]\d{4}"),
    "hexcolor": _fits("#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _is_rgb,
    "byte": _is_base64,
    "password": lambda text: True,
    "date": _is_date,
    "date-time": is_time,
    "datetime": is_time,
    "duration": is_duration,
    "k8s-short-name": names.is_label,
    "k8s-long-name": names.is_subdomain,
}
# Formats of numbers, which say what fits and not how it is written.
NUMBERS = {"int32": 2**31, "int64": 2**63}
KNOWN = frozenset((*FORMATS, *NUMBERS, "float", "double"))
