"""`paddock image build`, without building anything."""

import io
import json
from pathlib import Path

import pytest

from paddock.app.commands import image_build
from paddock.base.errors import Terminal
from paddock.base.images.build import debian, tiny
from paddock.base.images.build.tiny import TinyImage
from paddock.cli.console import Console


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> TinyImage:
    """Return the results of the builders."""
    paths = [tmp_path / name for name in ("tiny.qcow2", "vmlinuz", "vmlinux", "initrd")]
    for path in paths:
        path.write_text(path.name)
    disk, kernel, bare, initrd = paths
    image = TinyImage(disk, kernel, bare, initrd, "debian")
    monkeypatch.setattr(tiny, "build", lambda cache, kind, jobs: image)
    monkeypatch.setattr(debian, "build", lambda cache, name: paths[0])
    return image


def said(*words: str) -> str:
    out = io.BytesIO()
    console = Console(out, io.BytesIO())
    assert image_build.run(list(words), console) == 0
    return out.getvalue().decode()


def test_it_says_where_the_files_are(built: TinyImage) -> None:
    assert json.loads(said("tiny", "--format", "json")) == {
        "disk": str(built.disk),
        "kernel": str(built.kernel),
        "bare": str(built.bare),
        "initrd": str(built.initrd),
    }
    assert said("debian-12").split()[:2] == ["disk", str(built.disk)]


def test_it_copies_them(built: TinyImage, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    said("tiny", "-o", str(folder))
    found = {path.name: path.read_text() for path in folder.iterdir()}
    assert found == {name: name for name in ("tiny.qcow2", "vmlinuz", "vmlinux", "initrd")}


@pytest.mark.parametrize("words", [("nix",), ("tiny", "--kernel", "mine"), ()])
def test_what_it_cannot_build_is_said(words: tuple[str, ...]) -> None:
    with pytest.raises(Terminal):
        said(*words)
