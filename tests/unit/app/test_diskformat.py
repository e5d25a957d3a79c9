"""The format of a directory: noted by each start, and a newer one is left alone by every command, with the reason."""

import asyncio
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import paddock
from paddock.app.directory import diskformat, purge
from paddock.app.directory.diskformat import AFTER_PURGE, FORMAT, DirectoryFormat, FormatUnreadable, NewerDirectory
from paddock.app.directory.paths import DataPaths
from paddock.app.main import COMMANDS
from paddock.cli import main
from paddock.cli.console import Console
from paddock.engine.claims import HostReservations
from paddock.engine.machine import directory as machinedirectory
from paddock.engine.networks import addressstore
from paddock.engine.storage import pools, records
from paddock.server.store.sqlite import open_store
from tests.unit.app.test_starting import paddock as program

Call = Callable[..., tuple[int, str]]
# The versions of the records below a directory, by its format. A record with another version gives the directory another format: add a row.
FORMATS = {1: {"addresses": 1, "machine": 1, "pools": 1, "volume": 1}}
NEWER = f"Paddock 9.8.7 wrote it in format {FORMAT + 1}, and Paddock {paddock.__version__} knows formats up to {FORMAT}"


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("PADDOCK_HOST_DIR", str(tmp_path / "host"))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "no-kubeconfig"))

    def one(*words: str) -> tuple[int, str]:
        out = io.BytesIO()
        code = main.run([*words], Console(out, out), COMMANDS)
        return code, out.getvalue().decode()

    return one


def newer(root: Path, after_purge: int = FORMAT, **more: Any) -> Path:
    """A directory with a store, an image and a machine, as a newer version leaves it."""
    for name in ("engine/images/sha256/d", "engine/machines/a", "pki"):
        (root / name).mkdir(parents=True)
    (root / "engine" / "machines" / "a" / "config.json").write_text('{"version": 2}')
    asyncio.run(open_store(root / "store.db").close())
    content = {"version": FORMAT + 1, "afterPurge": after_purge, "program": "9.8.7", **more}
    (root / diskformat.NAME).write_text(json.dumps(content))
    return root


def files(root: Path) -> dict[str, tuple[int, bytes]]:
    """Everything in a directory, with the times of the changes."""
    return {str(each): (each.stat().st_mtime_ns, each.read_bytes() if each.is_file() else b"") for each in root.rglob("*")}


@pytest.mark.spec("kubevirt", 187)
@pytest.mark.parametrize(
    "words",
    [
        ("up",),
        ("up", "--detach"),
        ("up", "--in-memory"),
        ("apiserver",),
        ("down", "--guests"),
        ("down", "--purge", "--yes"),
        ("down", "--guests", "--purge", "--yes"),
        ("down", "--purge", "--delete-data", "--yes"),
        ("backup", "restore", "BACKUP"),
        ("backup", "restore", "--replace", "BACKUP"),
        ("image", "ls"),
        ("image", "pull", "http://127.0.0.1:1/disk.img"),
        ("image", "rm", "dddddd"),
        ("image", "prune"),
        ("image", "push", "dddddd", "127.0.0.1:1/image"),
    ],
    ids=" ".join,
)
def test_no_command_works_in_a_directory_of_a_newer_format(tmp_path: Path, call: Call, words: tuple[str, ...]) -> None:
    root = newer(tmp_path / "server")
    before = files(root)
    code, said = call(*words, f"--dir={root}")
    assert code == 2 and f"cannot use {root}: {NEWER}" in said and "use the Paddock that wrote it, or a newer one" in said
    assert files(root) == before


@pytest.mark.parametrize("words", [("status",), ("down",), ("backup", "FILE"), ("doctor",)], ids=" ".join)
def test_commands_that_only_look_leave_it_as_it_is(tmp_path: Path, call: Call, words: tuple[str, ...]) -> None:
    root = newer(tmp_path / "server")
    before = files(root)
    said = call(*(str(tmp_path / "copy") if each == "FILE" else each for each in words), f"--dir={root}")[1]
    # SQLite keeps the files of a reader beside the store.
    assert {name: each for name, each in files(root).items() if "store.db-" not in name} == before
    assert words != ("doctor",) or NEWER in " ".join(said.split())


