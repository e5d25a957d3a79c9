"""The builds of known images whose bytes are pinned: this program's release names them, and a download is compared with the pin."""

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from paddock.base.images.errors import ImageRefused
from paddock.base.images.sources import read_checksum

_FILE = Path(__file__).with_name("pins.toml")
_PIECE = 1 << 20


@dataclass(frozen=True)
class ImagePin:
    """A build of an image. `signed_by` is the fingerprint of the key that signed the list of checksums; empty: nobody did."""

    release: str
    url: str
    checksum: str
    signed_by: str
    evidence: str


@cache
def pins(file: Path = _FILE) -> Mapping[tuple[str, str], ImagePin]:
    """Return the pins by name and architecture."""
    found: dict[str, dict[str, Any]] = tomllib.loads(file.read_text(encoding="utf-8"))
    return {(name, arch): ImagePin(**values) for name, each in found.items() for arch, values in each.items()}


def of(name: str, architecture: str) -> ImagePin | None:
    """Return the pin of a known image; None if it has none."""
    return pins().get((name, architecture))


def verify(path: Path, pin: ImagePin) -> None:
    """Compare a file of this host with a pin; raises `ImageRefused`. Nothing is asked on the network."""
    algorithm, expected = read_checksum(pin.checksum)
    digest = hashlib.new(algorithm)
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
    except OSError as error:
        raise ImageRefused("NotFound", f"cannot read {path}", why=error.strerror or str(error)) from error
    if digest.hexdigest() != expected:
        text = f"{path} is not the build {pin.release}: expected {pin.checksum}, got {algorithm}:{digest.hexdigest()}"
        raise ImageRefused("Checksum", text, fix=f"fetch it again from {pin.url}")
