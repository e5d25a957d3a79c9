"""The effect of a damaged file, for every kind of file that docs/reference/on-disk.md lists, and every kind of damage."""

import asyncio
import fcntl
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from paddock.app.directory import diskformat, guests, process
from paddock.app.directory.diskformat import FormatUnreadable
from paddock.app.directory.guests import ForeignGuests
from paddock.app.directory.paths import DataPaths
from paddock.app.history.files import HistoryFiles
from paddock.app.history.rings import UsageRings
from paddock.base.errors import PaddockError, Terminal
from paddock.base.images.store import ImageStore, SourceRecord
from paddock.engine.claims import HostReservations, ReservationsUnusable
from paddock.engine.host import kvm, qemu
from paddock.engine.machine.argv.view import HostView
from paddock.engine.machine.config import CpuConfig, MachineConfig, MemoryConfig
from paddock.engine.machine.directory import Directory, RunRecord, UnreadableState
from paddock.engine.machine.host import MachineEnvironment
from paddock.engine.machine.machines import Machines
from paddock.engine.machine.startqueue import StartQueue
from paddock.engine.machine.users import UserRange
from paddock.engine.networks.addresses import AddressTable
from paddock.engine.networks.addressstore import AddressStore
from paddock.engine.networks.errors import NetworkUnusable
from paddock.engine.networks.podnetwork import PodNetworkSettings, RoutedPodNetwork
from paddock.engine.networks.respondercontrol import ResponderControl
from paddock.engine.storage.errors import StoreFailed, VolumeBroken
from paddock.engine.storage.volumes import Volumes
from paddock.server.security import jose
from paddock.server.security.pki import Authority
from paddock.server.security.signing import UnusableAuthority
from paddock.server.store.sqlite import open_store
from tests.kit.hostile.damage import DAMAGES, damage, is_as_left

ROOT = Path(__file__).resolve().parents[3]
CLUSTER = "0b5fe2a4-1c4e-4a44-9d4e-0123456789ab"
CONFIG = MachineConfig("ns_a", CpuConfig(), MemoryConfig(16 << 20, 16 << 20))
# Makes the file below a directory, and returns it with what reads it; that fails if it does other than the page says.
Row = Callable[[Path], tuple[Path, Callable[[], None]]]
ROWS: dict[str, Row] = {}


def row(name: str) -> Callable[[Row], Row]:
    """Carry out the row of the table that begins with this."""

    def add(function: Row) -> Row:
        ROWS[name] = function
        return function

    return add


@contextmanager
def refused(error: type[Terminal], path: Path) -> Iterator[None]:
    """A sentence that names the file, and what to do."""
    with pytest.raises(error, match=re.escape(path.name)) as caught:
        yield
    assert caught.value.fix


def machines(root: Path) -> Machines:
    def look(config: MachineConfig) -> HostView:
        raise AssertionError("nothing is started")

    return Machines(root / "machines", MachineEnvironment(look, StartQueue(1), UserRange()))


def machine(root: Path) -> Directory:
    directory = Directory(root / "machines" / "a")
    directory.make()
    directory.write_config(CONFIG)
    directory.write_started(CONFIG)
    directory.write_record(RunRecord(run=1, active=True, begun=True))
    return directory


def hold(directory: Directory) -> None:
    """A QEMU lives: its lock is held as long as this process does."""
    handle = os.open(directory.path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)


@row("`machines/ID/config.json`")
def _config(root: Path) -> tuple[Path, Callable[[], None]]:
    directory = machine(root)

    def read() -> None:
        hold(directory)
        found = machines(root)
        asyncio.run(found.adopt())
        left = found.unmanaged("a")
        assert found.get("a") is None and left is not None and left.observed.phase == "running"
        assert left.observed.fault is not None and "config.json" in left.observed.fault.message

    return directory.path / "config.json", read


@row("`machines/ID/process.json`")
def _record(root: Path) -> tuple[Path, Callable[[], None]]:
    directory = machine(root)

    def read() -> None:
        assert directory.read_record() is None and directory.read_config() == CONFIG

    return directory.path / "process.json", read


@row("`machines/ID/started.json`")
def _started(root: Path) -> tuple[Path, Callable[[], None]]:
    directory = machine(root)

    def read() -> None:
        assert directory.read_started() is None and directory.read_config() == CONFIG

    return directory.path / "started.json", read


@row("`machines/ID/saved.json`")
def _saved(root: Path) -> tuple[Path, Callable[[], None]]:
    directory = machine(root)
    directory.write_record(RunRecord(run=1))
    (directory.path / "saved.json").write_text('{"version": 1}')

    def read() -> None:
        found = machines(root)
        asyncio.run(found.adopt())
        left = found.get("a")
        assert left is not None and left.observed.phase == "suspended" and left.observed.end is not None
        assert "saved.json" in left.observed.end.text
        with pytest.raises(UnreadableState, match=r"saved\.json"):
            directory.read_saved()

    return directory.path / "saved.json", read


