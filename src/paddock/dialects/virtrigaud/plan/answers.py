"""The parts of a provider's answers that may stand in an object: a provider is another program, and its words are bounded and checked."""

import ipaddress
import re
from collections.abc import Sequence

import msgspec

from paddock.dialects.virtrigaud.plan import marks

# members of status.provider, and characters of a value, of a name and of a link
_MEMBERS, _VALUE, _NAME, _LINK = 64, 1024, 253, 2048
_ADDRESSES = 64
_WORDS, _WORD = 64, 64
_IDENTITY = 1024
_SCHEMES = ("https", "http", "wss", "ws", "vnc", "spice", "rdp")
_URL = re.compile(rf"({'|'.join(_SCHEMES)})://[!-~]+")
_IDENTIFIER = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]*")


def addresses(given: Sequence[str]) -> list[str]:
    """The IP addresses among these, in their order."""
    return [each for each in given[:_ADDRESSES] if _is_address(each)]


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def link(given: str) -> str:
    """A URL that a browser or a viewer may open; anything else, such as a file of the reader, is left out."""
    return given if len(given) <= _LINK and _URL.fullmatch(given) else ""


def details(text: str) -> dict[str, str]:
    """A provider's own words, without those that are Paddock's; what is no object of texts is left out."""
    try:
        found = msgspec.json.decode(text or "{}", type=dict[str, str])
    except msgspec.MsgspecError:
        return {}
    foreign = [(name, value) for name, value in found.items() if len(name) <= _NAME and not name.startswith(marks.OWN_PREFIX)]
    return {name: value[:_VALUE] for name, value in foreign[:_MEMBERS]}


def words(given: Sequence[str]) -> list[str]:
    """A list of short words, such as formats."""
    return [each[:_WORD] for each in given[:_WORDS]]


def is_identity(text: str) -> bool:
    """Return whether an id may stand in an object and in a message."""
    return len(text) <= _IDENTITY and _IDENTIFIER.fullmatch(text) is not None
