"""`Networks` of an ordinary user, in a process of its own, for scripts that root runs.

The script stands in the network namespace that the user's process made, so what it looks at with `ip` and `nft` is there. `lab.host` is the
host's network, where node ports are.
"""

import array
import asyncio
import contextlib
import ctypes
import functools
import os
import pickle
import shutil
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from paddock.engine import namespace
from paddock.engine.networks import responderprocess, rootless
from paddock.engine.networks.datagrams import Datagrams
from paddock.engine.networks.networks import Networks, NetworkSettings
from tests.host import reach
from tests.host.networks.namespaces import Lab, enter_at

# Nobody has this number.
USER = 61_235
_SECONDS = 30.0


def become() -> None:
    """Be the ordinary user from now on, without any right."""
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    # What an exec would do: its files in /proc are its own.
    ctypes.CDLL(None).prctl(4, ctypes.c_ulong(1), 0, 0, 0)
    if not os.access(sys.executable, os.X_OK):
        # A Python in root's home; the process that answers guests is started with the host's of the same version.
        sys.executable = shutil.which(f"python{sys.version_info.major}.{sys.version_info.minor}", path="/usr/bin:/usr/local/bin") or ""


class UserProcess:
    """A process of the user's that has the networks of directories in a folder."""

    def __init__(self, lab: Lab) -> None:
        self._folder = lab.folder
        self._place = lab.folder / "calls"
        lab.folder.parent.chmod(0o755)
        os.chown(lab.folder, USER, USER)
        ready, done = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(ready)
                reach.enter()
                become()
                os.chdir("/")
                rootless.enter(self._folder / "namespace", "rootless")
                asyncio.run(_serve(self._folder, self._place, done))
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        os.close(done)
        assert os.read(ready, 1), "the user's process ended"
        os.close(ready)
        self.holder = self.call((0, "", ""), "holder")
        enter_at(f"/proc/{self.holder}/ns/net")

    def call(self, key: tuple[int, str, str], name: str, *args: Any, **kwargs: Any) -> Any:
        """Call something of certain networks: their number, directory and pod network."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as talk:
            talk.settimeout(_SECONDS)
            talk.connect(str(self._place))
            talk.sendall(pickle.dumps((key, name, args, kwargs)))
            talk.shutdown(socket.SHUT_WR)
            said, files = b"", array.array("i")
            while True:
                data, beside, _, _ = talk.recvmsg(1 << 16, socket.CMSG_LEN(4))
                for _, _, handed in beside:
                    files.frombytes(handed)
                if not data:
                    break
                said += data
        good, value = pickle.loads(said)
        if not good:
            raise value
        return files[0] if files else value

    def end(self) -> None:
        """End it and its namespace."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        rootless.end(self._folder / "namespace")


class RemoteNetworks:
    """`Networks` in the user's process."""

    def __init__(self, process: UserProcess, key: tuple[int, str, str]) -> None:
        self._call: Callable[..., Any] = lambda *args, **kwargs: process.call(key, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "_ledger":
            return SimpleNamespace(book=self._call("book"))
        if name in ("mode", "instance", "outside_addresses"):
            return self._call(name)
        if asyncio.iscoroutinefunction(getattr(Networks, name)):
            return lambda *args, **kwargs: asyncio.to_thread(self._call, name, *args, **kwargs)
        return lambda *args, **kwargs: self._call(name, *args, **kwargs)

    async def dial(self, *words: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection that the user's process made."""
        handle = await asyncio.to_thread(self._call, "dial", *words)
        return await asyncio.open_connection(sock=socket.socket(fileno=handle))

    async def datagrams(self, *words: Any) -> Datagrams:
        """A flow that the user's process opened."""
        handle = await asyncio.to_thread(self._call, "datagrams", *words)
        _, flow = await asyncio.get_running_loop().create_datagram_endpoint(Datagrams, sock=socket.socket(fileno=handle))
        return flow


async def _serve(folder: Path, place: Path, done: int) -> None:
    known: dict[tuple[int, str, str], Networks] = {}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        key, name, args, kwargs = pickle.loads(await reader.read())
        talk = writer.get_extra_info("socket")
        files: list[int] = []
        try:
            value = await _carry_out(known, folder, key, name, args, kwargs)
            if name in ("dial", "datagrams"):
                files, value = [_handle(value)], None
            said = pickle.dumps((True, value))
        except Exception as error:
            said = pickle.dumps((False, error))
        raw = socket.socket(fileno=os.dup(talk.fileno()))
        raw.setblocking(True)
        if files:
            socket.send_fds(raw, [said], files)
            os.close(files[0])
        else:
            raw.sendall(said)
        raw.close()
        writer.close()

    async with await asyncio.start_unix_server(answer, str(place)):
        os.write(done, b"x")
        await asyncio.Event().wait()


async def _carry_out(
    known: dict[tuple[int, str, str], Networks],
    folder: Path,
    key: tuple[int, str, str],
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    if name == "holder":
        return namespace.holder()
    if name == "build":
        responderprocess.build = functools.cache(lambda: str(args[0]))
        return None
    if key not in known:
        known[key] = Networks(folder / key[1], NetworkSettings(mode="rootless", pod_network=key[2]))
        # The namespace is that of the process.
        known[key]._uplink._directory = folder / "namespace"
    if name == "book":
        return known[key]._ledger.book
    found = getattr(known[key], name)
    value = found(*args, **kwargs) if callable(found) else found
    return await value if asyncio.iscoroutine(value) else value


def _handle(value: Any) -> int:
    """Return a copy of the socket below, and let go of the rest."""
    transport: Any = value._transport if isinstance(value, Datagrams) else value[1].transport
    handle = os.dup(transport.get_extra_info("socket").fileno())
    transport.abort()
    return handle


def lacks() -> str:
    """Return the reason why an ordinary user cannot have these networks here; "" if one can."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            reach.enter()
            become()
            unreadable = "" if os.access(rootless.__file__, os.R_OK) else f"an ordinary user may not read {rootless.__file__}"
            os.write(writing, (unreadable or rootless.trial()).encode())
            os._exit(0)
        os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    failed = os.waitpid(child, 0)[1]
    return said or ("an ordinary user's trial failed" if failed else "")
