"""The names of what a directory has on its host: a bridge, taps, a routing table, tables of the packet filter. Pure.

An upgrade renames nothing below running guests: a directory whose bridge is on the host keeps that bridge's names until its last card is
gone (`hostobjects.names_of`). Therefore a version that names things in another way puts its form first in `_FORMS`, and keeps the others.
"""

import base64
import hashlib
import re
from pathlib import Path

from msgspec import Struct

_DEVICES, _FILTERS, _CARD_DIGITS = "pk", "paddock_", 8


class _Form(Struct, frozen=True):
    """How a version tells directories apart: by the first digits of a hash, in a base whose digits `alphabet` matches."""

    base: int
    digits: int
    alphabet: str
    # the routing table of the instance that is only zeros
    tables: int

    def short_hash(self, text: str, digits: int) -> str:
        """Return the first digits of a text's hash."""
        digest = hashlib.sha256(text.encode()).digest()
        return (digest.hex() if self.base == 16 else base64.b32hexencode(digest).decode().lower())[:digits]


_FORMS = (
    # Of 33 million pairs of directories, one has the same five digits.
    _Form(32, 5, "[0-9a-v]", 0x50000000),
    _Form(16, 4, "[0-9a-f]", 0x504B0000),
)


class HostNames(Struct, frozen=True):
    """The names of one directory's objects, in one form."""

    form: _Form
    # the digits that tell the objects of one directory from those of another
    instance: str

    @property
    def bridge(self) -> str:
        """The bridge of the pod network."""
        return f"{_DEVICES}{self.instance}"

    @property
    def routes(self) -> int:
        """The number of the routing table."""
        return self.form.tables + int(self.instance, self.form.base)

    @property
    def filters(self) -> str:
        """The tables of the packet filter."""
        return f"{_FILTERS}{self.instance}"

    def tap(self, key: tuple[str, str]) -> str:
        """The tap of a card."""
        return self.bridge + self.form.short_hash("\0".join(key), _CARD_DIGITS)

    def is_tap(self, device: str) -> bool:
        """Return whether a device is a tap of this directory. The length counts: a bridge's name may begin as another form's does."""
        return device.startswith(self.bridge) and len(device) == len(self.bridge) + _CARD_DIGITS

    def has(self, device: str) -> bool:
        """Return whether a device is the bridge or a tap of this directory."""
        return device == self.bridge or self.is_tap(device)


def every(directory: Path) -> tuple[HostNames, ...]:
    """Return the names of a directory's objects in every form, those that this version gives first."""
    return tuple(HostNames(form, form.short_hash(str(directory.resolve()), form.digits)) for form in _FORMS)


def of_bridge(device: str) -> HostNames | None:
    """Return the names of which a device's is the bridge's; None for a device that is no such bridge."""
    instance = device.removeprefix(_DEVICES)
    found = (form for form in _FORMS if re.fullmatch(f"{_DEVICES}{form.alphabet}{{{form.digits}}}", device))
    return next((HostNames(form, instance) for form in found), None)


def bridge_beside(filters: str) -> str:
    """Return the bridge of the directory that has tables of this name; "" for a name that is not ours."""
    instance = filters.removeprefix(_FILTERS)
    return f"{_DEVICES}{instance}" if instance != filters else ""
