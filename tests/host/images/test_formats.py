"""Every format that is taken, in every wrapper, made by qemu-img and read back."""

import gzip
import lzma
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from paddock.base.images import zstd
from paddock.base.images.library import ImageError, Progress
from paddock.base.images.sources import Http
from tests.host.images.conftest import Fetch
from tests.kit.servers.imageserver import Server

pytestmark = [pytest.mark.needs("qemu"), pytest.mark.spec("kubevirt", 65)]
MB = 1 << 20
SIZE = 8 * MB
FORMATS = {
    "raw": ["-O", "raw"],
    "qcow2": ["-O", "qcow2"],
    "qcow2 of version 2": ["-O", "qcow2", "-o", "compat=0.10"],
    "qcow2 compressed": ["-O", "qcow2", "-c"],
    "qcow2 compressed with zstd": ["-O", "qcow2", "-c", "-o", "compression_type=zstd"],
    "qcow2 of small clusters": ["-O", "qcow2", "-o", "cluster_size=512"],
    "qcow2 with subclusters": ["-O", "qcow2", "-o", "extended_l2=on"],
    "vmdk": ["-O", "vmdk"],
    "vmdk streamOptimized": ["-O", "vmdk", "-o", "subformat=streamOptimized"],
    "vdi": ["-O", "vdi"],
    "vdi static": ["-O", "vdi", "-o", "static=on"],
    "vhd": ["-O", "vpc", "-o", "force_size=on"],
    "vhd fixed": ["-O", "vpc", "-o", "subformat=fixed,force_size=on"],
    "vhdx": ["-O", "vhdx"],
    "vhdx fixed": ["-O", "vhdx", "-o", "subformat=fixed"],
}
WRAPPERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "gz": lambda data: gzip.compress(data, 1),
    "xz": lambda data: lzma.compress(data, preset=0),
    "zst": lambda data: zstd.compress(data, 1),
}


def content() -> bytes:
    """A disk with data, a hole in it, and zeros at its end."""
    chance = random.Random(7)
    return chance.randbytes(MB) + bytes(3 * MB) + b"text " * (MB // 5) + bytes(MB - MB // 5 * 5) + bytes(SIZE - 5 * MB)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("formats")
    (folder / "raw").write_bytes(content())
    found = {}
    for number, (name, options) in enumerate(FORMATS.items()):
        path = folder / str(number)
        subprocess.run(["qemu-img", "convert", "-f", "raw", *options, folder / "raw", path], check=True)
        found[name] = path.read_bytes()
    return found


def read(image: Path, format: str, folder: Path) -> bytes:
    target = folder / "read.raw"
    subprocess.run(["qemu-img", "convert", "-f", format, "-O", "raw", image, target], check=True)
    return target.read_bytes()


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", FORMATS)
def test_a_disk_arrives_as_it_was(name: str, wrapper: str, made: dict[str, bytes], fetch: Fetch, server: Server, tmp_path: Path) -> None:
    # Its name says something else, and is not believed.
    url = server.put("/disk.iso", WRAPPERS[wrapper](made[name]))
    told: list[Progress] = []
    image = fetch(Http(url), told.append)
    assert read(image.path, image.format, tmp_path)[:SIZE] == content()
    assert image.virtual_size >= SIZE
    # Only raw and qcow2 are kept.
    assert image.format == ("qcow2" if name.startswith("qcow2") else "raw")
    assert image.path.stat().st_mode & 0o777 == 0o444
    assert image.path.stat().st_uid == image.path.parent.parent.stat().st_uid
    fractions = [progress.fraction for progress in told if progress.fraction is not None]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.needs("xorriso")
def test_an_iso_is_raw(wrapper: str, fetch: Fetch, server: Server, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "hello").write_text("hello")
    subprocess.run(["xorriso", "-as", "mkisofs", "-quiet", "-o", tmp_path / "x.iso", tmp_path / "files"], check=True)
    data = (tmp_path / "x.iso").read_bytes()
    image = fetch(Http(server.put("/disk.qcow2", WRAPPERS[wrapper](data))))
    assert (image.format, image.path.read_bytes()) == ("raw", data)


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("raw", "vhd fixed")])
def test_a_truncated_disk_is_refused(name: str, wrapper: str, made: dict[str, bytes], fetch: Fetch, server: Server) -> None:
    # What says its length nowhere, or only at its end, cannot be seen to be cut off: raw disks and fixed VHDs.
    data = made[name]
    for kept in (300, len(data) // 2):
        with pytest.raises(ImageError) as caught:
            fetch(Http(server.put("/disk", WRAPPERS[wrapper](data[:kept]), etag=f'"{kept}"')))
        assert caught.value.fatal


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_empty_files_and_web_pages(wrapper: str, fetch: Fetch, server: Server) -> None:
    with pytest.raises(ImageError, match="empty"):
        fetch(Http(server.put("/disk", WRAPPERS[wrapper](b""))))
    with pytest.raises(ImageError, match="web page"):
        fetch(Http(server.put("/page", WRAPPERS[wrapper](b"<!DOCTYPE html><title>Sorry</title>"))))


@pytest.mark.parametrize("wrapper", ["gz", "xz", "zst"])
def test_a_truncated_wrapper(wrapper: str, made: dict[str, bytes], fetch: Fetch, server: Server) -> None:
    packed = WRAPPERS[wrapper](made["raw"])
    with pytest.raises(ImageError, match="ends in its middle"):
        fetch(Http(server.put("/disk", packed[: len(packed) // 2])))
