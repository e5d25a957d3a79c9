"""Downloads over several connections: the same bytes, whatever order they come in and whichever connection fails."""

import asyncio
import hashlib
import random
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.base.images import ranges as parallel
from paddock.base.images.library import ImageError, ImageLibrary, ImageSettings
from paddock.base.images.settings import RangeRules
from paddock.base.images.sources import Http, RegistryImage
from paddock.base.images.sparse import disk_trouble
from tests.kit.declarations.sampling import one_in
from tests.kit.servers.imageserver import Fault, Handler, Registry, Seen, Served, Server, layer, running, send
from tests.unit.base.images.conftest import QUICK, Fetch, disk

SIZE = 64 * 1024
# Zeros at the beginning of a range and across a border, which are holes in the file.
BODY = disk(5 * SIZE) + bytes(3 * SIZE) + disk(20 * SIZE, seed=2) + bytes(SIZE // 2)


@pytest.fixture
def settings(settings: ImageSettings) -> ImageSettings:
    """At once, so that no test waits."""
    return msgspec.structs.replace(settings, ranges=RangeRules(connections=3, size=SIZE, seconds=0.0))


def ranges(server: Server) -> list[str]:
    return [seen.headers["range"] for seen in server.seen if "range" in seen.headers]


def test_all_connections_bring_one_file(fetch: Fetch, server: Server) -> None:
    image = fetch(Http(server.put("/disk", BODY), checksum=f"sha256:{hashlib.sha256(BODY).hexdigest()}"))
    assert image.path.read_bytes() == BODY
    # Holes stay holes.
    assert image.path.stat().st_blocks * 512 < len(BODY)
    assert len(ranges(server)) > 10
    assert all(seen.headers.get("if-range") == '"one"' for seen in server.seen if "range" in seen.headers)


def test_layers_of_container_images(root: Path, settings: ImageSettings) -> None:
    with running(Registry("bearer")) as registry:
        registry.image("disks/one", "v1", layer({"disk/one.img": BODY}, pack=lambda data: data))
        allowed = msgspec.structs.replace(settings, insecure_registries=frozenset([registry.host]))
        source = RegistryImage(f"{registry.host}/disks/one:v1", username="me", password="secret")
        assert fetch_one(source, root, allowed) == BODY
        assert len(ranges(registry)) > 10


@pytest.mark.parametrize("more", [{"ranges": False}, {"etag": 'W/"weak"'}, {"etag": ""}, {"chunked": True}])
def test_servers_that_allow_one_connection_only(more: dict[str, object], fetch: Fetch, server: Server) -> None:
    assert fetch(Http(server.put("/disk", BODY, **more))).path.read_bytes() == BODY
    assert not ranges(server)


class Picky(Server):
    """Answers a range after the first request with what a test chose; counts the ranges that it served."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[Fault | None] = []
        self.lock = threading.Lock()

    def handle_request_of(self, handler: Handler, seen: Seen, body: bytes, fault: Fault | None) -> None:
        served = self.files[seen.path]
        if "range" in seen.headers:
            with self.lock:
                fault = self.answers.pop(0) if self.answers else None
            if fault is not None and fault.status:
                handler.answer(fault.status, fault.body, fault.headers)
                return
        send(handler, seen, served, fault)


@pytest.mark.parametrize(
    "fault",
    [Fault(429), Fault(503), Fault(403), Fault(404), Fault(after=1000), Fault(after=0, then="close"), Fault(200, body=BODY[:100])],
    ids=["429", "503", "403", "404", "reset", "close", "200"],
)
def test_one_connection_that_goes_on_is_enough(fault: Fault, root: Path, settings: ImageSettings) -> None:
    with running(Picky()) as server:
        server.answers = [fault, fault]
        assert fetch_one(server.put("/disk", BODY), root, settings) == BODY


@one_in(3)
@given(st.integers(0, 10_000))
def test_whatever_fails_the_bytes_are_those_of_the_server(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    chance = random.Random(seed)
    faults = [None, None, None, Fault(503), Fault(after=chance.randrange(SIZE)), Fault(after=10, then="close")]
    settings = ImageSettings(
        allow=("127.0.0.0/8",),
        proxies={},
        attempts=100,
        backoff=QUICK,
        reserve_bytes=0,
        ranges=RangeRules(connections=chance.randrange(2, 5), size=chance.randrange(10_000, 3 * SIZE), seconds=0.0),
    )
    body = b"".join(chance.choice((chance.randbytes(40_000), bytes(SIZE), bytes(70_000))) for _ in range(20))
    with running(Picky()) as server:
        server.answers = [chance.choice(faults) for _ in range(60)]
        assert fetch_one(server.put("/disk", body), tmp_path_factory.mktemp("images"), settings) == padded(body)


def test_when_all_connections_fail_the_download_goes_on_where_it_was(root: Path, settings: ImageSettings) -> None:
    with running(Picky()) as server:
        server.faults["/disk"] = [Fault(after=5 * SIZE)]
        server.answers = [Fault(after=10_000)] * 6
        url = server.put("/disk", BODY)
        assert fetch_one(url, root, settings) == BODY
        # The one that goes on asks for the rest without an end.
        assert any(one.endswith("-") and one != "bytes=0-" for one in ranges(server))


async def cut(images: ImageLibrary, url: str, has_begun: Callable[[], bool]) -> None:
    """Begin a download, and end it in its middle."""
    task = asyncio.ensure_future(images.fetch(Http(url)))
    while not has_begun():
        await asyncio.sleep(0.005)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await images.close()


def test_a_crash_while_several_ranges_are_open_loses_only_those(root: Path, settings: ImageSettings) -> None:
    with running(Picky()) as server:
        url = server.put("/disk", BODY)
        # The second connection hangs, others go on: the file has a gap then.
        server.answers = [Fault(after=100, then="stall")]
        asyncio.run(cut(ImageLibrary(root, settings), url, lambda: len(ranges(server)) >= 5))
        server.seen.clear()
        assert fetch_one(url, root, settings) == BODY
        (first, *_) = ranges(server)
        assert first.endswith("-")
        assert int(first.removeprefix("bytes=").removesuffix("-")) >= 2 * SIZE


def test_a_file_that_changes_meanwhile_is_begun_anew(root: Path, settings: ImageSettings) -> None:
    other = disk(len(BODY), seed=9)

    class Changing(Picky):
        def handle_request_of(self, handler: Handler, seen: Seen, body: bytes, fault: Fault | None) -> None:
            if len(ranges(self)) == 6:
                self.files["/disk"] = Served(other, etag='"two"')
            super().handle_request_of(handler, seen, body, fault)

    with running(Changing()) as server:
        assert fetch_one(server.put("/disk", BODY), root, settings) == other


def test_a_full_disk_ends_all_connections(root: Path, settings: ImageSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise disk_trouble(OSError(28, "No space left on device"))

    monkeypatch.setattr(parallel, "check_room", full)
    with running(Picky()) as server, pytest.raises(ImageError) as caught:
        fetch_one(server.put("/disk", BODY), root, settings)
    assert caught.value.code == "NoSpace"
    assert not [thread for thread in threading.enumerate() if thread.name == "image range"]


@pytest.mark.parametrize(
    ("seconds", "done", "left", "expected"),
    [
        (0.9, 10, 10_000, False),
        (1.0, 10 << 20, 100 << 20, True),
        (1.0, 100 << 20, 150 << 20, False),
        (2.0, 100 << 20, 150 << 20, True),
        (5.0, 1 << 20, 15 << 20, False),
        (5.0, 0, 100 << 20, True),
    ],
)
def test_when_more_connections_pay(seconds: float, done: int, left: int, expected: bool) -> None:
    assert RangeRules().pay(seconds, done, left) is expected
    assert not RangeRules(connections=1).pay(seconds, done, left)


def fetch_one(source: str | RegistryImage, root: Path, settings: ImageSettings) -> bytes:
    async def run() -> bytes:
        images = ImageLibrary(root, settings)
        try:
            return (await images.fetch(Http(source) if isinstance(source, str) else source)).path.read_bytes()
        finally:
            await images.close()

    return asyncio.run(run())


def padded(body: bytes) -> bytes:
    return body + bytes(-len(body) % 512)
