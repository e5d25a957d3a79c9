"""Images that somebody put into a pool: what refers to another file is refused by its first bytes."""

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from paddock_drivers.libvirt import imagesources


def head(*, version: int = 3, backing: int = 0, crypt: int = 0, incompatible: int = 0, extensions: bytes = b"") -> bytes:
    first = struct.pack(">4sIQIIQIIQQIIQ", b"QFI\xfb", version, backing, 4 if backing else 0, 16, 1 << 20, crypt, 1, 0, 0, 0, 0, 0)
    return first + struct.pack(">QQQII", incompatible, 0, 0, 4, 104) + extensions + bytes(64)


def test_a_plain_image_refers_to_nothing() -> None:
    assert imagesources.reference(head()) == ""
    assert imagesources.reference(head(version=2)) == ""


def test_what_is_not_qcow2_has_no_header() -> None:
    assert imagesources.reference(b"\xeb\x63" + bytes(510)) == ""


@pytest.mark.parametrize(
    "content",
    [
        head(backing=512),
        head(version=2, backing=512),
        head(crypt=2),
        head(incompatible=4),
        head(extensions=struct.pack(">II", 0x44415441, 8) + b"/etc/key"),
        head(extensions=struct.pack(">II", 0xE2792ACA, 3) + b"raw"),
        head(extensions=struct.pack(">II", 0x6803F857, 1 << 30)),
        head()[:40],
    ],
)
def test_references_are_found(content: bytes) -> None:
    assert imagesources.reference(content)


@pytest.mark.skipif(shutil.which("qemu-img") is None, reason="qemu-img is not installed")
def test_files_of_qemu_are_judged_alike(tmp_path: Path) -> None:
    plain, data = tmp_path / "plain.qcow2", tmp_path / "data.qcow2"
    layer = tmp_path / "layer.qcow2"
    for words in (
        ["-f", "qcow2", plain, "1M"],
        ["-f", "qcow2", "-F", "qcow2", "-b", plain, layer],
        ["-f", "qcow2", "-o", f"data_file={tmp_path}/secret", data, "1M"],
    ):
        subprocess.run(["qemu-img", "create", "-q", *map(str, words)], check=True)
    assert imagesources.reference(plain.read_bytes()) == ""
    assert imagesources.reference(layer.read_bytes())
    assert imagesources.reference(data.read_bytes())
