"""Links to disks: which address is taken, the length of a disk, and one that ends too early."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from paddock.driverkit import disklinks
from paddock.driverkit.disklinks import DamagedExport, DiskLink, HttpLinkChannel
from tests.unit.client.talking import listening, play


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
def test_the_server_says_how_long_a_disk_is(answer: bytes, length: int | None) -> None:
    heard: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        await writer.drain()

    async def script() -> None:
        async with listening(talk) as port:
            here = f"http://127.0.0.1:{port}"
            asked = DiskLink(f"{here}/disk.img.gz", "", "secret", packed=True, raw_url=f"{here}/disk.img")
            assert await HttpLinkChannel().length(asked) == length
            assert heard[-1].startswith(b"HEAD /disk.img HTTP/1.1\r\n") and b"x-kubevirt-export-token: secret" in heard[-1]

    play(script)


def test_a_disk_that_ends_too_early_is_no_disk() -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"abc"
        yield b"de"

    async def script() -> None:
        assert [each async for each in disklinks.whole(chunks(), 5)] == [b"abc", b"de"]
        assert [each async for each in disklinks.whole(chunks(), None)] == [b"abc", b"de"]
        with pytest.raises(DamagedExport, match="5 of 6 bytes came"):
            [each async for each in disklinks.whole(chunks(), 6)]

    play(script)
