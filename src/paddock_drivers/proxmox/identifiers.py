"""Identifiers that the manager keeps: of machines, and of tasks. Pure.

A machine is its VMID, which is the same on each node, and the UUID of its SMBIOS. Proxmox VE gives a clone another UUID, so a VMID that
was freed and taken again is never mistaken for the machine. The driver derives the UUID of a machine that it makes from the owner, so that
it knows its machine by it, whatever somebody does to the notes.
"""

import enum
import hashlib
import re
import uuid

import msgspec

from paddock_drivers.proxmox.upid import Upid

# The namespace of our UUIDs.
_OURS = uuid.UUID("6d0cf4ab-9a53-4b1f-9c3f-0d5ab7a5f1c2")
_MACHINE = re.compile(r"(?P<vmid>[1-9][0-9]{2,8})/(?P<uuid>[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|none)\Z", re.ASCII)
# A machine without a UUID, of an early release.
NO_UUID = "none"


class ProxmoxMachineId(msgspec.Struct, frozen=True):
    """A machine of the cluster, wherever it runs."""

    vmid: int
    uuid: str

    def __str__(self) -> str:
        return f"{self.vmid}/{self.uuid}"

    @classmethod
    def parse(cls, text: str) -> "ProxmoxMachineId | None":
        """Return the machine that a text identifies; None when it identifies none."""
        found = _MACHINE.match(text)
        return cls(int(found["vmid"]), found["uuid"]) if found is not None else None


def machine_uuid(key: str, vmid: int) -> str:
    """Return the UUID of the machine that is made for an owner's key under a VMID."""
    return str(uuid.uuid5(_OURS, f"{key}/{vmid}"))


def owner_tag(key: str) -> str:
    """Return the tag by which a list finds the machine of an owner's key."""
    return f"paddock-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


class ProxmoxTaskGoal(enum.StrEnum):
    """A state that a task waits for."""

    CREATED = "create"
    DELETED = "delete"
    RUNNING = "on"
    STOPPED = "off"
    RESTARTED = "restart"
    RECONFIGURED = "reconfigure"
    SNAPSHOTTED = "snapshot"
    SNAPSHOT_DELETED = "snapshot-delete"
    REVERTED = "revert"
    CLONED = "clone"
    PREPARED = "image"
    # Work of the driver itself: the detail is the transfer.
    RECEIVED = "receive"


class ProxmoxTaskId(msgspec.Struct, frozen=True):
    """A goal, the cluster's task that works on it, and the machine. `detail` is what else the goal needs: a snapshot, a volume."""

    goal: ProxmoxTaskGoal
    upid: Upid | None = None
    machine: ProxmoxMachineId | None = None
    detail: str = ""

    def __str__(self) -> str:
        return "|".join((self.goal, self.upid.text if self.upid else "", str(self.machine) if self.machine else "", self.detail))

    @classmethod
    def parse(cls, text: str) -> "ProxmoxTaskId | None":
        """Return the task that a text identifies; None when it identifies none."""
        parts = text.split("|", 3)
        if len(parts) != 4 or parts[0] not in frozenset(ProxmoxTaskGoal):
            return None
        upid, machine = Upid.parse(parts[1]), ProxmoxMachineId.parse(parts[2])
        if (parts[1] and upid is None) or (parts[2] and machine is None):
            return None
        return cls(ProxmoxTaskGoal(parts[0]), upid, machine, parts[3])
