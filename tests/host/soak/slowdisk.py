"""A disk that is slow to flush, for the processes of one test: a library that stands before the C library's `fsync` and `fdatasync`."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

_SOURCE = Path(__file__).with_name("slowdisk.c")


def environment(folder: Path, milliseconds: int, rare: int) -> Mapping[str, str]:
    """Build the library, and return the variables that make a program load it.

    Each flush waits `milliseconds`; one in `rare` waits twenty times as long.
    """
    library = folder / "slowdisk.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(_SOURCE), "-ldl"], check=True)
    # Machines run as users of their own.
    library.chmod(0o755)
    return {"LD_PRELOAD": str(library), "SLOWDISK_MS": str(milliseconds), "SLOWDISK_RARE": str(rare)}
