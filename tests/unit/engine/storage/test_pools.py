"""Pools whose file system is not mounted: nothing is made in them, and nothing goes that their volumes may need."""

import asyncio
import logging
from pathlib import Path

import pytest

from paddock.engine.storage.errors import StoreFailed
from paddock.engine.storage.volumes import Volumes
from tests.coroutines import run_by

MB = 1 << 20


class Site:
    """An engine with a pool, whose file system a test mounts and unmounts."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.pool = place / "mnt"
        self.volumes = self.begin()

    def begin(self) -> Volumes:
        """Start the engine."""
        self.volumes = Volumes(self.place / "engine", {"fast": self.pool})
        self.volumes.prepare()
        return self.volumes

    def unmount(self, *, leave: bool = True) -> None:
        """Take the file system away; `leave` the directory that it was mounted on."""
        self.pool.rename(self.place / "away")
        if leave:
            self.pool.mkdir()

    def mount(self) -> None:
        """Bring it back."""
        if self.pool.is_dir():
            self.pool.rmdir()
        (self.place / "away").rename(self.pool)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.mark.parametrize("leave", [True, False])
@run_by(asyncio.run)
async def test_a_pool_that_is_not_mounted_is_closed(site: Site, leave: bool, caplog: pytest.LogCaptureFixture) -> None:
    await site.volumes.create("v", MB, pool="fast")
    site.unmount(leave=leave)
    with caplog.at_level(logging.ERROR):
        volumes = site.begin()
    assert [each.message for each in caplog.records] == ["pool is not mounted"]
    assert volumes.get("v") is None and not volumes.is_whole
    for name in ("v", "w"):
        with pytest.raises(StoreFailed, match=f"cannot use the pool {site.pool}.*is not mounted; mount it and restart"):
            await volumes.create(name, MB, pool="fast")
    assert (list(site.pool.iterdir()) if leave else site.pool.exists()) == ([] if leave else False)
    # Others go on.
    assert (await volumes.create("x", MB)).size == MB

    site.mount()
    # An index of what uses which layer is made at the start only.
    with pytest.raises(StoreFailed):
        await volumes.create("w", MB, pool="fast")
    volumes = site.begin()
    assert volumes.is_whole and volumes.ids() == {"v", "x"}
    await volumes.create("w", MB, pool="fast")


@run_by(asyncio.run)
async def test_a_pool_that_goes_while_the_server_runs_is_not_written(site: Site) -> None:
    await site.volumes.create("v", MB, pool="fast")
    site.unmount()
    with pytest.raises(StoreFailed, match="is not mounted"):
        await site.volumes.create("w", MB, pool="fast")
    assert list(site.pool.iterdir()) == []
    site.mount()
    await site.volumes.create("w", MB, pool="fast")


def test_a_fresh_pool_needs_no_ceremony(site: Site) -> None:
    # Never used: another empty directory in its place is as good.
    site.unmount()
    site.begin()
    assert list(site.pool.iterdir()) == []
    asyncio.run(site.volumes.create("v", MB, pool="fast"))
    assert {each.name for each in site.pool.iterdir()} == {"paddock-pool", "v"}
    assert site.begin().ids() == {"v"}


def test_a_pool_whose_volumes_are_gone_for_good_is_opened_by_its_marker(site: Site) -> None:
    asyncio.run(site.volumes.create("v", MB, pool="fast"))
    site.unmount()
    assert not site.begin().is_whole
    (site.pool / "paddock-pool").touch()
    assert site.begin().is_whole
    asyncio.run(site.volumes.create("w", MB, pool="fast"))


def test_volumes_are_as_good_as_a_marker(site: Site) -> None:
    """Somebody copied the volumes to a new disk, and not the file beside them."""
    asyncio.run(site.volumes.create("v", MB, pool="fast"))
    (site.pool / "paddock-pool").unlink()
    assert site.begin().ids() == {"v"} and (site.pool / "paddock-pool").exists()


def test_the_engines_own_directory_of_volumes_is_a_pool_too(site: Site) -> None:
    asyncio.run(site.volumes.create("v", MB))
    own = site.place / "engine" / "volumes"
    own.rename(site.place / "away")
    site.begin()
    with pytest.raises(StoreFailed, match="is not mounted"):
        asyncio.run(site.volumes.create("w", MB))


@run_by(asyncio.run)
async def test_a_layer_stays_that_a_volume_out_of_reach_has_below_it(site: Site) -> None:
    await site.volumes.create("base", MB)
    await site.volumes.snapshot("base", "s")
    await site.volumes.restore("s", "copy", MB, pool="fast")
    await site.volumes.delete_snapshot("s")
    await site.volumes.delete("base")
    site.unmount()
    volumes = site.begin()
    # Any removal looks for more that may go.
    await volumes.create("x", MB)
    await volumes.delete("x")
    site.mount()
    copy = site.begin().get("copy")
    assert copy is not None and copy.layer.backing is not None and copy.layer.backing.path.exists()
