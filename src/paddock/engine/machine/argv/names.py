"""Names inside a machine: files in its directory, ids of devices, names of block nodes. The same for the same config."""

import hashlib
import re
from pathlib import Path

# Files in the machine's directory, in which QEMU is started; all are relative.
QMP = "qmp.sock"
SERIAL = "serial.sock"
SERIAL_LOG = "serial.log"
AGENT = "agent.sock"
VNC = "vnc.sock"
TPM = "tpm.sock"
TPM_STATE = "tpm"
EFI_VARIABLES = "efi-vars.fd"

DEVICE_PREFIX = "ua-"
CARD_PREFIX = "net-"
AGENT_CHANNEL = "org.qemu.guest_agent.0"
BALLOON = "balloon0"
VIRTIO_MEM = "memory1"
SCSI = "scsi0"
VIDEO = "video0"

# QEMU's own bound for the name of a node is 31 characters.
_NODE_LENGTH = 31
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def share_socket(index: int) -> str:
    """The socket between QEMU and the program that shares a directory."""
    return f"fs{index}.sock"


def usb_socket(index: int) -> str:
    """The socket that a client redirects a USB device to."""
    return f"usbredir{index}.sock"


def _plain(name: str) -> str:
    """The name, or what stands for it where a name may hold only letters, digits, `_` and `-`."""
    if _PLAIN.match(name):
        return name
    # No plain name holds a dot, so the two kinds never meet.
    return "x." + hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:24]


def device(name: str) -> str:
    """The id of a disk."""
    return DEVICE_PREFIX + _plain(name)


def nic(name: str) -> str:
    """The id of a network card. A disk and a card may have the same name, so the ids differ."""
    return CARD_PREFIX + _plain(name)


def netdev(name: str) -> str:
    """The id of what a network card is connected to."""
    return "n-" + _plain(name)


def descriptor(name: str, queue: int) -> str:
    """The name under which QEMU is handed an open tap device by QMP."""
    return f"fd-{_plain(name)}-{queue}"


def format_node(disk: str, path: Path) -> str:
    """The node that reads a layer's format. A layer that is added later gets the name it will have at the next start."""
    return _node("b", disk, path)


def file_node(disk: str, path: Path) -> str:
    """The node that reads a layer's file."""
    return _node("f", disk, path)


def backup_filter(disk: str, path: Path) -> str:
    """The node above a disk's layer while a backup of it is taken."""
    return _node("c", disk, path)


def backup_target(disk: str) -> str:
    """The node of the file that a backup of a disk goes to."""
    return _node("t", disk, Path())


def _node(kind: str, disk: str, path: Path) -> str:
    # Two disks may stand over the same base, so both the disk and the file are in the name.
    digest = hashlib.sha256(f"{disk}\0{path}".encode(errors="surrogatepass")).hexdigest()[:16]
    readable = re.sub(r"[^A-Za-z0-9_-]", "_", disk)[: _NODE_LENGTH - len(kind) - len(digest) - 2]
    return f"{kind}-{readable}.{digest}"
