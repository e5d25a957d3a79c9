"""Archives that somebody sent: what is refused is named as it stands in the archive, and nothing of this host is told."""

import bz2
import contextlib
import filecmp
import gzip
import io
import lzma
import os
import random
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from paddock.base.images import zstd
from paddock.engine.storage import archives
from paddock.engine.storage.errors import NotAllowed, TooSmall


@pytest.mark.parametrize(
    ("name", "kind", "target", "why"),
    [
        ("../../escape", tarfile.REGTYPE, "", "'../../escape' leads out of the volume"),
        ("link", tarfile.SYMTYPE, "/etc/passwd", "'link' is a link to an absolute name"),
        ("link", tarfile.SYMTYPE, "../../../secret", "'link' is a link that leads out of the volume"),
        ("pipe", tarfile.FIFOTYPE, "", "'pipe' is a device"),
    ],
)
def test_what_leads_out_is_refused_without_a_word_about_the_host(tmp_path: Path, name: str, kind: bytes, target: str, why: str) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    with tarfile.open(tmp_path / "sent.tar", "w") as tar:
        tar.addfile(member, io.BytesIO())
    (tmp_path / "volume").mkdir()
    with pytest.raises(NotAllowed) as refused:
        archives.unpack(tmp_path / "sent.tar", tmp_path / "volume", 1 << 20)
    assert why in str(refused.value) and str(tmp_path) not in str(refused.value)
    assert list((tmp_path / "volume").iterdir()) == []


def packed(place: Path, *members: tuple[str, bytes, str]) -> Path:
    """An archive of these members: name, kind, and the target of a link or the content of a file."""
    with tarfile.open(place, "w") as tar:
        for name, kind, text in members:
            member = tarfile.TarInfo(name)
            member.type, member.mode, member.uid, member.uname = kind, 0o6777, 4711, "somebody"
            if kind == tarfile.REGTYPE:
                member.size = len(text)
            else:
                member.linkname = text
            tar.addfile(member, io.BytesIO(text.encode()))
    return place


def test_files_directories_and_links_inside_are_unpacked(tmp_path: Path) -> None:
    sent = packed(
        tmp_path / "sent.tar",
        ("./a", tarfile.DIRTYPE, ""),
        ("a/file", tarfile.REGTYPE, "content"),
        ("a/link", tarfile.SYMTYPE, "file"),
        ("up", tarfile.SYMTYPE, "a/file"),
        ("a/b", tarfile.DIRTYPE, ""),
        ("a/b/over", tarfile.SYMTYPE, "../../up"),
        ("same", tarfile.LNKTYPE, "a/file"),
        ("/rooted", tarfile.REGTYPE, "inside"),
    )
    volume = tmp_path / "volume"
    volume.mkdir()
    archives.unpack(sent, volume, 1 << 20)
    assert {name: (volume / name).read_text() for name in ("a/file", "a/link", "up", "a/b/over", "same", "rooted")} == {
        **dict.fromkeys(("a/file", "a/link", "up", "a/b/over", "same"), "content"),
        "rooted": "inside",
    }
    status = (volume / "a" / "file").stat()
    # Neither rights of somebody else nor the right of others to write are taken over.
    assert status.st_mode & 0o7022 == 0
    assert status.st_uid == os.geteuid()


