"""The record of a move: an annotation of the machine at the source, written in one request with its fence."""

import hashlib

import msgspec

from paddock.base import ownnames
from paddock.base.errors import Terminal
from paddock.base.jsondata import Data

RECORD, ID, FENCE, CHECKSUM = ownnames.MOVE.name, ownnames.MOVE_ID.name, ownnames.FENCE.name, ownnames.DISK_CHECKSUM.name


class DamagedRecord(Terminal):
    """The annotation of a move cannot be read."""


class MoveRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One move. What can be observed is not in it."""

    id: str
    # UID of the target's namespace kube-system, which identifies a cluster, and its address for people
    target: str
    address: str
    namespace: str
    # merge patch that gives the machine back its wish about running
    power: Data
    # the machine ran, so it is started at the target
    ran: bool = False
    # its guest agent was connected, so the target waits for that, too
    agent: bool = False
    # MAC address by interface, of its spec and of its run
    macs: dict[str, str] = {}
    # of a machine whose spec lists no interfaces: those that its instance had
    interfaces: list[Data] = []
    networks: list[Data] = []
    # an undo has begun: the move does not go on
    undo: bool = False
    # when the machine was seen running at the target (RFC 3339)
    confirmed: str = ""


def read(data: Data) -> MoveRecord | None:
    """Return the record of a machine; None if it has none. Raises `DamagedRecord`."""
    text = ((data.get("metadata") or {}).get("annotations") or {}).get(RECORD)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=MoveRecord)
    except msgspec.MsgspecError as error:
        what = f"cannot read the annotation {RECORD}"
        raise DamagedRecord(what, why=str(error), fix="compare both sides by hand, and remove the annotation") from error


def write(record: MoveRecord) -> str:
    """Return the text of the annotation."""
    return msgspec.json.encode(record).decode()


def new_id(server: str, data: Data) -> str:
    """Return the id of a move that begins now; no two moves of a machine have the same."""
    metadata = data.get("metadata") or {}
    text = f"{server}/{metadata.get('uid')}/{metadata.get('resourceVersion')}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def fence_text(record: MoveRecord) -> str:
    """Return the reason in the fence of the source."""
    return f"it moves to namespace {record.namespace} of {record.address}"


def id_of(data: Data) -> str:
    """Return the id of the move that made an object; empty if none did."""
    return str(((data.get("metadata") or {}).get("labels") or {}).get(ID) or "")


def fence_of(data: Data) -> str | None:
    """Return the fence of an object; None if it has none."""
    found = ((data.get("metadata") or {}).get("annotations") or {}).get(FENCE)
    return None if found is None else str(found)
