"""Image servers that send too little, or contradict themselves: an import has an end, and leaves slots for others."""

import asyncio
import contextlib
import socket
import threading
from pathlib import Path

import msgspec
import pytest

from paddock.base.images.library import ImageError, ImageLibrary, ImageSettings
from paddock.base.images.sources import Http
from tests.coroutines import run_by
from tests.kit.servers.imageserver import Fault, Server
from tests.unit.base.images.conftest import disk

BODY = disk()


@pytest.mark.parametrize("then", ["stall", "drip"])
@run_by(asyncio.run)
async def test_slow_servers_keep_nobody_else_waiting(server: Server, root: Path, settings: ImageSettings, then: str) -> None:
    slow = [server.put(f"/slow{number}", BODY) for number in range(settings.workers * 2)]
    for number in range(len(slow)):
        server.faults[f"/slow{number}"] = [Fault(after=100, then=then)] * 9
    images = ImageLibrary(root, settings)
    waiting = [asyncio.ensure_future(images.fetch(Http(url), owner="slow")) for url in slow]
    while len(server.seen) < settings.workers // 2:
        await asyncio.sleep(0.005)
    image = await images.fetch(Http(server.put("/quick", BODY)), owner="other")
    assert not any(task.done() for task in waiting)
    # Half of the slots are the most that one owner has.
    assert len(server.seen) == settings.workers // 2 + 1
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await images.close()
    assert image.path.read_bytes() == BODY


@run_by(asyncio.run)
async def test_slow_servers_of_two_namespaces_keep_no_third_waiting(server: Server, root: Path, settings: ImageSettings) -> None:
    slow = [server.put(f"/slow{number}", BODY) for number in range(settings.workers)]
    for number in range(len(slow)):
        server.faults[f"/slow{number}"] = [Fault(after=100, then="drip")] * 9
    images = ImageLibrary(root, settings)
    waiting = [asyncio.ensure_future(images.fetch(Http(url), owner=f"slow{number % 2}")) for number, url in enumerate(slow)]
    while len(server.seen) < settings.workers:
        await asyncio.sleep(0.005)
    image = await images.fetch(Http(server.put("/quick", BODY)), owner="other")
    assert not any(task.done() for task in waiting)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await images.close()
    assert image.path.read_bytes() == BODY


@run_by(asyncio.run)
async def test_a_server_that_drips_is_given_up(server: Server, root: Path, settings: ImageSettings) -> None:
    url = server.put("/disk", BODY)
    server.faults["/disk"] = [Fault(after=100, then="drip")] * 9
    impatient = msgspec.structs.replace(settings, stall_seconds=0.2)
    images = ImageLibrary(root, impatient)
    try:
        with pytest.raises(ImageError, match="sends less than 1024 bytes a second") as caught:
            await images.fetch(Http(url))
    finally:
        server.released.set()
        await images.close()
    # Once: its slot is free for others until it is tried again.
    assert (caught.value.code, caught.value.fatal, len(server.seen)) == ("TooSlow", False, 1)


@run_by(asyncio.run)
async def test_pieces_of_a_few_bytes_are_failures_in_a_row(server: Server, root: Path, settings: ImageSettings) -> None:
    url = server.put("/disk", BODY)
    server.faults["/disk"] = [Fault(after=10, then="close")] * 20
    impatient = msgspec.structs.replace(settings, attempts=3)
    with pytest.raises(ImageError, match="ended its answer"):
        await ImageLibrary(root, impatient).fetch(Http(url))
    assert len(server.seen) == 3


def raw_server(pieces: list[bytes], released: threading.Event) -> str:
    """The address of a server that sends these pieces, one every twentieth of a second, whatever it is asked."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener, contextlib.suppress(OSError):
            while not released.is_set():
                connection, _ = listener.accept()
                with connection, contextlib.suppress(OSError):
                    connection.recv(65536)
                    for piece in pieces:
                        connection.sendall(piece)
                        released.wait(0.05)

    threading.Thread(target=serve, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}/disk"


@run_by(asyncio.run)
async def test_a_head_that_drips_is_given_up(root: Path, settings: ImageSettings) -> None:
    released = threading.Event()
    url = raw_server([b"HTTP/1.1 200 OK\r\n", *[b"a"] * 1000], released)
    impatient = msgspec.structs.replace(settings, stall_seconds=0.3, connect_seconds=0.1, attempts=1)
    with pytest.raises(ImageError) as caught:
        await ImageLibrary(root, impatient).fetch(Http(url))
    released.set()
    assert caught.value.code == "TimedOut"


@pytest.mark.parametrize("lengths", [("10", "3000000"), ("3000000", "10"), ("10, 3000000",)])
@run_by(asyncio.run)
async def test_an_answer_of_two_lengths_is_refused(root: Path, settings: ImageSettings, lengths: tuple[str, ...]) -> None:
    released = threading.Event()
    head = "".join(f"Content-Length: {length}\r\n" for length in lengths)
    url = raw_server([f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + BODY], released)
    with pytest.raises(ImageError, match="gives its answer several lengths \\(10, 3000000\\)"):
        await ImageLibrary(root, msgspec.structs.replace(settings, attempts=1)).fetch(Http(url))
    released.set()