@pytest.mark.parametrize(
    "members",
    [
        [("out", tarfile.SYMTYPE, "/tmp"), ("out/x", tarfile.REGTYPE, "x")],
        [("d", tarfile.DIRTYPE, ""), ("d/out", tarfile.SYMTYPE, "../../outside"), ("d/out/x", tarfile.REGTYPE, "x")],
        # Each step looks harmless: the link leads to its own directory, so going up from behind it goes further than it seems.
        [("l", tarfile.SYMTYPE, "."), ("m", tarfile.SYMTYPE, "l/l/../../outside"), ("m/x", tarfile.REGTYPE, "x")],
        [("secret", tarfile.LNKTYPE, "../outside/secret")],
        [("secret", tarfile.LNKTYPE, "/etc/passwd")],
        [("a/../../outside/x", tarfile.REGTYPE, "x")],
        [("device", tarfile.CHRTYPE, "")],
        # CVE-2025-4517: the way is longer than any path, so following it ends in its middle, and going up from there is not seen.
        [
            *(
                step
                for depth in range(16)
                for step in (
                    ("/".join(["d" * 247] * (depth + 1)), tarfile.DIRTYPE, ""),
                    ("/".join([*["d" * 247] * depth, "abcdefghijklmnop"[depth]]), tarfile.SYMTYPE, "d" * 247),
                )
            ),
            ("/".join("abcdefghijklmnop") + "/" + "l" * 254, tarfile.SYMTYPE, "../" * 16),
            ("escape", tarfile.SYMTYPE, "/".join("abcdefghijklmnop") + "/" + "l" * 254 + "/../outside"),
            ("escape/x", tarfile.REGTYPE, "x"),
        ],
    ],
)
def test_no_trick_leads_out(tmp_path: Path, members: list[tuple[str, bytes, str]]) -> None:
    outside, volume = tmp_path / "outside", tmp_path / "volume"
    for each in (outside, volume):
        each.mkdir()
    (outside / "secret").write_text("secret")
    # Newer libraries shorten a link's target in place of refusing it.
    with contextlib.suppress(NotAllowed):
        archives.unpack(packed(tmp_path / "sent.tar", *members), volume, 1 << 20)
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_text() == "secret"
    assert not (volume / "secret").exists()
    leading_out = [path for path in volume.rglob("*") if not path.resolve().is_relative_to(volume)]
    assert leading_out == []


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "volume" / "d").mkdir(parents=True)
    members = [("l", tarfile.SYMTYPE, "d"), ("l/x", tarfile.REGTYPE, "x")]
    with pytest.raises(NotAllowed, match="'l/x' lies behind a link"):
        archives.unpack(packed(tmp_path / "sent.tar", *members), tmp_path / "volume", 1 << 20)
    members = [("d/e", tarfile.DIRTYPE, ""), ("d/e/l", tarfile.SYMTYPE, "../../none"), ("h", tarfile.LNKTYPE, "d/e/l")]
    with pytest.raises(NotAllowed, match="'h' lies behind a link"):
        archives.unpack(packed(tmp_path / "sent.tar", *members), tmp_path / "volume", 1 << 20)
    members = [("f", tarfile.SYMTYPE, "d/y"), ("f", tarfile.REGTYPE, "x")]
    with pytest.raises(NotAllowed, match="'f' lies in the place of a link"):
        archives.unpack(packed(tmp_path / "sent.tar", *members), tmp_path / "volume", 1 << 20)


