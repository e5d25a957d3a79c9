"""Addresses of network cards: one written form, and derived ones that stay the same for the life of a machine."""

import hashlib

from paddock.kubernetes.schema.formats import FORMATS


def is_address(text: str) -> bool:
    """Return whether the text is six hexadecimal pairs."""
    return FORMATS["mac"].accepts(text)


def normal(address: str) -> str:
    """Lower case, with colons."""
    return address.lower().replace("-", ":")


def is_usable(address: str) -> bool:
    """Return whether a card may have the address: unicast, and not all zero."""
    return is_address(address) and not int(address[:2], 16) & 1 and normal(address) != "00:00:00:00:00:00"


def derived(identity: str, mac_set: str, index: int) -> str:
    """The address of card number `index`, counted from 0: `02`, the set, three bytes of the machine's identity, the number."""
    digest = hashlib.sha256(identity.encode()).digest()
    return normal(f"02:{mac_set}:" + ":".join(f"{byte:02x}" for byte in (*digest[:3], index + 1)))
