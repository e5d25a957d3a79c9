"""The lines between two QEMUs of different hosts: TLS 1.3 on which each side proves who it is, over sockets that Paddock opens.

QEMU has no network of its own and gets descriptors. Its key is a file that only its user can read, for as long as QEMU reads it; no key
stands in an argument, a message or a log. The authority of each side signs one certificate, for one migration.
"""

import asyncio
import contextlib
import hmac
import os
import shutil
import socket
from typing import Literal

from msgspec import Struct

from paddock.base.errors import PaddockError
from paddock.engine.machine import migration
from paddock.engine.machine.errors import Unanswered
from paddock.engine.machine.owner import MachineOwner
from paddock.engine.machine.users import hand_over

# QEMU's name for the certificates, and the name that the target's certificate has.
CREDENTIALS = "live-tls"
TARGET_NAME = "paddock-live-target"
_FOLDER = "live"
_ONLY_13 = "NORMAL:-VERS-ALL:+VERS-TLS1.3"
# A line that is cut fails after so long; until then a guest that writes may wait for its disk.
_CUT_SECONDS = 10
_HELLO_SECONDS = 10.0
_CONNECT_SECONDS = 10.0


class Credentials(Struct, frozen=True):
    """What a side shows, and whom it trusts, as PEM. The authorities are its own and the peer's."""

    certificate: bytes
    key: bytes
    authorities: bytes

    def __repr__(self) -> str:
        """Nothing of it, in no message and no log."""
        return "Credentials(...)"


class ReceiverAddress(Struct, frozen=True):
    """Where a target listens, and the word of whoever connects for the memory."""

    address: str
    disks_port: int
    memory_port: int
    token: str


async def show(owner: MachineOwner, credentials: Credentials, endpoint: Literal["client", "server"]) -> None:
    """QEMU has its certificates, and no file of them is left."""
    folder, user = owner.directory.run / _FOLDER, owner.record.user
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    try:
        parts = {"ca-cert": credentials.authorities, f"{endpoint}-cert": credentials.certificate, f"{endpoint}-key": credentials.key}
        for name, content in parts.items():
            path = folder / f"{name}.pem"
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(content)
            hand_over(path, user)
        hand_over(folder, user, mode=0o700)
        arguments = {
            "qom-type": "tls-creds-x509",
            "id": CREDENTIALS,
            "dir": _FOLDER,
            "endpoint": endpoint,
            "verify-peer": True,
            "priority": _ONLY_13,
        }
        await owner.execute("object-add", arguments)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def hide(owner: MachineOwner) -> None:
    """QEMU forgets its certificates, if it had some, and a file of them that an ended Paddock left is gone."""
    shutil.rmtree(owner.directory.run / _FOLDER, ignore_errors=True)
    with contextlib.suppress(PaddockError):
        await owner.execute("migrate-set-parameters", {"tls-creds": "", "tls-hostname": ""})
    with contextlib.suppress(PaddockError):
        await owner.execute("object-del", {"id": CREDENTIALS})


def listen(address: str) -> socket.socket:
    """Listen on a free port of this address. What is accepted there notices when its line is cut."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, 0), family=family)
    _keep_watch(listener)
    return listener


async def connect(address: str, port: int, what: str) -> socket.socket:
    """Connect to a target. Raises `Unanswered`, which says what was to go there."""
    connection = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        async with asyncio.timeout(_CONNECT_SECONDS):
            await asyncio.get_running_loop().sock_connect(connection, (address, port))
        _keep_watch(connection)
    except (OSError, TimeoutError) as error:
        connection.close()
        why = str(error) or f"no answer within {_CONNECT_SECONDS:g} s"
        fix = "let the source reach that port of the target"
        raise Unanswered(f"cannot send {what} to {address} port {port}", why=why, fix=fix) from error
    except BaseException:
        connection.close()
        raise
    return connection


async def greet(connection: socket.socket, token: str) -> None:
    """Tell a target that this is the line for the memory."""
    await asyncio.get_running_loop().sock_sendall(connection, token.encode())


async def give(owner: MachineOwner, connection: socket.socket) -> None:
    """QEMU has the line for the memory. It makes each line that it gets a blocking one, and does nothing else while it waits for that."""
    await migration.give(owner, connection.fileno())
    connection.setblocking(False)


async def accept(listener: socket.socket, token: str) -> socket.socket:
    """Return the first connection that knows the token; others keep nobody waiting. TLS begins after it."""
    loop, listening = asyncio.get_running_loop(), set[asyncio.Task[None]]()
    greeted: asyncio.Future[socket.socket] = loop.create_future()

    async def hear(connection: socket.socket) -> None:
        heard = b""
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                while len(heard) < len(token) and (data := await loop.sock_recv(connection, len(token) - len(heard))):
                    heard += data
        except (OSError, TimeoutError):
            heard = b""
        finally:
            if hmac.compare_digest(heard, token.encode()) and not greeted.done():
                greeted.set_result(connection)
            else:
                connection.close()

    async def serve() -> None:
        while True:
            connection, _ = await loop.sock_accept(listener)
            task = asyncio.create_task(hear(connection))
            listening.add(task)
            task.add_done_callback(listening.discard)

    listener.setblocking(False)
    serving = asyncio.create_task(serve())
    try:
        return await greeted
    finally:
        for task in (serving, *listening):
            task.cancel()


def _keep_watch(line: socket.socket) -> None:
    """The kernel says that a line is cut, whether or not something is on its way."""
    line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _CUT_SECONDS // 2)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, _CUT_SECONDS // 2)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _CUT_SECONDS * 1000)
