"""Snapshots are restored, and machines cloned, while machines run and Paddock is killed: each disk holds what it is to hold, once."""

import pytest

from tests.coroutines import played_by
from tests.host.owners.conftest import (
    CLAIMS,
    DATA_VOLUMES,
    KilledPaddock,
    claim_of,
    drop,
    ensure,
    gone,
    installed,
    owners,
    play,
    power,
    uid_of,
    write,
)
from tests.host.runs.conftest import VMIS, VMS, Data, Talk, phase

pytestmark = pytest.mark.needs("qemu")

_GROUP = "/apis/snapshot.kubevirt.io/v1beta1/namespaces/default"
SNAPSHOTS, RESTORES = f"{_GROUP}/virtualmachinesnapshots", f"{_GROUP}/virtualmachinerestores"
CONTENTS = f"{_GROUP}/virtualmachinesnapshotcontents"
VOLUME_SNAPSHOTS = "/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots"
CLONES = "/apis/clone.kubevirt.io/v1beta1/namespaces/default/virtualmachineclones"


def _machine(name: str) -> Data:
    return {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": name}


def snapshot(name: str) -> Data:
    """A snapshot of the machine."""
    kind = {"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineSnapshot"}
    return {**kind, "metadata": {"name": name}, "spec": {"source": _machine("web")}}


def restore(name: str, target: str, **spec: str) -> Data:
    """A restore of the snapshot `one`."""
    kind = {"apiVersion": "snapshot.kubevirt.io/v1beta1", "kind": "VirtualMachineRestore"}
    return {**kind, "metadata": {"name": name}, "spec": {"target": _machine(target), "virtualMachineSnapshotName": "one", **spec}}


def clone(name: str, target: str) -> Data:
    """A clone of the machine."""
    kind = {"apiVersion": "clone.kubevirt.io/v1beta1", "kind": "VirtualMachineClone"}
    return {**kind, "metadata": {"name": name}, "spec": {"source": _machine("web"), "target": _machine(target)}}


async def taken(talk: Talk, name: str) -> None:
    """Wait until a snapshot is ready."""
    await talk.until(f"{SNAPSHOTS}/{name}", lambda found: found.get("status", {}).get("readyToUse"), "it is taken", 30)


async def restored(talk: Talk, name: str) -> None:
    """Wait until a restore is complete."""
    await talk.until(f"{RESTORES}/{name}", lambda found: found.get("status", {}).get("complete"), "it is restored", 30)


async def begin(killed: KilledPaddock) -> None:
    """A machine that runs: its disk was written once before the snapshot `one`, and once after it."""
    async with killed.talk() as talk:
        await talk.make(VMS, installed("web", "disk", killed.url))
        await write(talk, "web")
        await talk.make(SNAPSHOTS, snapshot("one"))
        await taken(talk, "one")
        await write(talk, "web")


async def check(killed: KilledPaddock, talk: Talk, **machines: int) -> None:
    """Fail unless each machine owns its claim, on which the guest wrote so often, and there is no other claim."""
    claims = {name: await claim_of(talk, name) for name in machines}
    assert sorted(claims.values()) == sorted(each["metadata"]["name"] for each in (await talk.get(CLAIMS))["items"])
    for name, claim in claims.items():
        assert killed.marks(await uid_of(talk, f"{CLAIMS}/{claim}")) == machines[name], name
        owner = DATA_VOLUMES if await talk.get(f"{DATA_VOLUMES}/{claim}") else CLAIMS
        assert await owners(talk, f"{owner}/{claim}") == [name]


@pytest.mark.spec("kubevirt", 71, 129)
@played_by(play, "killed")
async def test_clones_and_restores_to_new_machines(killed: KilledPaddock) -> None:
    await begin(killed)

    async def cloned(talk: Talk) -> None:
        await talk.until(f"{CLONES}/k", lambda found: phase(found) == "Succeeded", "it is cloned", 30)
        await check(killed, talk, web=2, copy=2)

    await killed.step(lambda talk: ensure(talk, CLONES, clone("k", "copy")), cloned)

    async def made(talk: Talk) -> None:
        await restored(talk, "r")
        await check(killed, talk, web=2, copy=2, new=1)

    await killed.step(lambda talk: ensure(talk, RESTORES, restore("r", "new")), made)

    async def forget(talk: Talk) -> None:
        for path in (f"{CLONES}/k", f"{RESTORES}/r", f"{SNAPSHOTS}/one"):
            await drop(talk, path)
        await power(talk, "copy", "Always")

    async def forgotten(talk: Talk) -> None:
        for path in (CLONES, RESTORES, SNAPSHOTS, CONTENTS, VOLUME_SNAPSHOTS):
            await talk.until(path, lambda found: found["items"] == [], "it is gone", 30)
        # The new machine is another one: it writes its own disk alone.
        await write(talk, "copy", 3)
        await check(killed, talk, web=2, copy=3, new=1)

    await killed.step(forget, forgotten)

    async def delete(talk: Talk) -> None:
        for name in ("web", "new"):
            await drop(talk, f"{VMS}/{name}")

    async def deleted(talk: Talk) -> None:
        for name in ("web", "new"):
            await gone(talk, f"{VMS}/{name}")
        await talk.until(CLAIMS, lambda found: len(found["items"]) == 1, "their disks went with them", 30)
        await check(killed, talk, copy=3)

    await killed.step(delete, deleted)
    async with killed.talk() as talk:
        await drop(talk, f"{VMS}/copy")
    await killed.check_empty()


@pytest.mark.spec("kubevirt", 129, 191)
@played_by(play, "killed")
async def test_a_restore_in_place_and_the_end_of_its_owner(killed: KilledPaddock) -> None:
    await begin(killed)
    async with killed.talk() as talk:
        # It runs on while the other one is restored.
        await talk.make(VMS, installed("beside", "other", killed.url))
        await write(talk, "beside")
        before = await uid_of(talk, f"{CLAIMS}/disk")
        run = await uid_of(talk, f"{VMIS}/beside")
    in_place = restore("r", "web", volumeRestorePolicy="InPlace", targetReadinessPolicy="StopTarget")

    async def back(talk: Talk) -> None:
        await restored(talk, "r")
        assert await uid_of(talk, f"{CLAIMS}/disk") == before and await owners(talk, f"{DATA_VOLUMES}/disk") == ["web"]
        await check(killed, talk, web=1, beside=1)

    await killed.step(lambda talk: ensure(talk, RESTORES, in_place), back)

    async def again(talk: Talk) -> None:
        await power(talk, "web", "Always")
        await drop(talk, f"{RESTORES}/r")
        await drop(talk, f"{SNAPSHOTS}/one")

    async def runs(talk: Talk) -> None:
        await gone(talk, f"{RESTORES}/r")
        await gone(talk, f"{SNAPSHOTS}/one")
        await write(talk, "web", 2)
        await check(killed, talk, web=2, beside=1)

    await killed.step(again, runs)
    async with killed.talk() as talk:
        kept = await uid_of(talk, f"{CLAIMS}/disk")
        await power(talk, "web", "Halted")
        await gone(talk, f"{VMIS}/web")

    async def orphaned(talk: Talk) -> None:
        await gone(talk, f"{VMS}/web")
        assert await uid_of(talk, f"{CLAIMS}/disk") == kept and await owners(talk, f"{DATA_VOLUMES}/disk") == []
        assert killed.marks(kept) == 2
        assert await uid_of(talk, f"{VMIS}/beside") == run

    await killed.step(lambda talk: drop(talk, f"{VMS}/web", "Orphan"), orphaned)
    async with killed.talk() as talk:
        await drop(talk, f"{VMS}/beside")
        await drop(talk, f"{DATA_VOLUMES}/disk")
    await killed.check_empty()


@pytest.mark.spec("kubevirt", 191)
@played_by(play, "killed")
async def test_a_restore_to_another_name_takes_the_place_of_the_data_volume(killed: KilledPaddock) -> None:
    await begin(killed)

    async def back(talk: Talk) -> None:
        await restored(talk, "r")
        name = await claim_of(talk, "web")
        assert (await talk.get(f"{RESTORES}/r"))["status"]["deletedDataVolumes"] == ["disk"]
        assert [each["metadata"]["name"] for each in (await talk.get(DATA_VOLUMES))["items"]] == [name] != ["disk"]
        assert await owners(talk, f"{DATA_VOLUMES}/{name}") == ["web"]
        await check(killed, talk, web=1)

    elsewhere = restore("r", "web", volumeRestorePolicy="RandomizeNames", targetReadinessPolicy="StopTarget")
    await killed.step(lambda talk: ensure(talk, RESTORES, elsewhere), back)
    async with killed.talk() as talk:
        # The restore is complete first, and then the machine may be changed again.
        await talk.until(f"{VMS}/web", lambda found: not found["status"].get("restoreInProgress"), "it may be changed")
        await power(talk, "web", "Always")
        await write(talk, "web", 2)
        for path in (f"{RESTORES}/r", f"{SNAPSHOTS}/one", f"{VMS}/web"):
            await drop(talk, path)
    await killed.check_empty()


@pytest.mark.spec("kubevirt", 79)
@played_by(play, "killed")
async def test_a_restore_of_a_snapshot_that_lost_its_data_leaves_the_disk(killed: KilledPaddock) -> None:
    await begin(killed)
    async with killed.talk() as talk:
        disk, run = await uid_of(talk, f"{CLAIMS}/disk"), await uid_of(talk, f"{VMIS}/web")
        (lost,) = (await talk.get(VOLUME_SNAPSHOTS))["items"]
        await drop(talk, f"{VOLUME_SNAPSHOTS}/{lost['metadata']['name']}")
        await has_snapshots(talk, 0)
        await talk.until(f"{SNAPSHOTS}/one", lambda found: not found["status"]["readyToUse"], "it says so", 30)
    in_place = restore("r", "web", volumeRestorePolicy="InPlace", targetReadinessPolicy="StopTarget")

    async def refused(talk: Talk) -> None:
        found = await talk.until(f"{RESTORES}/r", lambda found: found.get("status", {}).get("complete") is False, "it is refused", 30)
        assert f"VolumeSnapshot {lost['metadata']['name']} does not exist" in found["status"]["conditions"][0]["reason"]
        assert (await uid_of(talk, f"{CLAIMS}/disk"), await uid_of(talk, f"{VMIS}/web")) == (disk, run)
        await check(killed, talk, web=2)

    await killed.step(lambda talk: ensure(talk, RESTORES, in_place), refused)
    async with killed.talk() as talk:
        for path in (f"{RESTORES}/r", f"{SNAPSHOTS}/one", f"{VMS}/web"):
            await drop(talk, path)
    await killed.check_empty()


async def check_held(killed: KilledPaddock, talk: Talk, **wanted: int) -> None:
    """Fail unless these are the snapshots, and the guest had written so often on the disk of each."""
    uids = {each["metadata"]["uid"]: each["metadata"]["name"] for each in (await talk.get(SNAPSHOTS))["items"]}
    volumes = {each["metadata"]["name"]: each["metadata"]["uid"] for each in (await talk.get(VOLUME_SNAPSHOTS))["items"]}
    held = {name: uids[uid] for name in volumes for uid in uids if uid in name}
    assert {held[name]: killed.frozen_marks(uid) for name, uid in volumes.items()} == wanted


async def has_snapshots(talk: Talk, count: int) -> None:
    """Wait until there are so many."""
    await talk.until(VOLUME_SNAPSHOTS, lambda found: len(found["items"]) == count, f"there are {count}", 30)


async def take_more(killed: KilledPaddock) -> None:
    """Two more snapshots, of a disk that was written once more each."""
    for number in (2, 3):

        async def take(talk: Talk, number: int = number) -> None:
            await ensure(talk, SNAPSHOTS, snapshot(f"s{number}"))

        async def stands(talk: Talk, number: int = number) -> None:
            await taken(talk, f"s{number}")
            await check_held(killed, talk, one=1, **{f"s{each}": each for each in range(2, number + 1)})
            await write(talk, "web")

        await killed.step(take, stands)


async def restore_the_oldest(killed: KilledPaddock) -> None:
    """The oldest is restored, and the one above it goes."""

    async def replace(talk: Talk) -> None:
        await ensure(talk, RESTORES, restore("r", "old"))
        await drop(talk, f"{SNAPSHOTS}/s2")

    async def replaced(talk: Talk) -> None:
        await restored(talk, "r")
        await has_snapshots(talk, 2)
        await check_held(killed, talk, one=1, s3=3)
        await check(killed, talk, web=4, old=1)

    await killed.step(replace, replaced)


async def rest(killed: KilledPaddock) -> None:
    """What was between the two is merged as soon as the machine rests; the other one goes on over the oldest."""

    async def stop(talk: Talk) -> None:
        await power(talk, "web", "Halted")
        await power(talk, "old", "Always")
        await drop(talk, f"{SNAPSHOTS}/one")

    async def rests(talk: Talk) -> None:
        await gone(talk, f"{VMIS}/web")
        await has_snapshots(talk, 1)
        await write(talk, "old", 2)
        await check_held(killed, talk, s3=3)
        await check(killed, talk, web=4, old=2)

    await killed.step(stop, rests)


async def delete_the_first(killed: KilledPaddock) -> None:
    """The layers below what is left stay: of the snapshot, and of the other disk."""

    async def delete(talk: Talk) -> None:
        await drop(talk, f"{VMS}/web")
        await drop(talk, f"{RESTORES}/r")

    async def deleted(talk: Talk) -> None:
        await gone(talk, f"{VMS}/web")
        await talk.until(CLAIMS, lambda found: len(found["items"]) == 1, "its disk is gone", 30)
        await check_held(killed, talk, s3=3)
        await check(killed, talk, old=2)

    await killed.step(delete, deleted)


@pytest.mark.spec("kubevirt", 130)
@played_by(play, "killed")
async def test_what_snapshots_hold_stays_while_others_come_and_go(killed: KilledPaddock) -> None:
    await begin(killed)
    for part in (take_more, restore_the_oldest, rest, delete_the_first):
        await part(killed)
    async with killed.talk() as talk:
        await drop(talk, f"{VMS}/old")
        await drop(talk, f"{SNAPSHOTS}/s3")
    await killed.check_empty()
