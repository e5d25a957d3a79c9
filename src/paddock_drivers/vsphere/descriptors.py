"""Descriptors of virtual disks: the small text beside the file that holds a disk's bytes on a datastore. Pure.

Whoever writes to a datastore may write a descriptor, so nothing in one is believed: a name leads to a file in the same folder or nowhere.
"""

import re

import msgspec

from paddock_drivers.kit import refusals

_SECTOR = 512
MOST = 64 << 10
# The extents of a disk that is one file of plain bytes.
_PLAIN = ("VMFS", "FLAT")
_EXTENT = re.compile(r'^RW[ \t]+([0-9]{1,18})[ \t]+([A-Z0-9]{1,16})[ \t]+"([^"\r\n]{1,255})"(?:[ \t]+[0-9]+)?[ \t]*$', re.MULTILINE)
_PARENT = re.compile(r"^parentCID[ \t]*=[ \t]*([0-9a-fA-F]{1,16})[ \t]*$", re.MULTILINE)
# A disk without a parent; some programs write zeros.
_WHOLE = ("ffffffff", "00000000")
_HEADS, _SECTORS = 255, 63
_TEXT = """# Disk DescriptorFile
version=1
encoding="UTF-8"
CID=fffffffe
parentCID=ffffffff
createType="vmfs"

# Extent description
RW {sectors} VMFS "{extent}"

# The Disk Data Base
#DDB

ddb.adapterType = "lsilogic"
ddb.geometry.cylinders = "{cylinders}"
ddb.geometry.heads = "{heads}"
ddb.geometry.sectors = "{track}"
ddb.virtualHWVersion = "13"
"""


class FlatDisk(msgspec.Struct, frozen=True):
    """A disk whose bytes are those of one file."""

    size: int
    # the name of the file, in the folder of the descriptor
    extent: str


def written(disk: FlatDisk) -> bytes:
    """Return the descriptor of a disk."""
    sectors = disk.size // _SECTOR
    cylinders = max(1, min(65535, sectors // (_HEADS * _SECTORS)))
    return _TEXT.format(sectors=sectors, extent=disk.extent, cylinders=cylinders, heads=_HEADS, track=_SECTORS).encode()


def read(data: bytes) -> FlatDisk:
    """Return the disk of a descriptor; raises Conflict for a disk that is not one file of its own."""
    text = data[:MOST].decode("utf-8", "replace")
    if not text.startswith("# Disk DescriptorFile"):
        raise refusals.conflict("the disk cannot be read from its datastore", why="its file is no descriptor of a disk")
    parents = _PARENT.findall(text)
    if "parentFileNameHint" in text or any(each.lower() not in _WHOLE for each in parents):
        raise refusals.conflict(
            "the disk cannot be read from its datastore", why="it is a delta of another disk", fix="delete the machine's snapshots"
        )
    found = _EXTENT.findall(text)
    if len(found) != 1 or found[0][1] not in _PLAIN:
        raise refusals.not_supported("the disk cannot be read from its datastore", why="its bytes are not those of one file")
    extent = found[0][2]
    if "/" in extent or "\\" in extent or extent in (".", "..") or extent.startswith("["):
        raise refusals.conflict("the disk cannot be read from its datastore", why="its descriptor names a file outside of its folder")
    return FlatDisk(int(found[0][0]) * _SECTOR, extent)
