"""Archives that somebody sent: what is refused is named as it stands in the archive, and nothing of this host is told."""

import contextlib
import io
import os
import tarfile
from pathlib import Path

import pytest

from paddock.engine.storage import archives
from paddock.engine.storage.errors import NotAllowed


@pytest.fixture(params=["the library's check", "Paddock's own"], autouse=True)
def check(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both checks: Python 3.11.2, which Debian 12 has, brings none."""
    if request.param == "Paddock's own":
        monkeypatch.setattr(archives, "HAS_FILTER", False)
    elif not archives.HAS_FILTER:
        pytest.skip("this Python's tarfile has no check")


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


def test_nothing_is_written_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "HAS_FILTER", False)
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