@row("`volumes/ID/volume.json`")
def _volume(root: Path) -> tuple[Path, Callable[[], None]]:
    async def made() -> None:
        volumes = Volumes(root)
        volumes.prepare()
        await volumes.create("a", 512)
        await volumes.create("b", 512)

    asyncio.run(made())
    path = root / "volumes" / "a" / "volume.json"

    def read() -> None:
        volumes = Volumes(root)
        volumes.prepare()
        assert volumes.get("b") is not None and not volumes.is_whole
        with refused(VolumeBroken, path):
            volumes.get("a")

    return path, read


@row("`snapshots/ID.json`")
def _snapshot(root: Path) -> tuple[Path, Callable[[], None]]:
    async def made() -> None:
        volumes = Volumes(root)
        volumes.prepare()
        await volumes.create("a", 512)
        await volumes.snapshot("a", "s")

    asyncio.run(made())
    path = root / "snapshots" / "s.json"

    def read() -> None:
        volumes = Volumes(root)
        volumes.prepare()
        assert volumes.get("a") is not None and not volumes.is_whole
        with refused(VolumeBroken, path):
            volumes.get_snapshot("s")

    return path, read


@row("`pools.json`")
def _pools(root: Path) -> tuple[Path, Callable[[], None]]:
    async def made() -> None:
        volumes = Volumes(root)
        volumes.prepare()
        await volumes.create("a", 512)

    asyncio.run(made())

    async def read() -> None:
        volumes = Volumes(root, {"fast": root / "fast"})
        volumes.prepare()
        assert (await volumes.create("b", 512)).size == 512
        with refused(StoreFailed, root / "fast"):  # type: ignore[arg-type]  # transient: it may be mounted
            await volumes.create("c", 512, pool="fast")

    return root / "pools.json", lambda: asyncio.run(read())


def _addresses(path: Path) -> tuple[Path, Callable[[], None]]:
    asyncio.run(AddressStore.open(path, lambda: AddressTable("10.0.0.0/24", "0123456789")).give(("vm", "a"), 0.0))

    def read() -> None:
        store = AddressStore.open(path, lambda: AddressTable(""))
        asyncio.run(store.release({"vm"}, 0.0))
        with refused(NetworkUnusable, path):
            asyncio.run(store.give(("vm", "a"), 0.0))

    return path, read


@row("`networks/addresses.json`")
def _pod_addresses(root: Path) -> tuple[Path, Callable[[], None]]:
    return _addresses(root / "networks" / "addresses.json")


@row("`networks/bridges/HASH.json`")
def _bridge_addresses(root: Path) -> tuple[Path, Callable[[], None]]:
    path, read = _addresses(root / "bridges" / "0.json")

    def release() -> None:
        network = RoutedPodNetwork(PodNetworkSettings(root, "10.96.0.0/12", "cluster.local"))
        asyncio.run(network.release({"vm"}, 0.0))
        asyncio.run(network.close())
        read()

    return path, release


@row("`networks/table.json`")
def _table(root: Path) -> tuple[Path, Callable[[], None]]:
    (root / "table.json").write_bytes(b'{"name": "paddock_abcde", "pod_network": "10.0.0.0/24", "host": "10.0.0.1"}')

    def read() -> None:
        network = RoutedPodNetwork(PodNetworkSettings(root, "10.96.0.0/12", "cluster.local"))
        assert network.was_used() and network._read() == network._fresh
        asyncio.run(network.close())

    return root / "table.json", read


@row("`networks/responder.json`")
def _responder(root: Path) -> tuple[Path, Callable[[], None]]:
    (root / "responder.json").write_bytes(b'{"names": {"web.default.svc.cluster.local": ["10.96.0.5"]}}')

    def read() -> None:
        assert not ResponderControl(root).state.names

    return root / "responder.json", read


@row("`claims.json`")
def _claims(root: Path) -> tuple[Path, Callable[[], None]]:
    HostReservations(root).users(root)

    def read() -> None:
        with refused(ReservationsUnusable, root / "claims.json"):
            HostReservations(root).users(root)

    return root / "claims.json", read


@row("`engine/cluster`")
def _cluster(root: Path) -> tuple[Path, Callable[[], None]]:
    directory = machine(root)
    guests.claim(root, CLUSTER, lambda ids: False)
    path = root / "cluster"

    def read() -> None:
        hold(directory)
        with refused(ForeignGuests, path):
            guests.claim(root, CLUSTER, lambda ids: False)
        # Whose guests they are, their instances tell, too.
        if path.is_dir():
            with refused(ForeignGuests, path):
                guests.claim(root, CLUSTER, lambda ids: "a" in ids)
        else:
            guests.claim(root, CLUSTER, lambda ids: "a" in ids)
            assert path.read_text() == f"{CLUSTER}\n"

    return path, read


