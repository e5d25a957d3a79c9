"""What ordinary users reach on a host, and not on every machine that tests run on: the code under test below a folder that is root's
alone, and the tun device, which udev opens to everybody.
"""

import ctypes
import subprocess
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_NEW_MOUNTS = 0x20000
_TUN = Path("/dev/net/tun")
# "tun" or nothing, the checkout and the folder that is closed or nothing, then a command. What else lies in that folder is out of sight.
_OPEN = """
set -e
umask 022
if [ -n "$1" ]; then
    node=$(mktemp -u)
    mknod "$node" c 10 200
    chmod 666 "$node"
    mount --bind "$node" /dev/net/tun
    rm "$node"
fi
shift
if [ -z "$2" ]; then
    shift 2
    exec "$@"
fi
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
    way = _way()
    return ("unshare", "--mount", "--propagation", "private", "sh", "-c", _OPEN, "sh", *way) if any(way) else ()


def enter() -> None:
    """Open the way for this process and its children, in mounts of their own; raises OSError."""
    way = _way()
    if any(way):
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(_NEW_MOUNTS):
            raise OSError(ctypes.get_errno(), "cannot have mounts of its own")
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["sh", "-c", _OPEN, "sh", *way, "true"], check=True)


def _way() -> tuple[str, str, str]:
    closed = next((each for each in reversed(_ROOT.parents) if not each.stat().st_mode & 1), None)
    is_tun_closed = _TUN.exists() and _TUN.stat().st_mode & 0o6 != 0o6
    return ("tun" if is_tun_closed else "", str(_ROOT) if closed else "", str(closed or ""))
