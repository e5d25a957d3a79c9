"""A way for ordinary users to the code under test, where a folder above it is root's alone."""

import ctypes
import subprocess
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_NEW_MOUNTS = 0x20000
# The checkout and the folder that is closed, then a command. What else lies in that folder is out of sight.
_OPEN = """
set -e
umask 022
held=$(mktemp -d)
mount --bind "$1" "$held"
mount -t tmpfs -o mode=755 tmpfs "$2"
mkdir -p "$1"
mount --bind "$held" "$1"
umount "$held"
rmdir "$held"
shift 2
exec "$@"
"""


def words() -> tuple[str, ...]:
    """Return the words before a command of root's which open the way for it and its children, in mounts of their own."""
    closed = _closed()
    return ("unshare", "--mount", "--propagation", "private", "sh", "-c", _OPEN, "sh", str(_ROOT), str(closed)) if closed else ()


def enter() -> None:
    """Open the way for this process and its children, in mounts of their own; raises OSError."""
    if closed := _closed():
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(_NEW_MOUNTS):
            raise OSError(ctypes.get_errno(), "cannot have mounts of its own")
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["sh", "-c", _OPEN, "sh", str(_ROOT), str(closed), "true"], check=True)


def _closed() -> Path | None:
    return next((each for each in reversed(_ROOT.parents) if not each.stat().st_mode & 1), None)