@row("`engine/layer-group`")
def _layer_group(root: Path) -> tuple[Path, Callable[[], None]]:
    path = root / "layer-group"
    users = UserRange(2_000_000_000, counter=path)
    users.next_group()

    def read() -> None:
        if path.is_file():
            assert users.next_group() == users.layer_groups.start

    return path, read


@row("`engine/usage/UID`")
def _usage(root: Path) -> tuple[Path, Callable[[], None]]:
    (root / "usage").mkdir()
    path = root / "usage" / CLUSTER
    path.write_bytes(UsageRings().pack())

    def read() -> None:
        assert asyncio.run(HistoryFiles(root / "usage").read()) == {}

    return path, read


@row("`images/sha256/DIGEST/image.json`")
def _image(root: Path) -> tuple[Path, Callable[[], None]]:
    digest = "a" * 64
    path = root / "sha256" / digest / "image.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"format": "raw", "virtualSize": 512, "storedSize": 512}')
    assert ImageStore(root).get(digest) is not None

    def read() -> None:
        assert ImageStore(root).get(digest) is None and ImageStore(root).records() == []

    return path, read


@row("`images/index/KIND-KEY.json`")
def _index(root: Path) -> tuple[Path, Callable[[], None]]:
    (root / "index").mkdir()
    store = ImageStore(root)
    store.remember("url", "https://images.example/a", SourceRecord("a" * 64))
    (path,) = (root / "index").glob("*.json")

    def read() -> None:
        assert store.known("url", "https://images.example/a") is None and store.records() == []

    return path, read


@row("`cache/qemu-ARCHITECTURE.json`, `cache/kvm.json`")
def _cache(root: Path) -> tuple[Path, Callable[[], None]]:
    path = root / "qemu-amd64.json"
    path.write_bytes(msgspec.json.encode({"key": [], "known": {"version": [7, 2, 0], "models": ["qemu64"]}}))

    def read() -> None:
        assert qemu._cached(path, []) is None and kvm._cached(path, []) is None

    return path, read


@row("`server.json`")
def _server(root: Path) -> tuple[Path, Callable[[], None]]:
    places = DataPaths(root)
    process.write(places, process.this("https://127.0.0.1:1"))

    def read() -> None:
        assert process.find(places) is None

    return places.pid, read


@row("`pki/server.crt`, `pki/admin.crt` and their keys")
def _certificate(root: Path) -> tuple[Path, Callable[[], None]]:
    authority = Authority(root / "pki", lambda: datetime.now(UTC))
    path, _ = authority.server(["a.example"])

    def read() -> None:
        if path.is_file():
            Authority(root / "pki").server(["a.example"])
            assert path.read_bytes().startswith(b"-----BEGIN CERTIFICATE")

    return path, read


@row("`pki/ca.crt`, `pki/ca.key`, `pki/service-accounts.key`")
def _authority(root: Path) -> tuple[Path, Callable[[], None]]:
    Authority(root / "pki")

    def read() -> None:
        with refused(UnusableAuthority, root / "pki" / "ca.key"):
            Authority(root / "pki")
        with refused(jose.BadKey, root / "pki" / "ca.key"):
            jose.read_private(root / "pki" / "ca.key")

    return root / "pki" / "ca.key", read


@row("`format.json`")
def _format(root: Path) -> tuple[Path, Callable[[], None]]:
    diskformat.note(root)

    def read() -> None:
        with refused(FormatUnreadable, root / "format.json"):
            diskformat.check(root)

    return root / "format.json", read


@row("`store.db`")
def _store(root: Path) -> tuple[Path, Callable[[], None]]:
    path = root / "store.db"
    asyncio.run(open_store(path).close())
    # Something was committed: an empty file is no new store.
    (root / "store.db.lock").write_bytes(b"%020d\n" % 7)

    def read() -> None:
        with pytest.raises(PaddockError, match=r"store\.db"):
            open_store(path)

    return path, read


def test_the_page_has_a_row_for_each_kind_and_no_other() -> None:
    text = (ROOT / "docs" / "reference" / "on-disk.md").read_text(encoding="utf-8")
    section = text.partition("\n## Damaged files\n")[2].partition("\n## ")[0]
    cells = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| `")]
    assert cells == list(ROWS)


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.spec("kubevirt", 144)
def test_a_damaged_file_does_what_the_page_says(tmp_path: Path, name: str, kind: str) -> None:
    path, read = ROWS[name](tmp_path)
    damage(path, kind)
    read()


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize(
    "name",
    [name for name in ROWS if name.startswith(("`volumes", "`snapshots", "`pools", "`networks/a", "`networks/b", "`claims", "`format"))],
)
def test_what_cannot_be_made_anew_is_not_overwritten(tmp_path: Path, name: str, kind: str) -> None:
    path, read = ROWS[name](tmp_path)
    damage(path, kind)
    left = path.read_bytes() if path.is_file() else b""
    with suppress(VolumeBroken):
        read()
    assert is_as_left(path, kind) and (kind == "unreadable" or path.read_bytes() == left)
