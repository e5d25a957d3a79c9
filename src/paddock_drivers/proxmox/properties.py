"""Property strings of Proxmox VE: `virtio=BC:24:11:00:00:01,bridge=vmbr0,tag=7`. Pure.

The first part may leave out the name of its key, as a volume in `local-lvm:vm-100-disk-0,size=8G` does.
"""

import re
from collections.abc import Mapping

_SIZE = re.compile(r"(?P<count>\d+(?:\.\d+)?)(?P<unit>[KMGT]?)\Z")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_TRUE = ("1", "on", "yes", "true")


def parse(text: str, first: str) -> dict[str, str]:
    """Return the members of a property string; `first` names the part that stands without a key."""
    found: dict[str, str] = {}
    for part in text.split(","):
        if not part:
            continue
        key, equals, value = part.partition("=")
        if equals:
            found[key] = value
        else:
            found[first] = key
    return found


def render(members: Mapping[str, str | int | float | bool], first: str) -> str:
    """Return the property string of some members, that of `first` without its key."""
    parts = [_text(members[first])] if first in members else []
    return ",".join([*parts, *(f"{key}={_text(value)}" for key, value in members.items() if key != first)])


def _text(value: str | int | float | bool) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    return f"{value:g}" if isinstance(value, float) else str(value)


def size(text: str) -> int:
    """Return the bytes of a size such as 8G, 528K or 1073741824; 0 for what is none."""
    found = _SIZE.match(text)
    return int(float(found["count"]) * _UNITS[found["unit"]]) if found is not None else 0


def is_true(value: object) -> bool:
    """Return whether the API means true by a value: 1, "1", "on"."""
    return value is True or str(value).lower() in _TRUE


def tags(text: str) -> tuple[str, ...]:
    """Return the tags of a machine, which stand between semicolons, commas or blanks."""
    return tuple(filter(None, re.split(r"[;,\s]+", text)))
