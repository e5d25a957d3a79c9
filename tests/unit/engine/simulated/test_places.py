"""The networks, volumes, images and records of simulated guests."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from paddock.base.images.errors import ImageError
from paddock.base.images.settings import ImageSettings
from paddock.base.images.sources import Http, RegistryImage, Upload
from paddock.engine.networks.errors import GuestUnreachable, NetworkUnusable
from paddock.engine.networks.networks import NetworkSettings
from paddock.engine.networks.nics import NicSpec
from paddock.engine.simulated import records
from paddock.engine.simulated.images import SimulatedImages
from paddock.engine.simulated.networks import SimulatedNetworks
from paddock.engine.simulated.records import Records, RecordsUnreadable
from paddock.engine.simulated.volumes import SimulatedVolumes
from paddock.engine.storage.errors import NotAllowed, TooSmall, VolumeBusy, VolumeMissing
from tests.coroutines import run_by

GIB = 1 << 30


@run_by(asyncio.run)
async def test_a_card_has_the_same_address_on_every_server(tmp_path: Path) -> None:
    kept = Records(tmp_path / "one")
    one, other = (SimulatedNetworks(NetworkSettings(), each) for each in (kept, Records(tmp_path / "other")))
    card = await one.plug(NicSpec("vm", "default"))
    assert card.address.startswith("10.") and card.guest_address == "10.0.2.2/24"
    assert await other.plug(NicSpec("vm", "default")) == card
    bridged = await one.plug(NicSpec("vm", "flat", binding="bridge"))
    assert bridged.guest_address == f"{bridged.address}/9" and bridged.mac != card.mac
    again = SimulatedNetworks(NetworkSettings(), kept)
    assert again.mac("vm", "default") == card.mac and again.owners() == {"vm"}
    await again.release({"vm"})
    assert not again.owners() and not SimulatedNetworks(NetworkSettings(), kept).owners()
    with pytest.raises(GuestUnreachable, match="simulated"):
        await one.dial("vm", "default", 22)


@run_by(asyncio.run)
async def test_a_small_network_gives_every_address_once(tmp_path: Path) -> None:
    networks = SimulatedNetworks(NetworkSettings(pod_network="192.168.9.0/28"), Records(tmp_path))
    found = {(await networks.plug(NicSpec(f"vm-{number}", "default"))).address for number in range(13)}
    assert found == {f"192.168.9.{number}" for number in range(2, 15)}
    with pytest.raises(NetworkUnusable, match="in use"):
        await networks.plug(NicSpec("one-more", "default"))


@run_by(asyncio.run)
async def test_volumes_are_records(tmp_path: Path) -> None:
    kept = Records(tmp_path)
    volumes = SimulatedVolumes(tmp_path, {"fast": tmp_path / "fast"}, kept)
    volumes.prepare()
    await volumes.create("a", GIB)
    assert (await volumes.create("b", GIB, pool="fast")).directory == tmp_path / "fast" / "b"
    with pytest.raises(NotAllowed, match="no pool slow"):
        await volumes.create("c", GIB, pool="slow")
    used = tmp_path / "volumes" / "a"
    volumes.uses = lambda directory: directory == used
    for ask in (volumes.grow("a", 2 * GIB), volumes.clone("a", "copy", GIB), volumes.delete("a"), volumes.snapshot("a", "s")):
        with pytest.raises(VolumeBusy):
            await ask
    layer = await volumes.next_layer("a", "s")
    assert layer == await volumes.next_layer("a", "s") and layer.backing is not None
    await volumes.frozen("a", "s")
    volumes.uses = lambda directory: False
    with pytest.raises(TooSmall):
        await volumes.restore("s", "back", GIB // 2)
    assert (await volumes.restore("s", "back", GIB)).size == GIB
    assert (await volumes.grow("a", 2 * GIB)).size == 2 * GIB
    with pytest.raises(NotAllowed, match="simulated"):
        async for _ in volumes.export("a", "raw"):
            pass
    again = SimulatedVolumes(tmp_path, {}, kept)
    assert again.ids() == {"a", "b", "back"} and again.get_snapshot("s") == volumes.get_snapshot("s")
    await again.delete("back")
    with pytest.raises(VolumeMissing):
        await SimulatedVolumes(tmp_path, {}, kept).grow("back", GIB)
    assert not any(path.is_file() and path.name.endswith((".img", ".qcow2")) for path in tmp_path.rglob("*"))


async def _pieces(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


@run_by(asyncio.run)
async def test_images_are_as_large_as_their_volume_allows(tmp_path: Path) -> None:
    images = SimulatedImages(tmp_path, ImageSettings())
    first = await images.fetch(Http("http://nowhere.invalid/a.img"), limit=GIB)
    assert first.virtual_size == GIB and (await images.fetch(Http("http://nowhere.invalid/a.img"))).digest == first.digest
    assert (await images.fetch(RegistryImage("quay.io/a:1"))).digest != first.digest
    qcow2 = b"QFI\xfb" + bytes(20) + (5 * GIB).to_bytes(8, "big")
    assert (await images.fetch(Upload(_pieces(qcow2[:9], qcow2[9:], b"more")))).virtual_size == 5 * GIB
    assert (await images.fetch(Upload(_pieces(b"12345", b"678")))).virtual_size == 8
    for pieces, limit in (((qcow2,), GIB), ((), None)):
        with pytest.raises(ImageError):
            await images.fetch(Upload(_pieces(*pieces)), limit=limit)


def test_records_of_another_format_are_left_alone(tmp_path: Path) -> None:
    Records(tmp_path).close()
    with sqlite3.connect(tmp_path / records.NAME) as connection:
        connection.execute("PRAGMA user_version=2")
    with pytest.raises(RecordsUnreadable, match="format 2"):
        Records(tmp_path)
    (tmp_path / records.NAME).unlink()
    Records(tmp_path).close()
    (tmp_path / records.NAME).write_bytes(b"no database" * 100)
    with pytest.raises(RecordsUnreadable):
        Records(tmp_path)
