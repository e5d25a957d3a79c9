"""Names that Proxmox VE takes: tags, serial numbers of disks, snapshots. Pure."""

import hashlib
import re

_TAG = re.compile(r"[a-z0-9_][a-z0-9_+.-]*\Z", re.ASCII)
_SNAPSHOT = re.compile(r"[A-Za-z][A-Za-z0-9_-]{1,39}\Z", re.ASCII)
_LONGEST_SERIAL, _LONGEST_SNAPSHOT = 20, 40
_RESERVED = ("current", "pending")


def tags(wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Return tags as the cluster can have them: lower case, without blanks and equals signs."""
    found = []
    for each in wanted:
        text = re.sub(r"[^a-z0-9_+.-]", "-", each.strip().lower()).lstrip("+.-")
        if text and _TAG.match(text):
            found.append(text)
    return tuple(dict.fromkeys(found))


def serial(disk: str) -> str:
    """Return the serial number of a data disk: its name, if it has at most 20 letters."""
    if len(disk) <= _LONGEST_SERIAL:
        return disk
    return f"{disk[:11].rstrip('-')}-{hashlib.sha256(disk.encode()).hexdigest()[:8]}"


def snapshot(hint: str) -> str:
    """Return the name of a snapshot: the hint, or what is left of it with a sum that keeps hints apart."""
    name = hint or "snapshot"
    if _SNAPSHOT.match(name) and name not in _RESERVED:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    words = re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-")
    words = words if words[:1].isalpha() else f"s-{words}"
    return f"{words[: _LONGEST_SNAPSHOT - len(digest) - 1].rstrip('-')}-{digest}"
