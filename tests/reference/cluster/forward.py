"""Opens an address of the node to the host, and a port of the host to the node.

The socket that listens is made in one network and handed to a process in the other, which connects there. So both ends are reached and no
network changes.
"""

import asyncio
import ctypes
import fcntl
import os
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests.reference.cluster.namespace import ADDRESS, Machine

_API = 6443
_CHUNK = 1 << 16
# The shell that starts the process uses the numbers below.
_FREE_NUMBER = 10
# CLONE_NEWNET of the kernel
_NETWORK = 0x40000000


def open_port(machine: Machine, address: str = ADDRESS, port: int = _API) -> int:
    """Return a port of the host's loopback that leads to an address of the node; without an address, to the API server."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        return _handed_over(machine, listener, (address, port), on_network=True)


def open_host_port(machine: Machine, port: int) -> int:
    """Return a port of the node's address that leads to a port of the host's loopback."""
    with _listening_on(machine) as listener:
        return _handed_over(machine, listener, ("127.0.0.1", port), on_network=False)


def _listening_on(machine: Machine) -> socket.socket:
    """Return a socket that listens on the node's address; this thread enters the node's network to make it, and leaves it again."""
    with Path("/proc/thread-self/ns/net").open("rb") as own, Path(f"/proc/{machine.first}/ns/net").open("rb") as node:
        _enter(node.fileno())
        try:
            return socket.create_server((ADDRESS, 0), backlog=512)
        finally:
            _enter(own.fileno())


def _enter(network: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(network, _NETWORK):
        raise OSError(ctypes.get_errno(), "cannot enter a network namespace")


def _handed_over(machine: Machine, listener: socket.socket, to: tuple[str, int], *, on_network: bool) -> int:
    """Start the process that takes the connections of a socket, on the node's network or the host's, and return the port."""
    number = fcntl.fcntl(listener, fcntl.F_DUPFD, _FREE_NUMBER)
    try:
        machine.start_outside("forward", *python(__name__, str(number), to[0], str(to[1])), on_network=on_network, inherited=[number])
    finally:
        os.close(number)
    return int(listener.getsockname()[1])


def python(module: str, *arguments: str) -> Sequence[str]:
    """Return the words that run a module of these tests."""
    return ("env", f"PYTHONPATH={Path(__file__).parents[3]}", sys.executable, "-m", module, *arguments)


async def _serve(number: int, address: str, port: int) -> None:
    server = await asyncio.start_server(partial(_connect, address, port), sock=socket.socket(fileno=number))
    await server.serve_forever()


async def _connect(address: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Join a connection to one of the address until either side ends it."""
    with suppress(OSError):
        inner, outer = await asyncio.open_connection(address, port)
        try:
            ways = {asyncio.ensure_future(_copy(*each)) for each in ((reader, outer), (inner, writer))}
            _, rest = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for each in rest:
                each.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        finally:
            outer.close()
    writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
