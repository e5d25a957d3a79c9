"""Memories of snapshots: whole or not there, one file under two names, and the same bytes after packing."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from paddock.engine import memorystates
from paddock.engine.machine.config import CpuConfig, MachineConfig, MemoryConfig
from paddock.engine.machine.directory import SavedMachine
from paddock.engine.machine.memorysnapshots import TakenMemory
from paddock.engine.memorystates import MemoryStates

STATE = os.urandom(3000) + bytes(3 << 20)
CONFIG = MachineConfig("ns_a", CpuConfig(), MemoryConfig(1 << 30, 1 << 30))
TAKEN = TakenMemory(SavedMachine(1.0, len(STATE), CONFIG, CONFIG, {}, [], "tcg", "", False, {}), 0.02, "7.2.22")


@pytest.fixture
def states(tmp_path: Path) -> MemoryStates:
    found = MemoryStates(tmp_path / "memory")
    found.prepare()
    return found


def kept(states: MemoryStates) -> None:
    states.draft("a").write_bytes(STATE)
    assert states.keep("a", TAKEN).record.saved == TAKEN.saved


def filled(states: MemoryStates, path: Path) -> bytes:
    states.filler("a")(path)
    return path.read_bytes()


def test_a_memory_is_one_file_with_its_machines(states: MemoryStates, tmp_path: Path) -> None:
    kept(states)
    target = tmp_path / "saved.state.new"
    # What an earlier attempt left is replaced.
    target.write_bytes(b"half")
    assert filled(states, target) == STATE and target.samefile(states.root / "a" / "state")
    states.delete("a")
    assert states.get("a") is None and not (states.root / "a").exists() and target.read_bytes() == STATE


def test_a_packed_memory_is_the_same(states: MemoryStates, tmp_path: Path) -> None:
    kept(states)
    asyncio.run(states.pack("a"))
    asyncio.run(states.pack("a"))
    state = states.get("a")
    assert state is not None and state.packed and state.stored < 100_000 and state.size == len(STATE)
    assert sorted(os.listdir(states.root / "a")) == ["memory.json", "state.zst"]
    target = tmp_path / "saved.state.new"
    assert filled(states, target) == STATE and target.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("missing", ["record", "packing", "unpacked"])
def test_what_is_half_made_is_cleared_away(states: MemoryStates, tmp_path: Path, missing: str) -> None:
    kept(states)
    folder = states.root / "a"
    if missing == "record":
        (folder / "memory.json").unlink()
    elif missing == "packing":
        (folder / "state.zst.new").write_bytes(b"half")
    else:
        state = (folder / "state").read_bytes()
        memorystates._pack(folder)
        (folder / "state").write_bytes(state)
    states.prepare()
    if missing == "record":
        assert states.get("a") is None and not folder.exists()
        return
    assert filled(states, tmp_path / "new") == STATE
    assert sorted(os.listdir(folder)) == ["memory.json", "state" if missing == "packing" else "state.zst"]


def test_age_begins_anew_with_each_use(states: MemoryStates, tmp_path: Path) -> None:
    kept(states)
    os.utime(states.root / "a" / "state", (1000, 1000))
    assert states.age("a", 1700) == 700
    filled(states, tmp_path / "new")
    assert states.age("a", 1700) < 0


def test_another_file_system_gets_a_copy(states: MemoryStates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(states)

    def elsewhere(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", elsewhere)
    assert filled(states, tmp_path / "new") == STATE and not (tmp_path / "new").samefile(states.root / "a" / "state")


def test_a_memory_without_its_file_is_none(states: MemoryStates) -> None:
    kept(states)
    (states.root / "a" / "state").unlink()
    assert states.get("a") is None
    shutil.rmtree(states.root / "a")
    assert states.get("a") is None