# --- forms ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress, zstd.compress])
def test_archives_may_be_packed(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    sent = packed(tmp_path / "sent.tar", ("d/file", tarfile.REGTYPE, "content" * 100_000))
    sent.write_bytes(pack(sent.read_bytes()))
    (tmp_path / "volume").mkdir()
    archives.unpack(sent, tmp_path / "volume", 1 << 20)
    assert (tmp_path / "volume/d/file").read_text() == "content" * 100_000


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_names_and_times_are_kept(form: int, tmp_path: Path) -> None:
    name = "/".join(["n" * 60, "m" * 60, "f\u00e4"])
    with tarfile.open(tmp_path / "sent.tar", "w", format=form) as tar:
        member = tarfile.TarInfo(name)
        member.mode, member.mtime = 0o640, 1_700_000_000.25 if form == tarfile.PAX_FORMAT else 1_700_000_000
        tar.addfile(member)
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, name if form != tarfile.USTAR_FORMAT else "short"
        tar.addfile(link)
    (tmp_path / "volume").mkdir()
    archives.unpack(tmp_path / "sent.tar", tmp_path / "volume", 1 << 20)
    status = (tmp_path / "volume" / name).stat()
    assert (status.st_mode & 0o777, status.st_mtime) == (0o640, member.mtime)
    assert os.readlink(tmp_path / "volume/link") == link.linkname


@pytest.mark.skipif(shutil.which("tar") is None, reason="GNU tar makes sparse archives")
@pytest.mark.parametrize("form", ["--format=gnu", *(f"--format=posix --sparse-version={version}" for version in ("0.0", "0.1", "1.0"))])
def test_sparse_files_stay_sparse(form: str, tmp_path: Path) -> None:
    (tmp_path / "sent").mkdir()
    data = {at * 3 << 20: bytes([at + 1]) * 70_000 for at in range(40)}
    with open(tmp_path / "sent/disk", "wb") as file:
        for at, content in data.items():
            file.seek(at)
            file.write(content)
        file.truncate(200 << 20)
    subprocess.run(["tar", "-C", str(tmp_path / "sent"), *form.split(), "-Scf", str(tmp_path / "sent.tar"), "disk"], check=True)
    (tmp_path / "volume").mkdir()
    archives.unpack(tmp_path / "sent.tar", tmp_path / "volume", 201 << 20)
    written = tmp_path / "volume/disk"
    assert written.stat().st_blocks * 512 < 20 << 20 < written.stat().st_size == 200 << 20
    assert filecmp.cmp(tmp_path / "sent/disk", written, shallow=False)
    with pytest.raises(TooSmall):
        archives.unpack(tmp_path / "sent.tar", tmp_path / "volume", 100 << 20)


def header(kind: bytes, size: int) -> bytes:
    member = tarfile.TarInfo("x")
    member.type, member.size = kind, size
    return member.tobuf(tarfile.USTAR_FORMAT)


def record(key: bytes, value: bytes) -> bytes:
    """An attribute of the pax form, whose length has seven digits."""
    return b"%07d %s=%s\n" % (len(key) + len(value) + 10, key, value)


def pax(data: bytes, stored: bytes = b"") -> bytes:
    return header(b"x", len(data)) + data.ljust(-(-len(data) // 512) * 512, b"\0") + header(b"0", len(stored)) + stored + bytes(1024)


SPARSE = record(b"GNU.sparse.major", b"1") + record(b"GNU.sparse.realsize", b"100")
HOSTILE = {
    "nothing": (b"", "it is empty"),
    "no archive": (b"x" * 2048, "a header holds no number"),
    "an archive that is cut off": (header(b"0", 4096) + bytes(100), "ends in its middle"),
    "gzip that is cut off": (
        gzip.compress(header(b"0", 9000) + random.Random(1).randbytes(9000))[:-2000],
        "the gzip file ends in its middle",
    ),
    "bzip2 that is damaged": (b"BZh9" + b"x" * 2048, "Invalid data stream"),
    "a header of half a gigabyte": (gzip.compress(header(b"x", 512 << 20) + bytes(1 << 20)), "a name or attribute that is too long"),
    "a name of half a gigabyte": (gzip.compress(header(b"L", 512 << 20) + bytes(1 << 20)), "a name or attribute that is too long"),
    "a mebibyte of digits": (pax(b"1" * (1 << 20)), "an attribute cannot be read"),
    "a name with a zero": (pax(record(b"path", b"a\0b")), "has a name that no file can have"),
    "a name that is too long": (pax(record(b"path", b"n" * 256)), "has a name that no file can have"),
    "a path that is too long": (pax(record(b"path", b"n/" * 2100)), "a name of more than 4096 characters"),
    "a map that is not there": (pax(SPARSE), "the map of a sparse file"),
    "a map without an end": (pax(SPARSE, b"1" * 4096), "the map of a sparse file"),
    "a map of too many pieces": (pax(SPARSE, b"100001\n".ljust(512, b"\0")), "more than 100000 pieces"),
    "a piece behind the end": (pax(SPARSE, b"1\n90\n20\n".ljust(512, b"\0") + bytes(512)), "the map of a sparse file"),
    "a piece that is not stored": (pax(SPARSE, b"1\n0\n20\n".ljust(512, b"\0")), "the map of a sparse file"),
    "pieces that go back": (pax(record(b"GNU.sparse.size", b"9") + record(b"GNU.sparse.map", b"4,0,1,0")), "the map of a sparse file"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives(name: str, tmp_path: Path) -> None:
    data, why = HOSTILE[name]
    (tmp_path / "sent").write_bytes(data)
    (tmp_path / "volume").mkdir()
    with pytest.raises(NotAllowed) as refused:
        archives.unpack(tmp_path / "sent", tmp_path / "volume", 1 << 20)
    assert why in str(refused.value)
    assert str(tmp_path) not in str(refused.value)
    assert {path.name for path in (tmp_path / "volume").iterdir()} <= ({"x"} if "cut off" in name else set())


def test_attributes_are_read_in_linear_time(tmp_path: Path) -> None:
    """A mebibyte of digits as the value of an attribute: tarfile searches it again from each of them, for hours."""
    (tmp_path / "sent").write_bytes(pax(record(b"comment", b"1" * ((1 << 20) - 100))))
    (tmp_path / "volume").mkdir()
    archives.unpack(tmp_path / "sent", tmp_path / "volume", 1 << 20)
    assert [path.name for path in (tmp_path / "volume").iterdir()] == ["x"]
