"""Records of another version: each is refused in plain words, before anything else in it is read, and nobody is advised to lose it."""

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from paddock.base.errors import PaddockError
from paddock.engine import memorystates, versions
from paddock.engine.claims import HostReservations
from paddock.engine.machine import livefiles
from paddock.engine.machine.directory import Directory
from paddock.engine.machine.livefiles import DecidedMigrations
from paddock.engine.networks.addresses import AddressTable
from paddock.engine.networks.addressstore import AddressStore
from paddock.engine.storage import records
from paddock.engine.storage.pools import PoolMarkers

Reader = Callable[[Path], object]
# The file of each format with a version, and who reads it. The store's is in tests/contract.
READERS: dict[str, Reader] = {
    "claims.json": lambda path: HostReservations(path.parent).directories(),
    "addresses.json": lambda path: AddressStore.open(path, lambda: AddressTable("")).check(),
    "config.json": lambda path: Directory(path.parent).read_config(),
    "saved.json": lambda path: Directory(path.parent).read_saved(),
    "handed.json": lambda path: livefiles.read_handed(Directory(path.parent)),
    "arrival.json": lambda path: livefiles.read_arrival(Directory(path.parent)),
    livefiles._name("target", "m"): lambda path: DecidedMigrations(path.parent).state("target", "m"),
    "memory.json": memorystates.read,
    "pools.json": lambda path: PoolMarkers(path.parent)._read(),
    "volume.json": records.read,
    "snapshot.json": records.read_snapshot,
}


@pytest.mark.spec("kubevirt", 137)
@pytest.mark.parametrize("version", [0, 2, 3, 999])
@pytest.mark.parametrize("name", READERS)
def test_a_record_of_another_version_is_refused_in_plain_words(tmp_path: Path, name: str, version: int) -> None:
    known = "1 and 2" if name == "volume.json" else "1"
    if str(version) in known:
        return
    path = tmp_path / name
    # Its other members are not those that this version knows.
    path.write_bytes(orjson.dumps({"version": version, "strange": True}))
    with pytest.raises(PaddockError) as refused:
        READERS[name](path)
    said = str(refused.value)
    assert f"it is of version {version}, and this Paddock knows version {known}" in said
    assert said.endswith(versions.FIX)
    assert name in said or path.parent.name in said
    assert path.read_bytes() == orjson.dumps({"version": version, "strange": True})


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_record_is_no_record_of_another_version(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b'{"version": 1')
    with pytest.raises(PaddockError) as refused:
        READERS[name](tmp_path / name)
    assert "version" not in str(refused.value) and not str(refused.value).endswith(versions.FIX)


def test_a_run_of_another_version_is_not_read(tmp_path: Path) -> None:
    """The living process is then found by its lock; only the reason of the last end is lost."""
    directory = Directory(tmp_path)
    (tmp_path / "process.json").write_bytes(b'{"version": 2, "pid": 7}')
    (tmp_path / "started.json").write_bytes(b'{"version": 2}')
    assert directory.read_record() is None and directory.read_started() is None
