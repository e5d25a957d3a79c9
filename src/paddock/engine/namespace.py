"""The network namespace in which machines' networks are: this process's own, or one that an ordinary user joined with a user namespace.

A socket, a tap and a setting of the kernel belong to the namespace of the thread that made or wrote them, whoever uses them afterwards.
Some threads live there; `call` runs something in one of them. Where no namespace was joined, it is a plain call.
"""

import asyncio
import contextlib
import ctypes
import ipaddress
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

import msgspec

_P = ParamSpec("_P")
_T = TypeVar("_T")
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)
_THREADS = 4
_CAPABILITY_VERSION = 0x20080522
_AMBIENT, _RAISE, _CLEAR_ALL, _SET_DUMPABLE = 47, 2, 4, 4
# CAP_NET_BIND_SERVICE, CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN: what programs of networks need.
_LENT = (10, 12, 13, 21)
_inside = threading.local()


class NoNamespace(msgspec.Struct, frozen=True):
    """The reason why a user has no network namespace, and what lifts it."""

    why: str
    fix: str

    def __str__(self) -> str:
        return f"{self.why}; to lift it: {self.fix}"


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _Sets(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


class _State:
    """The namespace that this process joined, of which there is one at most."""

    threads: ThreadPoolExecutor | None = None
    holder = 0
    refusal: NoNamespace | None = None


def unshare() -> None:
    """Give this process a user namespace with its own user alone, and a network namespace; raises OSError."""
    user, group = os.geteuid(), os.getegid()
    _check(_LIBC.unshare(ctypes.c_int(NEW_USER | NEW_NETWORK)), "unshare")
    # The kernel wants it before an ordinary user maps a group.
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def enter(holder: int) -> None:
    """Join the user namespace of a process, and have threads in its network namespace; raises OSError. This process has one thread yet."""
    network = os.open(f"/proc/{holder}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    user = os.open(f"/proc/{holder}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_LIBC.setns(user, NEW_USER), "setns")
    finally:
        os.close(user)
    # With the change of rights the kernel made this process's files in /proc root's.
    _LIBC.prctl(_SET_DUMPABLE, ctypes.c_ulong(1), 0, 0, 0)
    _State.threads = ThreadPoolExecutor(_THREADS, "network", _settle, (network,))
    _State.holder = holder
    _State.refusal = None


def join(network: int) -> None:
    """Have one thread in a network namespace that is open, by rights that this program was lent; none are left. Raises OSError."""
    threads = ThreadPoolExecutor(1, "network")
    threads.submit(_join, network).result()
    give_up()
    _State.threads = threads


def _join(network: int) -> None:
    _settle(network)
    give_up()


def give_up() -> None:
    """Take all capabilities from this thread; raises OSError."""
    header, sets = _Header(_CAPABILITY_VERSION, 0), (_Sets * 2)()
    _check(_LIBC.capset(ctypes.byref(header), sets), "capset")


def _settle(network: int) -> None:
    _check(_LIBC.setns(network, NEW_NETWORK), "setns")
    _inside.yes = True


def holder() -> int:
    """Return the process that keeps the namespace; 0 if none was joined."""
    return _State.holder


@contextlib.contextmanager
def opened() -> Iterator[int | None]:
    """The network namespace that was joined, as an open file for another program; None if it is this process's own."""
    if _State.threads is None:
        yield None
        return
    network = call(os.open, "/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield network
    finally:
        os.close(network)


def refuse(problem: NoNamespace) -> None:
    """Keep the reason why there is no namespace."""
    _State.refusal = problem


def refusal() -> NoNamespace | None:
    """Return the reason why there is no namespace; None if there is one, or nobody tried."""
    return _State.refusal


def call(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run something short where machines' networks are."""
    if _State.threads is None or getattr(_inside, "yes", False):
        return work(*args, **kwargs)
    return _State.threads.submit(work, *args, **kwargs).result()


async def run(argv: Sequence[str], text: bytes, seconds: float) -> tuple[bytes, bytes, int]:
    """Output, errors and exit status of a program that works on machines' networks, in the namespace that was joined."""
    return await asyncio.get_running_loop().run_in_executor(_State.threads, _run, argv, text, seconds)


def _run(argv: Sequence[str], text: bytes, seconds: float) -> tuple[bytes, bytes, int]:
    with lent():
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with process:
        try:
            out, err = process.communicate(text, seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return b"", f"no answer within {seconds:g} seconds".encode(), -1
    return out, err, process.returncode


@contextlib.contextmanager
def lent() -> Iterator[None]:
    """A program that this thread starts meanwhile has the rights over networks, in the namespace that was joined."""
    header, sets = _Header(_CAPABILITY_VERSION, 0), (_Sets * 2)()
    _check(_LIBC.capget(ctypes.byref(header), sets), "capget")
    for number in _LENT:
        sets[number // 32].inheritable |= 1 << number % 32
    _check(_LIBC.capset(ctypes.byref(header), sets), "capset")
    try:
        for number in _LENT:
            _check(_LIBC.prctl(_AMBIENT, ctypes.c_ulong(_RAISE), ctypes.c_ulong(number), 0, 0), "prctl")
        yield
    finally:
        _LIBC.prctl(_AMBIENT, ctypes.c_ulong(_CLEAR_ALL), 0, 0, 0)
        # What this thread starts later inherits nothing.
        for number in _LENT:
            sets[number // 32].inheritable &= ~(1 << number % 32)
        _LIBC.capset(ctypes.byref(header), sets)


async def connected(address: str, port: int, kind: socket.SocketKind) -> socket.socket:
    """Return a socket that is connected to a guest, or to a loopback address, which is always the host's; raises OSError."""
    is_host = ipaddress.ip_address(address).is_loopback
    made = socket.socket(_family(address), kind | _FLAGS) if is_host else _made(address, kind)
    try:
        await asyncio.get_running_loop().sock_connect(made, (address, port))
    except BaseException:
        made.close()
        raise
    return made


_FLAGS = socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _made(address: str, kind: socket.SocketKind) -> socket.socket:
    return call(socket.socket, _family(address), kind | _FLAGS)


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
