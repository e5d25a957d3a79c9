"""The headers of VDI, VHD (vpc) and VHDX. What has a parent is refused, and so is what does not fit into its file."""

import uuid

from paddock.base.images.errors import ImageRefused
from paddock.base.images.facts import ImageBytes, ImageFacts, damaged, oversized, truncated, unsafe

_PARENT = "is a difference to another disk"
_METADATA_REGION = uuid.UUID("8b7ca206-4790-4b9a-b8fe-575f050f886e")
_FILE_PARAMETERS = uuid.UUID("caa16737-fa36-4d43-b3b6-33f0aa44e76b")
_DISK_SIZE = uuid.UUID("2fa54224-cd1b-4876-b211-5dbed83bf4b8")


def inspect_vdi(data: ImageBytes) -> ImageFacts:
    """VirtualBox."""
    version, header_size, kind = data.numbers("<III", 0x44)
    if version != 0x00010001:
        raise ImageRefused("Unsupported", f"the image is a VDI of version {version >> 16}.{version & 0xFFFF}")
    if kind not in (1, 2):
        raise unsafe(_PARENT)
    offset_map, offset_data = data.numbers("<II", 0x154)
    size, block, extra, blocks, allocated = data.numbers("<QIIII", 0x170)
    if any(data.at(0x1A8, 32)):
        raise unsafe(_PARENT)
    if header_size > 0x1000 or not block or block % 512 or block > 1 << 28 or extra:
        raise damaged("the size of its blocks")
    if size > blocks * block or blocks > 1 << 29:
        raise oversized(f"the image claims a disk of {size} bytes, which its tables do not hold")
    data.holds(offset_map, blocks * 4)
    if allocated > blocks:
        raise damaged("it has more blocks than blocks")
    if offset_data + allocated * block > data.size:
        raise truncated()
    return ImageFacts("vdi", size)


def inspect_vpc(data: ImageBytes) -> ImageFacts:
    """Virtual PC, fixed and dynamic. The footer stands at the end; a dynamic disk has a copy of it at its beginning."""
    dynamic = data.at(0, 8) == b"conectix"
    footer = 0 if dynamic else data.size - 512
    (next_header,) = data.numbers(">Q", footer + 16)
    original, current = data.numbers(">QQ", footer + 40)
    cylinders, heads, sectors, kind = data.numbers(">HBBI", footer + 56)
    size = max(original, current, cylinders * heads * sectors * 512)
    if kind == 4:
        raise unsafe(_PARENT)
    if kind == 2:
        if data.size - 512 < min(current, cylinders * heads * sectors * 512):
            raise truncated()
        return ImageFacts("vpc", size)
    if kind != 3 or not dynamic:
        raise ImageRefused("Unsupported", f"the image is a VHD of the unknown type {kind}")
    if data.at(next_header, 8) != b"cxsparse":
        raise damaged("its second header is missing")
    table, _, entries, block = data.numbers(">QIII", next_header + 16)
    if not block or block & (block - 1) or block > 1 << 28:
        raise damaged("the size of its blocks")
    if entries > 1 << 29 or entries * block < current:
        raise oversized(f"the image claims a disk of {current} bytes, which its tables do not hold")
    data.holds(table, entries * 4)
    if any(data.at(next_header + 40, 16)):
        raise unsafe(_PARENT)
    return ImageFacts("vpc", size)


def inspect_vhdx(data: ImageBytes) -> ImageFacts:
    """Hyper-V."""
    metadata = _vhdx_region(data)
    _, count = data.numbers("<HH", metadata + 8)
    if data.at(metadata, 8) != b"metadata" or count > 2047:
        raise damaged("its metadata")
    size = block = -1
    for at in range(metadata + 32, metadata + 32 + count * 32, 32):
        offset, length = data.numbers("<II", at + 16)
        kind = uuid.UUID(bytes_le=data.at(at, 16))
        if kind == _FILE_PARAMETERS and length >= 8:
            block, flags = data.numbers("<II", metadata + offset)
            if flags & 2:
                raise unsafe(_PARENT)
        elif kind == _DISK_SIZE and length >= 8:
            (size,) = data.numbers("<Q", metadata + offset)
    if size < 0 or block < 0:
        raise damaged("it tells no size")
    if size > 64 << 40:
        raise oversized(f"the image claims a disk of {size} bytes, more than the format can hold")
    return ImageFacts("vhdx", size)


def _vhdx_region(data: ImageBytes) -> int:
    for table in (192 * 1024, 256 * 1024):
        _, count, _ = data.numbers("<III", table + 4)
        if data.at(table, 4) != b"regi" or count > 2047:
            continue
        for at in range(table + 16, table + 16 + count * 32, 32):
            offset, _, _ = data.numbers("<QII", at + 16)
            if uuid.UUID(bytes_le=data.at(at, 16)) == _METADATA_REGION:
                if offset < 1 << 20:
                    raise damaged("its metadata is where it cannot be")
                return offset
    raise damaged("it has no metadata")
