"""`paddock backup restore`: a store that is there is kept, in its place or aside."""

import asyncio
import io
import shlex
from pathlib import Path

import pytest

from paddock.app.commands import backup_restore
from paddock.base.errors import Terminal
from paddock.cli.console import Console
from paddock.server.store import backup
from paddock.server.store.sqlite import open_store


def made(place: Path) -> Path:
    asyncio.run(open_store(place).close())
    return place


def said(*words: str) -> str:
    out = io.BytesIO()
    assert backup_restore.run([*words], Console(out, out)) == 0
    return out.getvalue().decode()


def test_the_refusal_names_the_command_that_replaces_the_store(tmp_path: Path) -> None:
    root = tmp_path / "a host"
    root.mkdir()
    made(root / "store.db")
    backup.copy(root / "store.db", tmp_path / "old")
    before = (root / "store.db").read_bytes()
    with pytest.raises(Terminal, match=r"store\.db exists") as caught:
        said("--dir", str(root), str(tmp_path / "old"))
    assert (root / "store.db").read_bytes() == before
    command = shlex.split(caught.value.fix.split("`")[1])
    assert command[:3] == ["paddock", "backup", "restore"]
    assert f"moved the store that was there to {root}/store.db.before-" in said(*command[3:])
    assert [each.read_bytes() for each in root.glob("store.db.before-*[0-9]")] == [before]
    asyncio.run(open_store(root / "store.db").close())


def test_where_no_store_is_nothing_moves(tmp_path: Path) -> None:
    backup.copy(made(tmp_path / "other.db"), tmp_path / "old")
    assert said("--replace", f"--dir={tmp_path / 'new'}", str(tmp_path / "old")).startswith("restored ")
    assert sorted(each.name for each in (tmp_path / "new").iterdir()) == ["store.db", "store.db.lock"]
