"""Disk images made by hand, byte by byte: good ones, and those that an attacker would send."""

import struct
import uuid
import zlib
from collections.abc import Callable, Mapping, Sequence

CLUSTER = 65536
LUKS, DATA_FILE, BACKING_FORMAT = 0x0537BE77, 0x44415441, 0xE2792ACA


def qcow2(
    size: int = 1 << 20,
    *,
    version: int = 3,
    backing: bytes = b"",
    crypt: int = 0,
    incompatible: int = 0,
    extensions: Sequence[tuple[int, bytes]] = (),
) -> bytes:
    """A disk whose first cluster holds sevens. Layout: header, reference table, reference block, L1, L2, data."""
    covered = CLUSTER // 8 * CLUSTER
    entries = max(1, -(-min(size, 1 << 50) // covered))
    parts = b"".join(struct.pack(">II", kind, len(data)) + data + bytes(-len(data) % 8) for kind, data in extensions) + bytes(8)
    length = 104 if version == 3 else 72
    at = length + len(parts) if backing else 0
    head = struct.pack(">4sIQIIQIIQQIIQ", b"QFI\xfb", version, at, len(backing), 16, size, crypt, entries, 3 * CLUSTER, CLUSTER, 1, 0, 0)
    if version == 3:
        head += struct.pack(">QQQII", incompatible, 0, 0, 4, length)
    head += parts + backing
    references = struct.pack(">6H", *[1] * 6)
    first = struct.pack(">Q", (1 << 63) | 4 * CLUSTER)
    second = struct.pack(">Q", (1 << 63) | 5 * CLUSTER)
    blocks = (head, struct.pack(">Q", 2 * CLUSTER), references, first, second, b"\x07" * CLUSTER)
    return b"".join(block + bytes(CLUSTER - len(block)) for block in blocks)


def vmdk(descriptor: str, *, capacity: int = 2048, at_end: bool = False) -> bytes:
    """The header of a sparse VMDK with this descriptor inside."""
    directory = 0xFFFFFFFFFFFFFFFF if at_end else 21
    head = struct.pack("<4sIIQQQQIQQQ", b"KDMV", 1, 3, capacity, 128, 1, 20, 512, 0, directory, 128)
    body = head + bytes(512 - len(head)) + descriptor.encode() + bytes(20 * 512 - len(descriptor))
    return body + bytes(128 * 512)


def vmdk_descriptor(
    kind: str = "monolithicSparse", extent: str = 'RW 2048 SPARSE "x.vmdk"', parent: str = "ffffffff", more: str = ""
) -> str:
    """The text that such a file holds."""
    return f'# Disk DescriptorFile\nversion=1\nCID=12345678\nparentCID={parent}\n{more}createType="{kind}"\n{extent}\n'


def streamed(grains: Mapping[int, bytes], *, sectors: int, packed: Callable[[bytes], bytes] = zlib.compress, moved: int = 0) -> bytes:
    """A streamOptimized VMDK with these grains of 64 KiB by their number. `moved`: sectors by which grains lie about their place."""
    descriptor = vmdk_descriptor("streamOptimized", f'RDONLY {sectors} SPARSE "x.vmdk"').encode()
    head = struct.pack("<4sIIQQQQIQQQ", b"KDMV", 3, 0x30001, sectors, 128, 1, 20, 512, 0, 21, 128).ljust(77, b"\0") + b"\1\0"
    body, table = bytearray(head.ljust(512, b"\0") + descriptor.ljust(20 * 512, b"\0") + bytes(512 * 5)), [0] * 512
    for number, data in grains.items():
        table[number] = len(body) // 512
        held = packed(data)
        body += struct.pack("<QI", number * 128 + moved, len(held)) + held
        body += bytes(-len(body) % 512)
    body[21 * 512 : 21 * 512 + 4] = struct.pack("<I", 22)
    body[22 * 512 : 26 * 512] = struct.pack("<512I", *table)
    return bytes(body)


def vdi(*, kind: int = 1, parent: bytes = bytes(16), size: int = 1 << 20, blocks: int = 1) -> bytes:
    """A VirtualBox disk without data."""
    head = bytearray(0x200)
    head[:40] = b"<<< QEMU VM Virtual Disk Image >>>\n".ljust(40, b"\0")
    struct.pack_into("<IIII", head, 0x40, 0xBEDA107F, 0x00010001, 0x190, kind)
    struct.pack_into("<II", head, 0x154, 0x200, 0x400)
    struct.pack_into("<I", head, 0x168, 512)
    struct.pack_into("<QIIII", head, 0x170, size, 1 << 20, 0, blocks, 0)
    head[0x1B8:0x1C8] = parent
    return bytes(head) + bytes(0x200)


def vpc(*, kind: int = 3, size: int = 1 << 20, parent: bytes = bytes(16), block: int = 2 << 20) -> bytes:
    """A dynamic Virtual PC disk without data."""
    footer = bytearray(512)
    struct.pack_into(
        ">8sIIQI4sI4sQQHBBI", footer, 0, b"conectix", 2, 0x10000, 512, 0, b"win ", 0x50003, b"Wi2k", size, size, 30, 4, 17, kind
    )
    struct.pack_into(">I", footer, 64, ~sum(footer) & 0xFFFFFFFF)
    header = bytearray(1024)
    struct.pack_into(">8sQQIII", header, 0, b"cxsparse", (1 << 64) - 1, 1536, 0x10000, 1, block)
    header[40:56] = parent
    struct.pack_into(">I", header, 36, ~sum(header) & 0xFFFFFFFF)
    return bytes(footer) + bytes(header) + b"\xff" * 512 + bytes(footer)


def vhdx(*, flags: int = 0, size: int = 1 << 30) -> bytes:
    """The metadata of a Hyper-V disk; nothing else of it is there."""
    regions, metadata = uuid.UUID("8b7ca206-4790-4b9a-b8fe-575f050f886e").bytes_le, bytearray(65536)
    struct.pack_into("<8sHH", metadata, 0, b"metadata", 0, 2)
    items = (
        ("caa16737-fa36-4d43-b3b6-33f0aa44e76b", struct.pack("<II", 8 << 20, flags)),
        ("2fa54224-cd1b-4876-b211-5dbed83bf4b8", struct.pack("<Q", size)),
    )
    for number, (name, value) in enumerate(items):
        struct.pack_into("<16sIII", metadata, 32 + number * 32, uuid.UUID(name).bytes_le, 65536 - 16 * (number + 1), 8, 6)
        metadata[65536 - 16 * (number + 1) : 65536 - 16 * (number + 1) + 8] = value
    head = bytearray(2 << 20)
    head[:8] = b"vhdxfile"
    struct.pack_into("<4sIII", head, 192 * 1024, b"regi", 0, 1, 0)
    struct.pack_into("<16sQII", head, 192 * 1024 + 16, regions, 2 << 20, 65536, 1)
    return bytes(head) + bytes(metadata)
