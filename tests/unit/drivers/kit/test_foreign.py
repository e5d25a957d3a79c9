"""Disks in formats of other hypervisors, unpacked with nothing else in sight."""

import asyncio
import hashlib
import http.server
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit import downloads, foreign
from paddock_drivers.kit.downloads import DownloadOrder

needs_qemu_img = pytest.mark.skipif(shutil.which("qemu-img") is None, reason="qemu-img is not installed")
CONTENT = b"".join(bytes([number % 251]) * 70_000 for number in range(24)) + bytes(1 << 20)
CONTENT += bytes(-len(CONTENT) % 65536)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    path = tmp_path / "disk.raw"
    path.write_bytes(CONTENT)
    return path


def converted(raw: Path, format: str, *options: str) -> Path:
    path = raw.with_suffix(f".{format}")
    subprocess.run(["qemu-img", "convert", "-f", "raw", "-O", format, *options, raw, path], check=True, timeout=60)
    return path


@needs_qemu_img
@pytest.mark.parametrize(
    ("format", "options"), [("vmdk", ("-o", "subformat=streamOptimized")), ("vmdk", ()), ("qcow2", ("-c",)), ("vhdx", ()), ("vdi", ())]
)
def test_the_bytes_of_a_disk_stay(raw: Path, format: str, options: tuple[str, ...]) -> None:
    target = raw.with_suffix(".out")
    size = asyncio.run(foreign.unpack(converted(raw, format, *options), format, target))
    assert size == len(CONTENT)
    assert target.read_bytes() == CONTENT


@needs_qemu_img
def test_a_file_that_names_others_is_refused(raw: Path) -> None:
    secret = raw.with_name("secret.vmdk")
    secret.write_text(
        '# Disk DescriptorFile\nversion=1\nCID=fffffffe\nparentCID=ffffffff\ncreateType="monolithicFlat"\n'
        f'RW {len(CONTENT) // 512} FLAT "{raw}" 0\n'
    )
    backed = raw.with_name("backed.qcow2")
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", raw, backed], check=True, timeout=60)
    for path, kind in ((secret, "vmdk"), (backed, "qcow2")):
        with pytest.raises(ProviderError) as error:
            asyncio.run(foreign.unpack(path, kind, raw.with_suffix(".stolen")))
        assert error.value.kind is ErrorKind.INVALID_SPEC
        assert not raw.with_suffix(".stolen").exists()


def test_an_unknown_format_is_not_supported(raw: Path) -> None:
    with pytest.raises(ProviderError) as error:
        asyncio.run(foreign.unpack(raw, "dmg", raw.with_suffix(".out")))
    assert error.value.kind is ErrorKind.NOT_SUPPORTED


def test_formats_are_recognized_by_their_beginning() -> None:
    assert foreign.recognized(b"KDMV\1\0\0\0") == "vmdk"
    assert foreign.recognized(b"QFI\xfb") == "qcow2"
    assert foreign.recognized(b"\xeb\x3c") == "raw"


# --- downloads --------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def server(raw: Path) -> Iterator[str]:
    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *given: object) -> None:
            super().__init__(*given, directory=str(raw.parent))  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


def test_a_download_has_the_checksum_of_the_order(server: str, tmp_path: Path) -> None:
    sums = [("md5", hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()), ("sha512", hashlib.sha512(CONTENT).hexdigest())]
    for number, expected in enumerate(sums):
        directory = tmp_path / str(number)
        directory.mkdir()
        order = DownloadOrder(url=f"{server}/disk.raw", checksum=expected, allowed=("127.0.0.1",))
        assert (asyncio.run(downloads.fetch(order, directory))).read_bytes() == CONTENT


def test_another_checksum_is_invalid(server: str, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    order = DownloadOrder(url=f"{server}/disk.raw", checksum=("sha256", "0" * 64), allowed=("127.0.0.1",))
    with pytest.raises(ProviderError) as error:
        asyncio.run(downloads.fetch(order, tmp_path / "d"))
    assert error.value.kind is ErrorKind.INVALID_SPEC
    assert not list((tmp_path / "d").iterdir())


def test_an_address_of_this_host_is_refused(server: str, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(ProviderError) as error:
        asyncio.run(downloads.fetch(DownloadOrder(url=f"{server}/disk.raw"), tmp_path / "d"))
    assert error.value.kind is ErrorKind.INVALID_SPEC
    assert "127.0.0.1" in str(error.value)


def test_checksums_of_requests_are_read() -> None:
    assert downloads.checksum("AB" * 32, None) == ("sha256", "ab" * 32)
    assert downloads.checksum("md5:" + "a" * 32, "sha256") == ("md5", "a" * 32)
    assert downloads.checksum(None, "sha256") is None
    with pytest.raises(ProviderError):
        downloads.checksum("ab", "sha256")


def test_the_digest_of_a_part(raw: Path) -> None:
    assert asyncio.run(downloads.digest(raw, "sha256", 10, 100)) == hashlib.sha256(CONTENT[10:110]).hexdigest()
