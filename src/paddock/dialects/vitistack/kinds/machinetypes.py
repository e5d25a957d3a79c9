"""The machine types that a Machine may name, and which of them have SMM."""

import re

PATTERN = r"^(q35|pc|pc-(q35|i440fx)(-[A-Za-z0-9._-]+)?)$"
SUPPORTED = ("pc-q35", "pc-i440fx", "pc-q35-VERSION", "pc-i440fx-VERSION", "q35", "pc")
# Of Secure Boot: only q35 has system management mode.
I440FX = r"^pc(-i440fx.*)?$"

_KNOWN = re.compile(PATTERN.removesuffix("$") + r"\Z", re.ASCII)
# The names without a version are not QEMU's.
_SENT = {"pc-q35": "q35", "pc-i440fx": "pc"}


def is_known(name: str) -> bool:
    """Return whether a machine may name this type."""
    return _KNOWN.match(name) is not None


def is_i440fx(name: str) -> bool:
    """Return whether a known type is of the older chipset."""
    return name == "pc" or name.startswith("pc-i440fx")


def sent(name: str) -> str:
    """The word that QEMU knows a type by."""
    return _SENT.get(name, name)
