"""Restores in place while Paddock is killed and where the pool is full: the claim has the disk of before or that of the snapshot, whole.

`RESTORES=100` restores more often than the sample of every run; `OWNERS_SEED=7` kills at other moments.
"""

import ctypes
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.coroutines import played_by
from tests.host.owners.conftest import CLAIMS, KilledPaddock, claim_of, drop, ensure, gone, play, power, uid_of, write
from tests.host.owners.test_restores import (
    CONTENTS,
    RESTORES,
    SNAPSHOTS,
    VOLUME_SNAPSHOTS,
    begin,
    check,
    check_held,
    has_snapshots,
    restore,
    restored,
    snapshot,
    taken,
)
from tests.host.runs.conftest import VMIS, VMS, Talk

pytestmark = pytest.mark.needs("qemu")

COUNT = int(os.environ.get("RESTORES", "3"))
IN_PLACE = {"volumeRestorePolicy": "InPlace", "targetReadinessPolicy": "StopTarget"}


def images(killed: KilledPaddock, uid: str) -> set[str]:
    """Return the names of the layers in the directory of a volume."""
    return {each.name for each in (killed.host.root / "engine" / "volumes" / uid).iterdir() if each.suffix == ".img"}


async def end(killed: KilledPaddock) -> None:
    """Delete everything, and fail unless nothing is left."""
    async with killed.talk() as talk:
        for path in (RESTORES, SNAPSHOTS):
            for each in (await talk.get(path))["items"]:
                await drop(talk, f"{path}/{each['metadata']['name']}")
        for path in (SNAPSHOTS, CONTENTS, VOLUME_SNAPSHOTS):
            await talk.until(path, lambda found: found["items"] == [], "it is gone", 30)
        await power(talk, "web", "Halted")
        await gone(talk, f"{VMIS}/web")
        uid = await uid_of(talk, f"{CLAIMS}/{await claim_of(talk, 'web')}")
        await talk.until(CLAIMS, lambda found: len(images(killed, uid)) == 1, "its layers are merged", 30)
        assert killed.marks(uid) == 1
        await drop(talk, f"{VMS}/web")
    await killed.check_empty()


@pytest.mark.spec("kubevirt", 268)
@played_by(play, "killed", seconds=60 + 20 * COUNT)
async def test_a_restore_in_place_leaves_one_whole_disk_at_each_step(killed: KilledPaddock) -> None:
    async def once(killed: KilledPaddock, uid: str, number: int) -> None:
        """Take a snapshot of two marks, write a third, and go back to the one mark of the oldest snapshot."""
        name, before = f"s{number}", f"s{number - 1}"
        async with killed.talk() as talk:
            await talk.make(SNAPSHOTS, snapshot(name))
            await taken(talk, name)
            await write(talk, "web")
            if number % 2:
                await drop(talk, f"{SNAPSHOTS}/{before}")
                await gone(talk, f"{SNAPSHOTS}/{before}")
            expected = {f"s{each}": 2 for each in range(number % 2, number + 1) if each % 2 or each == number}
            await has_snapshots(talk, len(expected) + 1)

        async def back(talk: Talk) -> None:
            await restored(talk, f"r{number}")
            assert await uid_of(talk, f"{CLAIMS}/disk") == uid
            await check(killed, talk, web=1)
            await check_held(killed, talk, one=1, **expected)

        def stands() -> None:
            assert killed.marks(uid) in (1, 3)

        await killed.step(lambda talk: ensure(talk, RESTORES, restore(f"r{number}", "web", **IN_PLACE)), back, stands)
        if number + 1 < COUNT:
            async with killed.talk() as talk:
                await talk.until(f"{VMS}/web", lambda found: not found["status"].get("restoreInProgress"), "it may be changed")
                await power(talk, "web", "Always")
                # A guest begins with its first mark again.
                await write(talk, "web", 2)

    await begin(killed)
    async with killed.talk() as talk:
        uid = await uid_of(talk, f"{CLAIMS}/disk")
    for number in range(COUNT):
        await once(killed, uid, number)
    await end(killed)


class SmallPool:
    """The volumes of a host in a file system of some megabytes."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._libc = ctypes.CDLL(None, use_errno=True)
        if self._libc.mount(b"none", str(folder).encode(), b"tmpfs", 0, b"size=24m") != 0:
            pytest.skip(f"needs small-file-systems: {os.strerror(ctypes.get_errno())}")

    def fill(self) -> None:
        """Take all of its room."""
        with (self._folder / "ballast").open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise

    def empty(self) -> None:
        """Give the room back."""
        (self._folder / "ballast").unlink()

    def close(self) -> None:
        """Take it off."""
        self._libc.umount2(str(self._folder).encode(), 2)


@pytest.fixture
def pool(killed: KilledPaddock) -> Iterator[SmallPool]:
    """The pool of a host that was not started yet."""
    made = SmallPool(killed.host.root / "engine" / "volumes")
    yield made
    killed.host.end()
    made.close()


@pytest.mark.spec("kubevirt", 268)
@pytest.mark.parametrize("policy", ["InPlace", "RandomizeNames"])
@played_by(play, "killed")
async def test_a_full_pool_leaves_the_disk_as_it_was(killed: KilledPaddock, pool: SmallPool, policy: str) -> None:
    await begin(killed)
    async with killed.talk() as talk:
        uid = await uid_of(talk, f"{CLAIMS}/disk")
        before = images(killed, uid)
    pool.fill()

    def is_refused(found: object) -> bool:
        return ("no space left" if policy == "InPlace" else "to be filled") in str(found).lower()

    async def refused(talk: Talk) -> None:
        await talk.until(f"{RESTORES}/r", is_refused, "it says that there is no room", 30)
        assert (await uid_of(talk, f"{CLAIMS}/disk"), killed.marks(uid), images(killed, uid)) == (uid, 2, before)
        assert await claim_of(talk, "web") == "disk"

    asked = restore("r", "web", **{**IN_PLACE, "volumeRestorePolicy": policy})
    async with killed.talk() as talk:
        await ensure(talk, RESTORES, asked)
        await refused(talk)
    killed.host.kill()
    assert killed.marks(uid) == 2
    killed.host.start()
    async with killed.talk() as talk:
        await refused(talk)
    pool.empty()
    killed.host.kill()
    killed.host.start()
    async with killed.talk() as talk:
        await restored(talk, "r")
        # The collector takes the claim of a DataVolume that is gone.
        await talk.until(CLAIMS, lambda found: len(found["items"]) == 1, "the former claim is gone", 30)
        await check(killed, talk, web=1)
        if policy == "InPlace":
            await talk.until(CLAIMS, lambda found: len(images(killed, uid)) == 2, "nothing else is there", 10)
    await end(killed)
