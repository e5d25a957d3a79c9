"""The host as an ordinary user finds it: the code under test can be reached below a folder that is root's alone, and everybody may open
the tun device, as udev has it.
"""

import ctypes
import subprocess
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_NEW_MOUNTS = 0x20000
_TUN = Path("/dev/net/tun")
_OPEN_TUN = """
node=$(mktemp -u)
mknod "$node" c 10 200
chmod 666 "$node"
mount --bind "$node" /dev/net/tun
rm "$node"
"""
# The checkout, and the folder that is closed. What else lies in that folder is out of sight.
_OPEN_FOLDER = """
held=$(mktemp -d)
mount --bind "$1" "$held"
mount -t tmpfs -o mode=755 tmpfs "$2"
mkdir -p "$1"
mount --bind "$held" "$1"
umount "$held"
rmdir "$held"
"""


def words() -> tuple[str, ...]:
    """Return the words before a command of root's which open the way for it and its children, in mounts of their own."""
    opening = _opening()
    return ("unshare", "--mount", "--propagation", "private", *opening) if opening else ()


def enter() -> None:
    """Open the way for this process and its children, in mounts of their own; raises OSError."""
    if opening := _opening():
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(_NEW_MOUNTS):
            raise OSError(ctypes.get_errno(), "cannot have mounts of its own")
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run([*opening, "true"], check=True)


def _opening() -> tuple[str, ...]:
    """Return the words of a shell that opens what is closed, and then becomes the command that follows."""
    folder = next((each for each in reversed(_ROOT.parents) if not each.stat().st_mode & 1), None)
    is_tun_closed = _TUN.exists() and _TUN.stat().st_mode & 0o6 != 0o6
    script = (_OPEN_TUN if is_tun_closed else "") + (_OPEN_FOLDER if folder else "")
    if not script:
        return ()
    return ("sh", "-c", f'set -e\numask 022\n{script}\nshift 2\nexec "$@"', "sh", str(_ROOT), str(folder or ""))
