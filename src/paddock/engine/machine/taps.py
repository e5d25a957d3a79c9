"""Opens tap devices that exist, so that QEMU needs no right to do so."""

import contextlib
import ctypes
import errno
import fcntl
import os
import socket
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct, field

from paddock.engine import namespace
from paddock.engine.machine.errors import StartFailed

_TUNSETIFF = 0x400454CA
_TAP, _NO_PI, _MULTI_QUEUE, _VNET_HDR = 0x0002, 0x1000, 0x0100, 0x4000
_TUNGETVNETHDRSZ, _TUNSETVNETHDRSZ = 0x800454D7, 0x400454D8
_NAME_LIMIT = 15
_LIBC = ctypes.CDLL(None, use_errno=True)


class OpenFiles(Struct):
    """Descriptors that QEMU is to inherit, by the name of the network card; closed here as soon as it has them."""

    taps: dict[str, list[int]] = field(default_factory=dict)
    vhosts: dict[str, list[int]] = field(default_factory=dict)

    def all(self) -> list[int]:
        return [number for part in (self.taps, self.vhosts) for numbers in part.values() for number in numbers]

    def close(self) -> None:
        for number in self.all():
            with contextlib.suppress(OSError):
                os.close(number)
        self.taps.clear()
        self.vhosts.clear()


def open_tap(device: str, queues: int) -> list[int]:
    """A descriptor for each queue. Raises `StartFailed`; the device is never made here."""
    name = device.encode()
    if not 0 < len(name) <= _NAME_LIMIT:
        raise StartFailed(f"cannot open tap device {device!r}", why="a device has a name of 1 to 15 bytes")
    try:
        # Not by /sys, which may be that of another network namespace.
        namespace.call(socket.if_nametoindex, device)
    except OSError as error:
        raise StartFailed(f"cannot open tap device {device}", why="there is none of that name", fix="the network is set up anew") from error
    flags = _TAP | _NO_PI | _VNET_HDR | (_MULTI_QUEUE if queues > 1 else 0)
    opened: list[int] = []
    try:
        for _ in range(max(1, queues)):
            handle = namespace.call(os.open, "/dev/net/tun", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
            opened.append(handle)
            fcntl.ioctl(handle, _TUNSETIFF, struct.pack("16sH22x", name, flags))
    except OSError as error:
        for handle in opened:
            os.close(handle)
        raise StartFailed(f"cannot open tap device {device}", why=error.strerror or str(error)) from error
    return opened


def open_vhosts(queues: int) -> list[int]:
    """/dev/vhost-net for each queue."""
    opened: list[int] = []
    try:
        for _ in range(max(1, queues)):
            opened.append(os.open("/dev/vhost-net", os.O_RDWR | os.O_CLOEXEC))  # noqa: PERF401 - what was opened is closed on failure
    except OSError as error:
        for handle in opened:
            os.close(handle)
        raise StartFailed("cannot open /dev/vhost-net", why=error.strerror or str(error)) from error
    return opened


@contextlib.contextmanager
def headers_kept(pid: int, devices: Iterable[str]) -> Iterator[None]:
    """A QEMU that begins with a tap sets the length of its packets' headers anew; the process that uses it meanwhile needs the old one."""
    lengths: dict[int, bytes] = {}
    try:
        for device in devices:
            handle = _duplicate(pid, device)
            lengths[handle] = bytes(4)
            lengths[handle] = fcntl.ioctl(handle, _TUNGETVNETHDRSZ, bytes(4))
        yield
    finally:
        for handle, length in lengths.items():
            with contextlib.suppress(OSError):
                fcntl.ioctl(handle, _TUNSETVNETHDRSZ, length)
            os.close(handle)


def _duplicate(pid: int, device: str) -> int:
    """The first of the files that a process has open of a tap."""
    what = f"cannot hand over tap device {device}"
    try:
        process = os.pidfd_open(pid)
        try:
            for number in sorted(map(int, os.listdir(f"/proc/{pid}/fdinfo"))):
                if _is_tap(pid, number, device):
                    # pidfd_getfd has this number on every architecture, and no function in Python.
                    handle = int(_LIBC.syscall(438, process, number, 0))
                    if handle < 0:
                        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
                    return handle
        finally:
            os.close(process)
    except OSError as error:
        fix = "give Paddock the capability CAP_SYS_PTRACE" if error.errno in (errno.EPERM, errno.EACCES) else ""
        raise StartFailed(what, why=error.strerror or str(error), fix=fix) from error
    raise StartFailed(what, why="the QEMU that runs does not have it open")


def _is_tap(pid: int, number: int, device: str) -> bool:
    with contextlib.suppress(FileNotFoundError):
        lines = Path(f"/proc/{pid}/fdinfo/{number}").read_text().splitlines()
        return any(line.split() == ["iff:", device] for line in lines)
    return False


def open_all(taps: Iterable[tuple[str, str, int, bool]], beside: int = 0) -> OpenFiles:
    """(card, device, queues, vhost) each; all or nothing. Raises `StartFailed`.

    `beside` is a process that uses the taps, and after which another will. A tap of one queue can be opened once, so both have the same
    open file: the second reads nothing as long as its guest stands still. One of several queues can be opened again; and it must be, since
    switching a queue off would switch it off for both.
    """
    files = OpenFiles()
    try:
        for nic, device, queues, vhost in taps:
            files.taps[nic] = [_duplicate(beside, device)] if beside and queues == 1 else open_tap(device, queues)
            if vhost:
                files.vhosts[nic] = open_vhosts(queues)
    except BaseException:
        files.close()
        raise
    return files
