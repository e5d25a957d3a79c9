"""Links to disks: which address is taken, the length of a disk, and one that ends too early."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from paddock.kubernetes.client.errors import Unreachable
from paddock.kubevirt import disklinks
from paddock.kubevirt.disklinks import DamagedExport, DiskLink, HttpLinkChannel, LinkRefused
from tests.coroutines import played_by
from tests.unit.kubernetes.client.talking import listening, play


def link(*formats: str) -> DiskLink | None:
    volume = {"name": "root", "formats": [{"format": each, "url": f"https://there/{each}"} for each in formats]}
    return disklinks.export_link({"cert": "CA", "volumes": [volume]}, "root", "token")


def test_the_compressed_disk_is_fetched_and_the_raw_one_asked_for_its_length() -> None:
    assert link("raw", "gzip") == DiskLink("https://there/gzip", "CA", "token", packed=True, raw_url="https://there/raw")
    assert link("raw") == DiskLink("https://there/raw", "CA", "token", raw_url="https://there/raw")
    assert link("gzip") == DiskLink("https://there/gzip", "CA", "token", packed=True)
    assert link("tar.gz") is None


@pytest.mark.parametrize(
    ("answer", "length"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1048576\r\n\r\n", 1 << 20),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", None),
        (b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 7\r\n\r\n", None),
    ],
)
@played_by(play)
async def test_the_server_says_how_long_a_disk_is(answer: bytes, length: int | None) -> None:
    heard: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        await writer.drain()

    async with listening(talk) as port:
        here = f"http://127.0.0.1:{port}"
        asked = DiskLink(f"{here}/disk.img.gz", "", "secret", packed=True, raw_url=f"{here}/disk.img")
        assert await HttpLinkChannel().length(asked) == length
        assert heard[-1].startswith(b"HEAD /disk.img HTTP/1.1\r\n") and b"x-kubevirt-export-token: secret" in heard[-1]


HALF = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nhalf of it"
BUSY = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy"


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        (HALF, BUSY, "the export server 127.0.0.1:{source} of the source https://here closed the connection"),
        (BUSY, BUSY, "the export server 127.0.0.1:{source} of the source https://here answers 503 to the download of a disk"),
        (b"", BUSY, "the upload proxy 127.0.0.1:{target} of the target https://there answers 503 to the upload of a disk: busy"),
        (b"", b"", "the upload proxy 127.0.0.1:{target} of the target https://there closed the connection"),
    ],
)
@played_by(play)
async def test_a_disk_that_breaks_off_names_the_server_that_broke_it(source: bytes, target: bytes, said: str) -> None:
    """Both connections are open at once. Without an answer, the source sends without end, and the target closes."""

    async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(source or HALF)
        while not source:
            writer.write(b"x" * 10)
            await writer.drain()
            await asyncio.sleep(0)
        await writer.drain()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if source:
            await reader.read()
        writer.write(target)
        await writer.drain()

    async with listening(send) as one, listening(take) as two:
        export = DiskLink(f"http://127.0.0.1:{one}/disk.img", "", "", owner="the source https://here")
        upload = DiskLink(f"http://127.0.0.1:{two}/upload", "", "", kind=disklinks.UPLOAD, owner="the target https://there")
        channel = HttpLinkChannel()
        with pytest.raises((Unreachable, LinkRefused)) as caught:
            await channel.send(upload, channel.receive(export), None)
        assert str(caught.value).startswith(said.format(source=one, target=two))


@played_by(play)
async def test_a_disk_that_ends_too_early_is_no_disk() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"abc"
        yield b"de"

    assert [each async for each in disklinks.whole(chunks(), 5)] == [b"abc", b"de"]
    assert [each async for each in disklinks.whole(chunks(), None)] == [b"abc", b"de"]
    with pytest.raises(DamagedExport, match="5 of 6 bytes came"):
        [each async for each in disklinks.whole(chunks(), 6)]
