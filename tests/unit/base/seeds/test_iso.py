"""The ISO writer, read back by a reader of its own. tests/host asks xorriso and the kernel of a guest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.base.seeds import iso
from paddock.base.seeds.errors import SeedError
from tests.unit.base.seeds.reader import Iso

FILES = {
    "meta-data": b'{"instance-id": "1"}',
    "user-data": b"#cloud-config\n" * 300,
    "empty": b"",
    "openstack/latest/meta_data.json": b"{}",
    "a/b/c/d/e/f/g/h/i/j/deep": b"deep",
    "k" * 253: b"a long name",
    "grüße-日本語-🎉.txt": b"unicode",
    **{f"some-key-{number:03}.conf": str(number).encode() for number in range(200)},
    **{f"{'x' * 200}-{number}": str(number).encode() for number in range(40)},
}


def test_linux_and_windows_find_every_file() -> None:
    image = Iso(iso.build("cidata", FILES))
    assert (image.label(), image.joliet_label()) == ("cidata", "cidata")
    assert image.rock_ridge() == FILES
    joliet = image.with_joliet()
    assert sorted(joliet.values()) == sorted(FILES.values())
    short = {name: data for name, data in FILES.items() if len(name) < 64}
    assert {name: data for name, data in joliet.items() if name in short} == short
    assert all(len(part.encode("utf-16-be")) <= 128 for name in joliet for part in name.split("/"))


def test_plain_names_are_plain_and_unique() -> None:
    plain = Iso(iso.build("cidata", FILES)).plain()
    assert sorted(plain.values()) == sorted(FILES.values())
    for name in plain:
        stem, _, suffix = name.split("/")[-1].removesuffix(";1").partition(".")
        assert len(stem) <= 8 and len(suffix) <= 3 and stem.isascii() and stem == stem.upper()


def test_rock_ridge_is_announced_and_files_are_for_reading() -> None:
    image = Iso(iso.build("cidata", FILES))
    assert image.signatures_of_root()[0] == b"SP"
    assert b"ER" in image.signatures_of_root()
    assert image.modes() == {0o100444, 0o040555}


def test_path_tables_name_every_directory() -> None:
    image = Iso(iso.build("cidata", FILES))
    for descriptor in (image.primary, image.joliet):
        table = image.path_table(descriptor)
        assert {extent for _, extent, _ in table} == image.directories(descriptor)
        assert table[0][0] == b"\0"
        assert [parent for _, _, parent in table] == sorted(parent for _, _, parent in table)


def test_the_same_files_give_the_same_bytes() -> None:
    assert iso.build("x", FILES) == iso.build("x", dict(reversed(FILES.items())))
    assert iso.build("x", FILES) != iso.build("y", FILES)


def test_a_disk_may_be_empty() -> None:
    image = Iso(iso.build("cfgdata", {}))
    assert image.rock_ridge() == image.with_joliet() == {}


@pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", "..", "a/../b", "./a", "a\0b", "x" * 256, "ü" * 128])
def test_no_path_leads_out_of_the_disk(path: str) -> None:
    with pytest.raises(SeedError):
        iso.build("x", {path: b""})


def test_a_file_is_no_directory() -> None:
    with pytest.raises(SeedError, match="is a file"):
        iso.build("x", {"a": b"", "a/b": b""})


@pytest.mark.parametrize("label", ["", "x" * 33, "ümlaut", "line\nend"])
def test_a_label_is_plain(label: str) -> None:
    with pytest.raises(SeedError, match="label"):
        iso.build(label, {})


_PARTS = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=90)
_NAMES = _PARTS.filter(lambda part: part not in (".", "..") and len(part.encode()) <= 255)


@given(st.dictionaries(_NAMES, st.binary(max_size=5000), max_size=30))
def test_whatever_the_names_are(files: dict[str, bytes]) -> None:
    image = Iso(iso.build("any", files))
    assert image.rock_ridge() == files
    assert sorted(image.with_joliet().values()) == sorted(files.values()) == sorted(image.plain().values())
