"""Notes of the driver at a machine: a comment in its description, below the words for people. Pure.

The note says which request the machine was made for, whether it is complete, and which of its disks the manager has named. Nothing is
trusted that a copy of the machine would have, too: the note of a copy names another VMID.
"""

import re

import msgspec

from paddock_drivers.proxmox.identifiers import ProxmoxMachineId

_COMMENT = re.compile(r"<!-- paddock (?P<json>\{.*?\}) -->", re.DOTALL)
_MOST_LIMITATIONS, _LONGEST_LIMITATION = 12, 300
_MOST_DESCRIPTION = 8192


class ProxmoxMachineNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The note of a machine."""

    vmid: int = 0
    uuid: str = ""
    # what the machine was made for: the uid of an owner, or the sum of a request
    key: str = ""
    complete: bool = False
    # names of data disks that the manager has named, and the volumes of those that it has not named since
    disks: tuple[str, ...] = ()
    detached: dict[str, str] = {}
    tags: tuple[str, ...] = ()
    # the volume of the documents' disk, which goes with the machine
    documents: str = ""
    # an imported disk that the machine has taken, to be cleared away
    taken: tuple[str, ...] = ()
    limitations: tuple[str, ...] = ()

    @property
    def machine(self) -> ProxmoxMachineId:
        """The machine that the note is about."""
        return ProxmoxMachineId(self.vmid, self.uuid)


def read(description: str) -> ProxmoxMachineNote:
    """Return the note in a description; an empty one for none, or for one that somebody has broken."""
    found = _COMMENT.search(description)
    if found is None:
        return ProxmoxMachineNote()
    try:
        return msgspec.json.decode(found["json"], type=ProxmoxMachineNote)
    except msgspec.MsgspecError:
        return ProxmoxMachineNote()


def write(description: str, note: ProxmoxMachineNote) -> str:
    """Return a description with another note; the words for people stay."""
    words = _COMMENT.sub("", description).strip()
    kept = tuple(each[:_LONGEST_LIMITATION] for each in note.limitations[:_MOST_LIMITATIONS])
    text = msgspec.json.encode(msgspec.structs.replace(note, limitations=kept)).decode().replace(">", "\\u003e")
    comment = f"<!-- paddock {text} -->"
    return f"{words[: _MOST_DESCRIPTION - len(comment.encode()) * 2 - 2]}\n\n{comment}".strip()
