"""The ids of Proxmox VE's tasks: `UPID:NODE:PID:PSTART:STARTTIME:TYPE:ID:USER:`, numbers in hex. Pure."""

import re

import msgspec

_TEXT = re.compile(
    r"UPID:(?P<node>[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?):[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8,9}:(?P<start>[0-9A-Fa-f]{8}):"
    r"(?P<type>[^:\s|]+):(?P<id>[^:\s|]*):(?P<user>[^:\s|]+):\Z",
    re.ASCII,
)


class Upid(msgspec.Struct, frozen=True):
    """A task: the node that carries it out, its kind, and the id of what it concerns."""

    text: str
    node: str
    type: str
    id: str
    user: str

    @classmethod
    def parse(cls, text: object) -> "Upid | None":
        """Return the task that a text identifies; None when it identifies none."""
        found = _TEXT.match(text) if isinstance(text, str) else None
        return cls(found[0], found["node"], found["type"], found["id"], found["user"]) if found is not None else None
