"""Pins of images: the list of checksums, the newest build, and what is refused. Signatures: tests/host/images/test_signatures.py."""

import hashlib
from pathlib import Path

import pytest

from paddock.base.images import catalogue, pins
from paddock.base.images.errors import ImageRefused
from paddock.base.images.sources import checksum_of
from tools import imagepins

SUM = hashlib.sha256(b"new").hexdigest()
RECIPE = imagepins.PinRecipe("https://x/y/", r'href="(\d{8})/"', "disk-{arch}-{release}.img", "SUMS", "sha256")
PAGES = {
    "https://x/y/": b'<a href="20240101/">a</a> <a href="20250301/">b</a> <a href="latest/">c</a>',
    "https://x/y/20250301/SUMS": f"{SUM} *disk-amd64-20250301.img\n".encode(),
}


def test_the_newest_build_becomes_an_entry(tmp_path: Path) -> None:
    file = tmp_path / "pins.toml"
    file.write_text(imagepins.entry("one-1.2", "amd64", RECIPE, PAGES.__getitem__, tmp_path))
    (found,) = pins.pins(file).values()
    assert pins.pins(file).keys() == {("one-1.2", "amd64")}
    assert (found.release, found.url) == ("20250301", "https://x/y/20250301/disk-amd64-20250301.img")
    assert found.checksum == f"sha256:{SUM}" and found.signed_by == "" and "no signature" in found.evidence


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{SUM}  a.img\n", {"a.img": SUM}),
        (f"{SUM} *a.img\n", {"a.img": SUM}),
        (f"SHA256 (a.img) = {SUM}\n", {"a.img": SUM}),
        (f"# comment\n{SUM[:32]}  md5.img\n", {}),
    ],
)
def test_lists_of_checksums(text: str, expected: dict[str, str]) -> None:
    assert imagepins.checksums(text) == expected


def test_an_image_that_the_list_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(imagepins.PinRefused, match="lacks disk-arm64"):
        imagepins.entry("one", "arm64", RECIPE, PAGES.__getitem__, tmp_path)


@pytest.mark.parametrize("place", pins.pins())
def test_a_pin_is_of_a_known_image_and_of_bytes_that_do_not_change(place: tuple[str, str]) -> None:
    pin = pins.pins()[place]
    assert place[0] in catalogue.KNOWN and pin.release in pin.url and "latest" not in pin.url
    wanted = checksum_of(pin.checksum)
    assert wanted is not None and wanted[0] in ("sha256", "sha512") and pin.evidence and pin.url.startswith("https://")


def test_a_file_is_compared_without_a_network(tmp_path: Path) -> None:
    pin = pins.ImagePin("1", "https://x/1", f"sha256:{SUM}", "", "test")
    (tmp_path / "good").write_bytes(b"new")
    pins.verify(tmp_path / "good", pin)
    (tmp_path / "bad").write_bytes(b"old")
    with pytest.raises(ImageRefused, match="is not the build 1"):
        pins.verify(tmp_path / "bad", pin)
    with pytest.raises(ImageRefused, match="cannot read"):
        pins.verify(tmp_path / "none", pin)