@pytest.mark.parametrize(("after_purge", "helps"), [(FORMAT, True), (FORMAT + 1, False)])
def test_a_purge_is_advised_only_where_it_helps(tmp_path: Path, after_purge: int, helps: bool) -> None:
    newer(tmp_path, after_purge, some={"later": "member"})
    with pytest.raises(NewerDirectory) as refused:
        diskformat.check(tmp_path)
    assert ("let the other shut the guests down first: `paddock down --guests --purge`" in str(refused.value)) is helps


def test_a_start_notes_the_format_and_a_refused_one_nothing(tmp_path: Path) -> None:
    diskformat.check(tmp_path)
    assert list(tmp_path.iterdir()) == []
    diskformat.note(tmp_path)
    path = tmp_path / diskformat.NAME
    assert diskformat.read(tmp_path) == DirectoryFormat(FORMAT, AFTER_PURGE, paddock.__version__)
    first = path.stat().st_ino
    diskformat.note(tmp_path)
    assert path.stat().st_ino == first, "what is right is not written again"
    path.write_text('{"version": 1, "afterPurge": 1, "program": "0.0.1"}')
    diskformat.note(tmp_path)
    assert diskformat.read(tmp_path) == DirectoryFormat(FORMAT, AFTER_PURGE, paddock.__version__)


def test_a_server_notes_the_format_of_its_directory(tmp_path: Path) -> None:
    root = tmp_path / "server"
    assert program("apiserver", f"--dir={root}", "--listen=127.0.0.1:0", "--detach").returncode == 0
    try:
        assert diskformat.read(root) is not None
    finally:
        assert program("down", f"--dir={root}").returncode == 0


def test_a_purge_leaves_the_format_of_what_it_leaves(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version whose machines or networks have a new format tells the one before that they are gone."""
    monkeypatch.setattr("paddock.app.directory.purge.os.geteuid", lambda: 1)
    newer(tmp_path)
    monkeypatch.setattr(diskformat, "FORMAT", FORMAT + 1)
    asyncio.run(purge.clear(DataPaths(tmp_path), 1))
    assert diskformat.read(tmp_path) == DirectoryFormat(AFTER_PURGE, FORMAT, "9.8.7")
    monkeypatch.undo()
    diskformat.check(tmp_path)


def test_a_shutdown_of_the_host_passes_over_a_newer_directory(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paddock.app.directory.shutdown.os.geteuid", lambda: 0)
    other, damaged = newer(tmp_path / "newer"), newer(tmp_path / "damaged")
    (damaged / diskformat.NAME).write_bytes(b"")
    for each in (other, damaged):
        HostReservations().users(each / "engine")
    code, said = call("down", "--guests", "--all", f"--dir={tmp_path / 'own'}")
    assert code == 0 and f"the guests in {other} do not shut down: cannot use {other}: {NEWER}" in said and str(damaged) not in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_the_directory_of_another_user(tmp_path: Path) -> None:
    newer(tmp_path)
    tmp_path.chmod(0o755)
    (tmp_path / diskformat.NAME).chmod(0o600)
    os.seteuid(65534)
    try:
        with pytest.raises(FormatUnreadable, match="this user may not read"):
            diskformat.check(tmp_path)
    finally:
        os.seteuid(0)


def test_each_version_of_a_record_has_a_format_of_the_directory() -> None:
    modules = {"addresses": addressstore, "machine": machinedirectory, "pools": pools}
    found = {name: getattr(module, "_VERSION") for name, module in modules.items()}  # noqa: B009 - nobody else needs them
    assert FORMATS[FORMAT] == {**found, "volume": records.VERSION}
    assert max(FORMATS) == FORMAT >= AFTER_PURGE
