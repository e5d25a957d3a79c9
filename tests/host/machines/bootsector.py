"""A guest of 512 bytes: it obeys the power button and single letters on the serial console, and sleeps in between.

It says `R` when it runs and echoes what it is told. `p` powers off, `r` resets, `d` makes it deaf for ever, `f` floods the console,
`w` writes the next 64 KiB to the first disk and then says so.
"""

from pathlib import Path

# In 16-bit code, assembled: the button is noted in PM1_EN (0x602) and read from PM1_STS (0x600), S5 is entered through PM1_CNT (0x604),
# a reset is port 0xcf9, the console port 0x3f8, a disk is written by INT 13h (AH=43h). Between looks it halts until the clock ticks.
_CODE = bytes.fromhex(
    "31c08ed8c706087e0000c7060a7e0000c7060c7e0000c7060e7e0000ba0206b8"
    "0001efbaf803b052eef4ba0006edf6c4017550bafd03eca80174eebaf803ec3c"
    "7074403c7274453c6474343c6674453c777406baf803eeebd0be007ec7041000"
    "c744027f00c744040000c7440600108144088000b80043b280cd13b077ebd4fa"
    "f4ebfcba0406b80020efeb9dbaf90cb006eeeb95eeebfd"
)


def write(path: Path, size: int = 1 << 20) -> Path:
    """A raw disk with the guest on it."""
    path.write_bytes(_CODE.ljust(510, b"\x00") + b"\x55\xaa")
    with path.open("r+b") as file:
        file.truncate(size)
    return path


def marker(disk: int = 0) -> bytes:
    """The guest with another habit: what `w` writes, to the BIOS's first or another disk, begins with its own code."""
    own_code = _CODE.replace(bytes.fromhex("c744060010"), bytes.fromhex("c74406c007"))
    return own_code.replace(bytes.fromhex("b280cd13"), bytes((0xB2, 0x80 + disk, 0xCD, 0x13))).ljust(510, b"\x00") + b"\x55\xaa"


# Where the first `w` writes on a disk.
MARKED = 64 << 10


# A guest with one habit: it says `R`, and then each byte that its keyboard sends, as two digits and a space. It takes INT 9 over, reads
# port 0x60 there, and sleeps in between.
_KEYBOARD_CODE = bytes.fromhex(
    "fa31c08ed8c7062400187ca32600fbbaf803b052eef4ebfd60e46088c3baf803c0e804e8100088d8240fe80900b020eeb020e62061cf3c0a720204270430eec3"
)


def keyboard(path: Path) -> Path:
    """A raw disk with the guest that tells of its keyboard."""
    path.write_bytes((_KEYBOARD_CODE.ljust(510, b"\x00") + b"\x55\xaa").ljust(1 << 20, b"\x00"))
    return path
