"""The tiny guest's boot loader: the disk's tables describe the memory that the kernel wants; `tests/host` starts it."""

import struct
from importlib.resources import files

import pytest

from paddock.base.images.build import directboot, tinyboot
from paddock.base.images.build.disk import SECTOR
from paddock.base.images.build.programs import BuildError

FIRST = 2048
ENTRY = 0x1000400
TEXT, DATA = bytes(range(1, 251)) * 1000, b"a" * 5000 + bytes(600_000) + b"b" * 5000
BSS = 3 << 20


def note(name: bytes, kind: int, data: bytes) -> bytes:
    return struct.pack("<III", len(name), len(data), kind) + name + bytes(-len(name) % 4) + data + bytes(-len(data) % 4)


def elf(notes: bytes) -> bytes:
    """A kernel of two segments, the second with long zeros within and after it."""
    parts = ((1, 0x1000000, TEXT, len(TEXT)), (1, 0x1200000, DATA, len(DATA) + BSS), (4, 0, notes, len(notes)))
    headers, body, offset = b"", b"", 64 + 56 * len(parts)
    for kind, address, data, memory in parts:
        headers += struct.pack("<IIQQQQQQ", kind, 7, offset + len(body), 0, address, len(data), memory, 0)
        body += data
    return b"\x7fELF\x02" + bytes(27) + struct.pack("<Q", 64) + bytes(14) + struct.pack("<HH", 56, len(parts)) + bytes(6) + headers + body


KERNEL = elf(note(b"Xen\0", 6, b"linux\0") + note(b"Xen\0", 18, ENTRY.to_bytes(8, "little")))


def test_the_loader_fills_memory_as_the_kernel_describes_it() -> None:
    ramdisk = b"cpio" * 3000
    code, content = directboot.build(KERNEL, ramdisk, "console=ttyS0 quiet", FIRST)
    assert len(code) == 440 and len(content) % SECTOR == 0
    sectors, _, _, first = struct.unpack_from("<HHHQ", code, 426)
    assert (first, sectors * SECTOR) == (FIRST, 3 * SECTOR + 4096)
    words = content[3 * SECTOR :]
    memory = bytearray(b"?" * (32 << 20))
    for number in range(200):
        sector, size, address = struct.unpack_from("<IIQ", words, 96 + 16 * number)
        if not size:
            break
        # The loader counts words of four bytes, and whole sectors.
        assert size % SECTOR == 0 and (sector == 0 or sector >= FIRST + sectors)
        at = (sector - FIRST) * SECTOR
        memory[address : address + size] = content[at : at + size] if sector else bytes(size)
    assert memory[0x1000000:][: len(TEXT)] == TEXT
    assert memory[0x1200000:][: len(DATA) + BSS] == DATA + bytes(BSS)
    (entry,) = struct.unpack_from("<I", words)
    magic, version, _, modules, module, line, _, table, count, _ = struct.unpack_from("<IIIIQQQQII", words, 8)
    assert (entry, magic, version, modules, table, count) == (ENTRY, 0x336EC578, 1, 1, 0xA000, 0)
    place, length = struct.unpack_from("<QQ", words, module - 0x8400)
    assert place % (2 << 20) == 0 and place >= 0x1200000 + len(DATA) + BSS and memory[place : place + length] == ramdisk
    assert words[line - 0x8400 :].startswith(b"console=ttyS0 quiet\0")
    # What is zero takes no room on the disk.
    assert len(content) < len(TEXT) + len(ramdisk) + 100_000


@pytest.mark.parametrize(
    ("image", "why"),
    [(b"MZ" + bytes(100), "no 64-bit ELF"), (elf(b""), "no PVH entry"), (elf(note(b"GNU\0", 18, bytes(4))), "no PVH entry")],
)
def test_a_kernel_that_cannot_be_started_directly_is_refused(image: bytes, why: str) -> None:
    with pytest.raises(BuildError, match=why):
        directboot.build(image, b"", "", FIRST)


def test_a_command_line_that_is_too_long_is_refused() -> None:
    with pytest.raises(BuildError, match="too long"):
        directboot.build(KERNEL, b"", "x" * 4000, FIRST)


def test_the_loaders_code_fits_where_it_is_loaded() -> None:
    code = (files(tinyboot) / "boot.bin").read_bytes()
    # The partition record begins at 440; the other sectors lie directly below Python's part.
    assert len(code) == 4 * SECTOR and code[440:SECTOR] == bytes(SECTOR - 440)
