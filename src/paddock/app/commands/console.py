"""`paddock console`: connects the terminal to the serial console of a machine; no virtctl is needed."""

import asyncio
import contextlib
import os
import sys
import termios
import tty
from collections.abc import Iterator

from paddock.base.clock import SystemClock
from paddock.base.directories import running_kubeconfigs
from paddock.cli import arguments
from paddock.cli.console import Console
from paddock.client import kubeconfig
from paddock.client.http.websocket import WebSocket, connected

TEXT = "Connect to the serial console of a machine. Ctrl+] disconnects."
_PATH = "/apis/subresources.kubevirt.io/v1/namespaces/{}/virtualmachineinstances/{}/console"
_LEAVE = b"\x1d"
_CHUNK = 4096


def run(given: list[str], console: Console) -> int:
    """Connect the terminal with the console until either side ends."""
    options = arguments.parser("console", TEXT, "[OPTIONS] NAME")
    options.add_argument("name", metavar="NAME", help="Name of the machine")
    arguments.add_server(options)
    parsed = options.parse_args(given)
    access = kubeconfig.find(
        os.environ, SystemClock(), explicit=parsed.kubeconfig, context=parsed.context, local=running_kubeconfigs(os.environ)
    )
    namespace = parsed.namespace or access.namespace
    for word in (parsed.name, namespace):
        arguments.check_name(word)

    async def talk() -> None:
        async with connected(access, _PATH.format(namespace, parsed.name)) as socket:
            console.say("paddock: connected; ctrl+] leaves, Enter shows a prompt")
            with raw(sys.stdin.fileno()):
                await exchange(socket, sys.stdin.fileno(), sys.stdout.fileno())

    asyncio.run(talk())
    console.say("\r")
    return 0


@contextlib.contextmanager
def raw(descriptor: int) -> Iterator[None]:
    """Every key goes to the machine, ctrl+C too. Whatever happens, the terminal is put back."""
    if not os.isatty(descriptor):
        yield
        return
    before = termios.tcgetattr(descriptor)
    try:
        tty.setraw(descriptor)
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


async def exchange(socket: WebSocket, source: int, target: int) -> None:
    """Bytes both ways, until ctrl+], the end of what is typed, or the end of the console."""

    keys = _keys(source)

    async def typed() -> None:
        while data := await keys.get():
            before, leaves, _ = data.partition(_LEAVE)
            if before:
                await socket.send(before)
            if leaves:
                return

    async def said() -> None:
        while data := await socket.receive():
            await asyncio.to_thread(_write, target, data)

    tasks = [asyncio.create_task(typed()), asyncio.create_task(said())]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with contextlib.suppress(ValueError, OSError):
            asyncio.get_running_loop().remove_reader(source)


def _keys(source: int) -> asyncio.Queue[bytes]:
    """Return a queue of the typed bytes; an empty piece ends it. A reading thread could not be stopped."""
    keys: asyncio.Queue[bytes] = asyncio.Queue()
    try:
        asyncio.get_running_loop().add_reader(source, lambda: keys.put_nowait(os.read(source, _CHUNK)))
    except PermissionError:
        # A file: it is all there already.
        while data := os.read(source, _CHUNK):
            keys.put_nowait(data)
        keys.put_nowait(b"")
    return keys


def _write(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]
