"""Labels, annotations and other names below `paddock.dev/`. docs/reference/settings.md is made of these declarations."""

from collections.abc import Sequence
from typing import NamedTuple


class OwnName(NamedTuple):
    """A name of Paddock's own in an object. `place` says where it stands, `author` who writes it: the user or Paddock."""

    name: str
    place: str
    author: str
    text: str


SSH_USER = OwnName(
    "paddock.dev/ssh-user", "annotation of a machine", "user", "User that `paddock ssh` logs in as if the command line names none"
)
DIRECTORY = OwnName(
    "paddock.dev/directory",
    "`provisioner` of a StorageClass, `driver` of a VolumeSnapshotClass",
    "user",
    "Volumes are directories of this host, and Paddock makes them and their snapshots",
)
STATE_PRESERVATION = OwnName(
    "paddock.dev/state-preservation",
    "annotation of a VirtualMachine",
    "Paddock",
    "`Offline`: a pool scaled the machine in and keeps its disks",
)
UNCONFIRMED_OWNER = OwnName(
    "paddock.dev/unconfirmed-owner",
    "label of an object that changes its owner",
    "Paddock",
    "UID of the new owner until Paddock has read that it still exists",
)
TENANT = OwnName(
    "paddock.dev/tenant",
    "label of a Namespace",
    "Paddock",
    "Name of the tenant that `paddock tenant` made the namespace for",
)
CPU_SHARES = OwnName(
    "paddock.dev/cpu-shares",
    "annotation of a Namespace",
    "user",
    "Share of its machines in the processors of a busy host, beside other namespaces: 1 to 10000 (default: 100)",
)
GUEST_SIZE = OwnName(
    "paddock.dev/guest-size",
    "annotation of a PersistentVolumeClaim",
    "Paddock",
    "Size of the disk that the guest sees if the claim asks for more, and the request at that time",
)
MADE_BY = OwnName(
    "paddock.dev/made-by",
    "annotation of a DataVolume",
    "Paddock",
    "User and groups that created it, whose rights count for a clone from another namespace; a value that a client sends is replaced",
)
TRANSFER_SOURCE = OwnName(
    "paddock.dev/object-transfer-source",
    "annotation of a PersistentVolumeClaim",
    "Paddock",
    "UID of the claim that an ObjectTransfer copied",
)
FILLED = OwnName(
    "paddock.dev/filled",
    "annotation of a PersistentVolume",
    "Paddock",
    "`true`: the volume has held a disk. If it is missing, the claim is Lost, and Paddock makes no blank one in its place",
)
COMMON_INSTANCETYPES = OwnName(
    "paddock.dev/common-instancetypes",
    "annotation of the KubeVirt object",
    "Paddock",
    "Release of the common instancetypes and preferences that Paddock installed; one that a user deletes comes back with the next release",
)
DELETE_PROTECTION = OwnName(
    "paddock.dev/delete-protection",
    "annotation of the KubeVirt object",
    "Paddock",
    "Edition of the policy kubevirt-vm-deletion-protection that Paddock installed; a deleted one comes back with the next edition",
)
SERVER = OwnName(
    "paddock.dev/server", "extension of a cluster in a kubeconfig", "Paddock", "Directory of the server that `paddock ctx add` took in"
)
SUSPENDED = OwnName(
    "paddock.dev/suspended",
    "annotation of a VirtualMachineInstance",
    "Paddock",
    '"true" from the request to suspend the machine to disk until the request to resume it',
)
MEMORY = OwnName(
    "paddock.dev/memory",
    "annotation of a VirtualMachineSnapshot or a VirtualMachineRestore",
    "user",
    '"true" at a snapshot: it has the memory of the running guest. "false" at a restore: it restores the disks alone',
)
MEMORY_STATE = OwnName(
    "paddock.dev/memory-state",
    "annotation of a VirtualMachineSnapshot",
    "Paddock",
    "Size of the memory in the snapshot, the time for which the guest stood still, and the version of QEMU, as JSON",
)
WARM = OwnName(
    "paddock.dev/warm",
    "annotation of a VirtualMachineClone",
    "user",
    '"true": the guest of the clone continues from the memory of the source. Paddock sets it at the snapshot and the restore in between',
)
CONTINUES = OwnName(
    "paddock.dev/continues",
    "annotation of a VirtualMachine and a VirtualMachineInstance",
    "Paddock",
    "UID of the VirtualMachineSnapshotContent whose memory the next start continues; the VirtualMachine loses it when it has an instance",
)
REVERTED = OwnName(
    "paddock.dev/reverted",
    "annotation of a PersistentVolumeClaim",
    "Paddock",
    "UID of the VirtualMachineRestore that brought its volume back to a snapshot in place",
)
FENCE = OwnName(
    "paddock.dev/fence",
    "annotation of a machine",
    "Paddock",
    "Reason why the machine must not start: it moves to another place, or has moved there",
)
MOVE = OwnName("paddock.dev/move", "annotation of a machine", "Paddock", "Record of `paddock move` at the source, as JSON")
MOVE_ID = OwnName("paddock.dev/move-id", "label of the objects that `paddock move` makes", "Paddock", "Id of the move")
DISK_CHECKSUM = OwnName(
    "paddock.dev/disk-checksum",
    "annotation of a DataVolume",
    "Paddock",
    "Length and SHA-256 of the raw disk that `paddock move` carried; absent until the disk is complete",
)
MOUNT_OF = OwnName(
    "paddock.dev/mount-of",
    "label of a PersistentVolume and a PersistentVolumeClaim",
    "Paddock",
    "Machine that `paddock run --mount` made it for; `paddock rm` deletes it with the machine",
)
GUESTS = OwnName("paddock.dev/guests", "label of a Node", "Paddock", "`simulated`: no guest runs in the machines of the node")
ALL: Sequence[OwnName] = (
    SSH_USER,
    DIRECTORY,
    STATE_PRESERVATION,
    UNCONFIRMED_OWNER,
    TENANT,
    CPU_SHARES,
    GUEST_SIZE,
    MADE_BY,
    TRANSFER_SOURCE,
    FILLED,
    COMMON_INSTANCETYPES,
    DELETE_PROTECTION,
    SERVER,
    SUSPENDED,
    MEMORY,
    MEMORY_STATE,
    WARM,
    CONTINUES,
    REVERTED,
    FENCE,
    MOVE,
    MOVE_ID,
    DISK_CHECKSUM,
    MOUNT_OF,
    GUESTS,
)
