"""Opens an address of the node to the host: a port on loopback, behind which a process in the node's network connects.

The socket that listens is made in the host's network and handed to that process, so both ends are reached and no network changes.
"""

import asyncio
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


def open_port(machine: Machine, address: str = ADDRESS, port: int = _API) -> int:
    """Start the process, and return the port; without an address it leads to the API server."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        number = fcntl.fcntl(listener, fcntl.F_DUPFD, _FREE_NUMBER)
        try:
            machine.start_outside("forward", *python(__name__, str(number), address, str(port)), on_network=True, inherited=[number])
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
