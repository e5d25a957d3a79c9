"""The process of the responder as the server sees it: started, found again, asked, ended.

It has `responder.lock` open as long as it lives, which tells it from every other process, also when it answers nobody.
"""

import contextlib
import functools
import hashlib
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

import paddock
from paddock.engine import namespace
from paddock.engine.machine import limits
from paddock.engine.machine.process import ProcessLaunch, end_process, holders, spawn, start_ticks
from paddock.engine.networks.responder import is_mapped
from paddock.engine.networks.responderstate import LONGEST_MESSAGE, MOST_SOCKETS, ResponderAnswer, ResponderRequest

# A new one listens at the second path, and moves to the first when it has everything: at one of them is always the one that answers.
_SOCKET, _FRESH_SOCKET = "responder.sock", "responder.new.sock"
_LOCK, _RECORD = "responder.lock", "responder.log"
_LARGEST_RECORD = 1 << 20
_ANSWER_SECONDS, _END_SECONDS, _LOOK_SECONDS = 10.0, 2.0, 0.01
# The control group of all of them.
_GROUP = "responder"
# asyncio does without TLS, which would take a fifth of the memory.
_BEGIN = """\
import sys
sys.modules["ssl"] = None
sys.path[:0] = sys.argv[1:3]
module, _, function = sys.argv[3].partition(":")
getattr(__import__(module, fromlist=[function]), function)(*sys.argv[4:])
"""
_MAIN = "paddock.engine.networks.responder:main"


class FoundResponder(Struct, frozen=True):
    """A responder that answers: the connection to it, and what it tells of itself."""

    server: socket.socket
    answer: ResponderAnswer


@functools.cache
def build() -> str:
    """Return what tells the responder of this program from one of other sources."""
    digest = hashlib.sha256(f"{sys.version} {msgspec.__version__}".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def find(folder: Path) -> FoundResponder | None:
    """Return the responder of a directory, if it answers."""
    for name in (_SOCKET, _FRESH_SOCKET):
        found = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        try:
            found.settimeout(_ANSWER_SECONDS)
            with _short(folder) as place:
                found.connect(f"{place}/{name}")
            return FoundResponder(found, exchange(found, ResponderRequest("hello")))
        except (OSError, ValueError):
            found.close()
    return None


def start(folder: Path, user: int) -> tuple[socket.socket, int]:
    """Start a responder that becomes this user; returns the connection to it, and its process. Raises `StartFailed` or OSError."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(_ANSWER_SECONDS)
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        with theirs, _listening(folder) as listener, contextlib.ExitStack() as opened:
            record = os.open(folder / _RECORD, flags | os.O_APPEND, 0o600)
            opened.callback(os.close, record)
            lock = os.open(folder / _LOCK, flags, 0o600)
            opened.callback(os.close, lock)
            if os.fstat(record).st_size > _LARGEST_RECORD:
                os.truncate(record, 0)
            handles = [listener.fileno(), theirs.fileno()]
            network = opened.enter_context(namespace.opened())
            words = [*_sources(), _MAIN, build(), str(user), "" if network is None else str(network), *map(str, handles)]
            argv = [*_without_rights(user), sys.executable, "-I", "-S", "-c", _BEGIN, *words]
            if network is not None:
                handles.append(network)
                opened.enter_context(namespace.lent())
            pid = spawn(ProcessLaunch(argv, folder, record, (*handles, lock)))
    except BaseException:
        ours.close()
        raise
    # It outlives Paddock, whatever ends the unit that Paddock is.
    limits.enclose(limits.on_this_host(), _GROUP, [pid], {})
    return ours, pid


def _without_rights(user: int) -> list[str]:
    """Return the words before a command that take its capabilities, where a user namespace lacks the user that it would become."""
    setpriv = shutil.which("setpriv")
    if os.geteuid() != 0 or setpriv is None or is_mapped(user, Path("/proc/self/uid_map").read_text()):
        return []
    return [setpriv, "--inh-caps=-all", "--bounding-set=-all", "--"]


def _sources() -> list[str]:
    """Return the folders of what it imports. Those of other packages would make it slow and large."""
    return [str(Path(module.__file__ or "").resolve().parents[1]) for module in (paddock, msgspec)]


def settle(folder: Path) -> None:
    """Let the responder be found by the next server."""
    with contextlib.suppress(FileNotFoundError):
        (folder / _FRESH_SOCKET).replace(folder / _SOCKET)


def exchange(server: socket.socket, request: ResponderRequest, handles: Sequence[int] = ()) -> ResponderAnswer:
    """Ask a responder; raises OSError or ValueError when it does not answer."""
    socket.send_fds(server, [msgspec.json.encode(request)], handles)
    return msgspec.json.decode(server.recv(LONGEST_MESSAGE), type=ResponderAnswer)


def receive_sockets(server: socket.socket) -> dict[str, socket.socket]:
    """Take over all sockets of a responder, which ends then. Raises OSError or ValueError."""
    found: dict[str, socket.socket] = {}
    server.send(msgspec.json.encode(ResponderRequest("hand over")))
    more = True
    while more:
        data, handles, _, _ = socket.recv_fds(server, LONGEST_MESSAGE, MOST_SOCKETS)
        made = [socket.socket(fileno=handle) for handle in handles]
        said = msgspec.json.decode(data, type=ResponderAnswer)
        found |= dict(zip(said.sockets, made, strict=True))
        more = said.more
    return found


def end_all(folder: Path) -> None:
    """End every responder of a directory."""
    found = {pid: start_ticks(pid) for pid in holders(folder / _LOCK)}
    until = time.monotonic()
    for number in (signal.SIGTERM, signal.SIGKILL):
        until += _END_SECONDS
        for pid, ticks in found.items():
            end_process(pid, ticks, number)
        while time.monotonic() < until and any(start_ticks(pid) == ticks for pid, ticks in found.items()):
            time.sleep(_LOOK_SECONDS)
    for pid in found:
        # One that this server has started.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def remove(folder: Path) -> None:
    """Remove the files of a responder that has ended."""
    for name in (_SOCKET, _FRESH_SOCKET, _LOCK, _RECORD):
        (folder / name).unlink(missing_ok=True)
    # It stays while the responder of another directory is in it.
    limits.remove(limits.on_this_host(), _GROUP)


@contextlib.contextmanager
def _short(folder: Path) -> Iterator[str]:
    """A path of a directory that is not too long for the address of a socket."""
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}"
    finally:
        os.close(handle)


@contextlib.contextmanager
def _listening(folder: Path) -> Iterator[socket.socket]:
    """A listening socket that only this user connects to."""
    (folder / _FRESH_SOCKET).unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC) as listener:
        with _short(folder) as place:
            listener.bind(f"{place}/{_FRESH_SOCKET}")
        # Nobody connects before it listens.
        (folder / _FRESH_SOCKET).chmod(0o600)
        listener.listen()
        yield listener
