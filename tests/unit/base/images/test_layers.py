"""Layers of container images that somebody made to fill the memory."""

import io
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from paddock.base.images.errors import ImageRefused
from paddock.base.images.layers import LayerQuery, search
from tests.kit.servers.imageserver import layer

QUERY = (("disk", "x.img"),)


def query(directory: Path, paths: tuple[tuple[str, ...], ...] = QUERY) -> LayerQuery:
    return LayerQuery(paths, directory, lambda: 1 << 30, lambda: None)


def layers(directory: Path, *names: list[str]) -> list[Path]:
    """The files of layers that hold these empty files, the topmost first."""
    found = []
    for number, each in enumerate(names):
        found.append(directory / f"layer.{number}")
        found[-1].write_bytes(layer(dict.fromkeys(each, b""), pack=bytes))
    return found


def search_in(files: list[Path], wanted: LayerQuery) -> None:
    search([lambda file=file: file for file in files], wanted)  # type: ignore[misc]


def test_whiteouts_of_other_files_are_forgotten(tmp_path: Path) -> None:
    """Each of them would be kept with all parts of its name: 110 kB of a packed layer took 436 MiB."""
    elsewhere = [f"{number}/" + "a/" * 2000 + ".wh.x" for number in range(500)]
    files = layers(tmp_path, elsewhere, ["disk/x.img"])
    tracemalloc.start()
    try:
        search_in(files, wanted := query(tmp_path))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    assert list(wanted.found) == [QUERY[0]]


@pytest.mark.spec("kubevirt", 64)
@pytest.mark.parametrize("whiteout", ["disk/.wh.x.img", "disk/.wh..wh..opq", ".wh.disk", ".wh..wh..opq"])
@pytest.mark.parametrize("paths", [QUERY, ()])
def test_whiteouts_on_the_way_to_a_file_hide_it(whiteout: str, paths: tuple[tuple[str, ...], ...], tmp_path: Path) -> None:
    with pytest.raises(ImageRefused) as refused:
        search_in(layers(tmp_path, [whiteout], ["disk/x.img"]), query(tmp_path, paths))
    assert refused.value.code == "NotFound"


def test_a_layer_cannot_delete_any_number_of_names(tmp_path: Path) -> None:
    with pytest.raises(ImageRefused, match="deletes more than 10000 files"):
        search_in(layers(tmp_path, [f"disk/.wh.{number}" for number in range(10_001)]), query(tmp_path, ()))


@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_a_name_that_no_file_can_have_is_refused(form: int, tmp_path: Path) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=form) as tar:
        tar.addfile(tarfile.TarInfo("a/" * 2048 + "b"))
    (tmp_path / "layer").write_bytes(stream.getvalue())
    with pytest.raises(ImageRefused, match="a name of more than 4096 characters") as refused:
        search_in([tmp_path / "layer"], query(tmp_path))
    assert refused.value.code == "Unsafe"
