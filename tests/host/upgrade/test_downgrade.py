"""A version never works in a directory that a newer one wrote in another form: it says so, and guests run on."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.app.directory.diskformat import FORMAT, NAME
from paddock.server.store import database
from paddock.server.store.sqlite import open_store
from tests.host.directories.test_directories import command
from tests.host.runs.conftest import VMIS, VMS, Host, Talk, machine, perform
from tests.host.upgrade.earlier import sources, upgrades

SECONDS = 240


def raised(root: Path, by: int) -> None:
    """Raise the number in the file: a newer version stands there in place of this one."""
    found = json.loads((root / NAME).read_text())
    (root / NAME).write_text(json.dumps(found | {"version": found["version"] + by, "program": "9.8.7"}))


def files(root: Path) -> dict[str, tuple[int, int]]:
    """The files of a directory that no guest writes."""
    found = {str(each): each.stat() for each in root.rglob("*") if each.is_file() and not {"run", "said", "qemu.log"} & {*each.parts}}
    return {name: (each.st_mtime_ns, each.st_size) for name, each in found.items()}


@pytest.fixture
def host(work: Path) -> Iterator[Host]:
    """A host that was not started yet."""
    made = Host(work, "127.0.0.1:1")
    yield made
    made.end()


async def run_one(talk: Talk) -> None:
    """A machine runs."""
    await talk.make(VMS, machine("web"))
    await talk.running("web", SECONDS)


async def adopt_one(talk: Talk) -> None:
    """The server looks after the machine: a stop ends it."""
    await talk.running("web", SECONDS)
    await talk.verb("web", "stop", gracePeriod=0)
    await talk.until(f"{VMIS}/web", lambda found: not found, "it is gone", SECONDS)


@pytest.mark.needs("qemu")
@pytest.mark.spec("kubevirt", 187)
def test_a_newer_directory_is_refused_and_its_guests_run_on(host: Host) -> None:
    perform(host, run_one)
    guests = host.qemus()
    assert len(guests) == 1
    host.stop()
    raised(host.root, 1)
    before = files(host.root)
    for words in (("up",), ("up", "--detach"), ("down", "--guests"), ("down", "--purge", "--yes"), ("image", "prune")):
        said = command(*words, f"--dir={host.root}")
        assert said.returncode == 2 and f"cannot use {host.root}: Paddock 9.8.7 wrote it in format {FORMAT + 1}" in said.stderr, said.stderr
    assert (host.qemus(), files(host.root)) == (guests, before)
    raised(host.root, -1)
    host.start()
    assert host.qemus() == guests, "the guest runs in the same process"
    host.stop()
    perform(host, adopt_one)


@pytest.mark.parametrize("commit", dict.fromkeys(row.commit for row in upgrades()))
def test_versions_that_do_not_know_the_file_refuse_a_later_store(tmp_path: Path, commit: str) -> None:
    if missing := sources(commit, tmp_path / "earlier"):
        pytest.skip(f"needs history: {missing}")
    root = tmp_path / "server"
    root.mkdir()
    asyncio.run(open_store(root / "store.db").close())
    with sqlite3.connect(root / "store.db") as store:
        store.execute("UPDATE meta SET value = ? WHERE key = 'format'", (database.FORMAT + 1,))
    store.close()
    before = files(root)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "earlier" / "src")}
    starting = [sys.executable, "-m", "paddock.app", "up", f"--dir={root}", "--listen=127.0.0.1:0"]
    said = subprocess.run(starting, capture_output=True, text=True, check=False, env=environment)
    assert said.returncode and f"store.db has the format {database.FORMAT + 1}" in said.stderr and "newer" in said.stderr
    assert {name: each for name, each in files(root).items() if name.endswith((".db", ".lock"))} == before
