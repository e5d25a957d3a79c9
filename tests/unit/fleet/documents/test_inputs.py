"""Files, directories and standard input."""

import io
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from paddock.fleet.documents import inputs
from paddock.kubernetes.meta.manifests.limits import ManifestLimits
from paddock.kubernetes.meta.manifests.unreadable import UnreadableManifest


def test_a_directory_is_read_recursively_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("b.yaml", "a.yml", "z/c.json", "d/e/f.yaml", "notes.txt", ".hidden.yaml", ".git/g.yaml", "d/.h/i.yaml", "README.md"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("{}")
    assert list(inputs.sources(["."])) == ["a.yml", "b.yaml", "d/e/f.yaml", "z/c.json"]
    assert list(inputs.sources(["d", "notes.txt", "-"])) == ["d/e/f.yaml", "notes.txt", "-"]


def test_a_directory_without_manifests(tmp_path: Path) -> None:
    with pytest.raises(UnreadableManifest, match=r"no \*.yaml, \*.yml or \*.json in this directory; name a file, or another directory"):
        list(inputs.sources([str(tmp_path)]))


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"a: b")))
    assert inputs.read("-") == ("<stdin>", b"a: b")


def test_no_more_is_read_than_needed_to_refuse(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"x" * 100)
    assert inputs.read(str(file), ManifestLimits(size=10)) == (str(file), b"x" * 11)


@pytest.mark.parametrize(("name", "said"), [("missing", "no such file or directory"), ("a\0b", "cannot be read: embedded null byte")])
def test_what_cannot_be_opened(name: str, said: str) -> None:
    with pytest.raises(UnreadableManifest) as caught:
        inputs.read(name)
    assert str(caught.value) == f"{name}: {said}"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.touch(mode=0)
    with pytest.raises(UnreadableManifest, match="may not be read; check its permissions"):
        inputs.read(str(file))
