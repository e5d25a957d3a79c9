"""`paddock down --purge --delete-data`: it deletes a server's data, and never what somebody else keeps."""

import io
import re
from pathlib import Path

import pytest

from paddock.app.commands import down
from paddock.app.directory import contents, diskformat
from paddock.base.errors import Terminal
from paddock.cli.console import Console

SERVER = {
    "kubeconfig": "",
    "server.json": "",
    "server.log": "",
    "audit.log": "",
    "format.json": "",
    "audit-2027-01-15T08-00-00.000000.log": "",
    "engine/cluster": "",
    "engine/images/sha256/d/disk.img": "",
    "engine/volumes/v/disk.img": "",
    "pki/ca.crt": "",
    "pki/service-accounts-old.key": "",
    "pki/service-accounts.key": "",
    "store.db": "",
    "store.db-wal": "",
    "store.db.before-2027-01-15T08-00-00.000000": "",
    "store.db.lock": "",
}


@pytest.fixture(autouse=True)
def nobodys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The purge of the host is another matter."""

    async def clear(*_: object) -> None:
        return None

    monkeypatch.setattr("paddock.app.directory.purge.clear", clear)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "no-kubeconfig"))


def made(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    if diskformat.NAME in names:
        (root / diskformat.NAME).unlink()
        diskformat.note(root)
    return root


def files(root: Path) -> list[str]:
    return sorted(str(each.relative_to(root)) for each in root.rglob("*") if not each.is_dir())


def said(root: Path) -> str:
    out = io.BytesIO()
    assert down.run([f"--dir={root}", "--purge", "--delete-data", "--yes"], Console(out, out)) == 0
    return out.getvalue().decode()


def test_everything_that_the_page_of_files_names_goes(tmp_path: Path) -> None:
    """A developer who adds a file to a server's directory describes it there."""
    page = (Path(__file__).parents[4] / "docs/reference/on-disk.md").read_text()
    table = page.partition("| file | content |")[2].partition("\n\n")[0]
    names = [name for row in table.splitlines()[2:] for name in re.findall(r"`([^`]+)`", row.split("|")[1])]
    places = [
        name if name.startswith(("engine/", "pki/", "store", "format", "guests", "kube", "server", "stacks", "audit")) else f"engine/{name}"
        for name in names
    ]
    places = [
        re.sub("[A-Z]{2,}", "x", each).replace("audit-x", "audit-1") for each in places if not each.startswith(("engine/-", "engine/."))
    ]
    for each in ["store.db", *places]:
        made(tmp_path / "server", f"{each}ca.crt" if each.endswith("/") else each)
    assert len(places) > 20 and contents.others(tmp_path / "server") == []
    contents.delete(tmp_path / "server")
    assert not (tmp_path / "server").exists()


def test_the_directory_of_a_server_goes_whole(tmp_path: Path) -> None:
    root = made(tmp_path / "host", *SERVER)
    assert f"deleted {root}\n" in said(root)
    assert not root.exists()


@pytest.mark.parametrize("mark", ["store.db.lock", "pki/service-accounts.key", "engine/cluster", "engine/images/sha256/d/disk.img"])
def test_what_a_start_left_half_made_goes(tmp_path: Path, mark: str) -> None:
    root = made(tmp_path / "host", mark)
    said(root)
    assert not root.exists()


def test_an_empty_directory_goes_and_none_is_none(tmp_path: Path) -> None:
    root = tmp_path / "host"
    root.mkdir()
    said(root)
    assert not root.exists()
    said(root)


@pytest.mark.parametrize(
    "names",
    [
        ["notes.txt"],
        # What other programs have under these names is not Paddock's.
        ["audit.log", "server.log", "kubeconfig"],
        ["store.db", "engine/main.c", "pki/ca.crt"],
    ],
)
def test_a_directory_of_somebody_else_is_refused_before_anything_is_said_or_done(tmp_path: Path, names: list[str]) -> None:
    root = made(tmp_path / "home", *names)
    out = io.BytesIO()
    with pytest.raises(contents.ForeignDirectory, match=f"cannot delete {root}: it is no server's directory"):
        down.run([f"--dir={root}", "--purge", "--delete-data"], Console(out, out))
    assert files(root) == sorted(names) and out.getvalue() == b""


def test_a_file_and_a_link_to_nothing_are_refused(tmp_path: Path) -> None:
    made(tmp_path, "file")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for name in ("file", "link"):
        with pytest.raises(contents.ForeignDirectory):
            said(tmp_path / name)


def test_what_others_keep_beside_a_server_stays_and_is_named(tmp_path: Path) -> None:
    strangers = ["audit-of-us.log", "engine/main.c", "firecracker/web/disk.img", "pki/mine.key", "work/.env"]
    root = made(tmp_path / "host", *SERVER, *strangers)
    text = said(root)
    named = "audit-of-us.log, engine/main.c, firecracker, pki/mine.key, work"
    assert f"it keeps what Paddock did not make there: {named}\n" in text
    assert f"kept what Paddock did not make in {root}: {named}\n" in text
    assert f"deleted the data of Paddock in {root}\n" in text
    assert files(root) == strangers


def test_no_link_is_followed(tmp_path: Path) -> None:
    other = made(tmp_path / "other", "cluster", "images/sha256/d/disk.img", "v/disk.img")
    root = made(tmp_path / "host", "store.db", "store.db.lock", "pki/ca.crt")
    (root / "engine").symlink_to(other)
    (root / "server.log").symlink_to(other / "cluster")
    assert "kept what Paddock did not make in" in said(root)
    assert files(other) == ["cluster", "images/sha256/d/disk.img", "v/disk.img"]
    assert sorted(each.name for each in root.iterdir()) == ["engine", "server.log"]


def test_a_directory_behind_a_link_is_emptied_and_both_stay(tmp_path: Path) -> None:
    real, link = made(tmp_path / "disk", *SERVER), tmp_path / "host"
    link.symlink_to(real)
    assert f"DELETES {link}, a link to {real}," in said(link)
    assert link.is_symlink() and list(real.iterdir()) == []


def test_a_deletion_that_fails_says_where_and_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = made(tmp_path / "host", *SERVER)

    def broken(path: Path) -> None:
        raise OSError(16, "Device or resource busy", str(path))

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", broken)
        with pytest.raises(Terminal, match=f"cannot delete {root}/engine/volumes: Device or resource busy"):
            said(root)
    said(root)
    assert not root.exists()
