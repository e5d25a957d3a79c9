"""Consoles and screens: a WebSocket of the page, bridged to a subresource of the machine's instance on the server.

The server judges whether the user may open it. What goes wrong before the first byte ends the WebSocket with a code of its own and the
reason as text, because a browser shows a page nothing of a handshake that fails.
"""

import asyncio
from collections.abc import Callable

import msgspec

from paddock.base.errors import PaddockError
from paddock.fleet.diagnosis.scene import texts
from paddock.fleet.guests import guest
from paddock.fleet.guests.guest import GuestAccess, NotRunning
from paddock.kubernetes.client.http.websocket import WebSocket, connected
from paddock.server.edge.http import Socket
from paddock.web import problems
from paddock.web.routes import WebMachinePlace
from paddock.web.session import WebSession

STREAMS = frozenset(("console", "vnc"))
# Codes for programs begin at 4000: 4000 and the HTTP status.
_FIRST_CODE = 4000
# A control frame holds 125 bytes, two of them the code.
_LONGEST_REASON = 120
_CHECK_SECONDS = 15.0
_BEFORE_RUNNING = frozenset(("Pending", "Scheduling", "Scheduled", "WaitingForSync"))
_BACKLOG_BYTES = 256 * 1024


async def bridge(
    session: WebSession, web_machine_place: WebMachinePlace, stream: str, socket: Socket, is_alive: Callable[[], bool]
) -> None:
    """Carry bytes both ways until one end is gone or the session has ended."""
    try:
        what = "open the console" if stream == "console" else "open the screen"
        server = msgspec.structs.replace(session.server, namespace=web_machine_place.key.namespace)
        access = await guest.access(server, f"{web_machine_place.kind.word}/{web_machine_place.key.name}", what)
        _check_phase(access, what)
        async with connected(session.access, access.path(guest.CONSOLE if stream == "console" else stream)) as remote:
            await _exchange(socket, remote, is_alive)
    except PaddockError as error:
        body = problems.body_of(error)
        socket.close(_FIRST_CODE + body.code, _short(". ".join(filter(None, (body.message, body.why)))))


def _check_phase(access: GuestAccess, what: str) -> None:
    """Raise `NotRunning` without a guest: some servers answer as if the machine lacked the device."""
    guest.check_running(access, what)
    if texts(access.machine.vmi, "status", "phase") in _BEFORE_RUNNING:
        raise NotRunning(f"cannot {what} of {access.name}", why="it is starting", fix="wait until it runs")


async def _exchange(socket: Socket, remote: WebSocket, is_alive: Callable[[], bool]) -> None:
    work = (_to_guest(socket, remote), _to_page(socket, remote), _until_ended(is_alive))
    tasks = [asyncio.create_task(each) for each in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _to_guest(socket: Socket, remote: WebSocket) -> None:
    while (message := await socket.receive()) is not None:
        await remote.send(message.encode() if isinstance(message, str) else message)


async def _to_page(socket: Socket, remote: WebSocket) -> None:
    while data := await remote.receive():
        socket.send(data)
        if socket.backlog > _BACKLOG_BYTES:
            await socket.drained()


async def _until_ended(is_alive: Callable[[], bool]) -> None:
    while is_alive():
        await asyncio.sleep(_CHECK_SECONDS)


def _short(text: str) -> str:
    return text.encode()[:_LONGEST_REASON].decode(errors="ignore")
