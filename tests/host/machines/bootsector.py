"""A guest of 512 bytes: it obeys the power button and single letters on the serial console, and sleeps in between.

It says `R` when it runs and echoes what it is told. `p` powers off, `r` resets, `d` makes it deaf for ever.
"""

from pathlib import Path

_CODE = bytes.fromhex(
    "ba0206b80001ef"  # PM1_EN (0x602) = 0x100: the power button is noted
    "baf803b052ee"  # say R
    "f4"  # loop: hlt, until the clock ticks (55 ms)
    "ba0006edf6c401751f"  # PM1_STS (0x600) has the button: off
    "bafd03eca80174ee"  # nothing on the serial line: loop
    "baf803ec3c70740f3c7274143c647403"  # p: off, r: reset, d: deaf
    "eeebdb"  # echo, loop
    "faf4ebfc"  # deaf: cli, hlt
    "ba0406b80020efebce"  # off: PM1_CNT (0x604) = S5, loop
    "baf90cb006eeebc6"  # reset: port 0xcf9 = 6, loop
)


def write(path: Path, size: int = 1 << 20) -> Path:
    """A raw disk with the guest on it."""
    path.write_bytes(_CODE.ljust(510, b"\x00") + b"\x55\xaa")
    with path.open("r+b") as file:
        file.truncate(size)
    return path
