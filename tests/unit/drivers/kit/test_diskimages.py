"""Images on their way: what leaves is one plain file, whatever came in."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kit import conversion
from paddock_drivers.kit.conversion import OpenLayer
from paddock_drivers.kit.diskimages import DiskImages, WebImage
from tests.coroutines import run_by

pytestmark = pytest.mark.skipif(shutil.which("qemu-img") is None, reason="qemu-img is not installed")
MIB = 1 << 20


def made(path: Path, kind: str, *options: str) -> Path:
    raw = path.with_suffix(".plain")
    raw.write_bytes(bytes(MIB) + b"\x07" * MIB + bytes(2 * MIB))
    subprocess.run(["qemu-img", "convert", "-f", "raw", "-O", kind, *options, raw, path], check=True, timeout=60)
    return path


async def chunks(path: Path) -> AsyncIterator[bytes]:
    yield path.read_bytes()


def received(path: Path, kind: str, tmp_path: Path) -> bytes:
    async def run() -> bytes:
        images = DiskImages(tmp_path)
        try:
            async with images.received(chunks(path), path.stat().st_size, kind) as disk:
                assert disk.size == 4 * MIB
                disk.file.seek(0)
                return disk.file.read()
        finally:
            await images.close()

    return asyncio.run(run())


@pytest.mark.parametrize("kind", ["raw", "qcow2", "vmdk", "vdi"])
def test_any_format_becomes_a_plain_disk(kind: str, tmp_path: Path) -> None:
    path = made(tmp_path / f"disk.{kind}", kind)
    assert received(path, "raw", tmp_path) == (tmp_path / "disk.plain").read_bytes()
    out = tmp_path / "out.qcow2"
    out.write_bytes(received(path, "qcow2", tmp_path))
    told = subprocess.run(["qemu-img", "info", "-f", "qcow2", out], check=True, capture_output=True, text=True, timeout=60).stdout
    assert "compat: 1.1" in told and "backing" not in told
    words = ["qemu-img", "compare", "-f", "qcow2", "-F", "raw", str(out), str(tmp_path / "disk.plain")]
    subprocess.run(words, check=True, timeout=60)
    assert not any(tmp_path.glob("paddock-images/sha256/*"))


def test_a_disk_that_refers_to_another_file_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"s" * MIB)
    path = tmp_path / "backed.qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", secret, path], check=True, timeout=60)
    with pytest.raises(ProviderError, match="backing file") as caught:
        received(path, "raw", tmp_path)
    assert caught.value.kind is ErrorKind.INVALID_SPEC


async def flat(target: Path, layers: tuple[Path, ...], snapshot: str = "") -> bytes:
    """Return the bytes of an image with its layers."""
    with ExitStack() as stack:
        out = stack.enter_context(target.open("wb+"))
        opened = [OpenLayer(stack.enter_context(each.open("rb")).fileno(), "qcow2") for each in layers]
        await conversion.flatten(opened, out.fileno(), "raw", snapshot=snapshot)
    return target.read_bytes()


@run_by(asyncio.run)
async def test_layers_are_read_by_hand_and_names_inside_lead_nowhere(tmp_path: Path) -> None:
    base = made(tmp_path / "base.qcow2", "qcow2")
    layer, decoy = tmp_path / "layer.qcow2", tmp_path / "decoy.raw"
    decoy.write_bytes(b"x" * 4 * MIB)
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", decoy, layer], check=True, timeout=60)
    subprocess.run(["qemu-img", "snapshot", "-c", "one", base], check=True, timeout=60)
    subprocess.run(["qemu-io", "-f", "qcow2", "-c", "write -P 9 0 1M", str(base)], check=True, capture_output=True, timeout=60)
    plain = (tmp_path / "base.plain").read_bytes()
    assert await flat(tmp_path / "flat", (layer, base)) == b"\x09" * MIB + plain[MIB:]
    assert await flat(tmp_path / "flat", (base,), "one") == plain
    with pytest.raises(ProviderError):
        await flat(tmp_path / "flat", (base,), "two")


def test_an_address_shows_in_no_representation() -> None:
    assert "secret" not in repr(WebImage(url="http://user:secret@host/x", headers=(("X", "secret"),)))
