"""DataVolumes and claims that one owner leaves and the next one takes, while Paddock is killed: they stay, with what the guests wrote."""

import pytest

from tests.coroutines import played_by
from tests.host.owners.conftest import (
    CLAIMS,
    DATA_VOLUMES,
    KilledPaddock,
    claim_spec,
    drop,
    ensure,
    filled,
    gone,
    installed,
    owners,
    play,
    uid_of,
    write,
)
from tests.host.pools.test_state_preservation import POOLS, pool
from tests.host.runs.conftest import VMIS, VMS, Data, Talk, machine

pytestmark = pytest.mark.needs("qemu")

NAMESPACES, CONFIG_MAPS = "/api/v1/namespaces", "/api/v1/namespaces/default/configmaps"
ELSEWHERE = CLAIMS.replace("default", "shop")
TRANSFERS = "/apis/cdi.kubevirt.io/v1beta1/objecttransfers"
ADOPT = {"cdi.kubevirt.io/allowClaimAdoption": "true"}


def data_volume(name: str, url: str, **annotations: str) -> Data:
    """A DataVolume that is downloaded."""
    kind = {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume"}
    spec = {"source": {"http": {"url": url}}, "pvc": claim_spec()}
    return {**kind, "metadata": {"name": name, "annotations": annotations}, "spec": spec}


def on_claim(name: str, claim: str) -> Data:
    """A machine on a claim of somebody else."""
    document = machine(name, volumes=[{"name": "root", "persistentVolumeClaim": {"claimName": claim}}])
    document["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 0
    document["spec"]["template"]["spec"]["domain"]["devices"]["autoattachPodInterface"] = False
    return document


def transfer(name: str, kind: str, source: tuple[str, str], target: tuple[str, str]) -> Data:
    """A transfer between two places, each a namespace and a name."""
    spec = {
        "source": {"kind": kind, "namespace": source[0], "name": source[1]},
        "target": {"namespace": target[0], "name": target[1]},
    }
    return {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "ObjectTransfer", "metadata": {"name": name}, "spec": spec}


async def moved(talk: Talk, name: str) -> None:
    """Wait until a transfer is complete."""
    await talk.until(f"{TRANSFERS}/{name}", lambda found: found.get("status", {}).get("phase") == "Complete", "it has moved", 40)


async def disk(talk: Talk, name: str = "disk") -> tuple[str, str]:
    """The UIDs of a DataVolume and its claim."""
    return await uid_of(talk, f"{DATA_VOLUMES}/{name}"), await uid_of(talk, f"{CLAIMS}/{name}")


@pytest.mark.spec("kubevirt", 111, 24)
@played_by(play, "killed")
async def test_a_disk_goes_from_machine_to_machine(killed: KilledPaddock) -> None:
    async with killed.talk() as talk:
        await talk.make(VMS, installed("m0", "disk", killed.url))
        await write(talk, "m0")
        kept = await disk(talk)
    for number in (1, 2):
        former, name = f"m{number - 1}", f"m{number}"

        async def leave(talk: Talk, former: str = former) -> None:
            await drop(talk, f"{VMS}/{former}", "Orphan")
            await drop(talk, f"{VMIS}/{former}")

        async def is_left(talk: Talk, former: str = former, number: int = number) -> None:
            await gone(talk, f"{VMS}/{former}")
            await gone(talk, f"{VMIS}/{former}")
            assert await disk(talk) == kept and killed.marks(kept[1]) == number
            assert await owners(talk, f"{DATA_VOLUMES}/disk") == [] and await owners(talk, f"{CLAIMS}/disk") == ["disk"]

        async def take(talk: Talk, name: str = name) -> None:
            await ensure(talk, VMS, installed(name, "disk", killed.url))

        async def is_taken(talk: Talk, name: str = name, number: int = number) -> None:
            await write(talk, name, number + 1)
            assert await disk(talk) == kept and killed.marks(kept[1]) == number + 1
            assert await owners(talk, f"{DATA_VOLUMES}/disk") == [name]

        await killed.step(leave, is_left)
        await killed.step(take, is_taken)
    async with killed.talk() as talk:
        await drop(talk, f"{VMS}/m2")
    await killed.check_empty()


@pytest.mark.spec("kubevirt", 111, 72)
@played_by(play, "killed")
async def test_a_claim_changes_its_data_volume_below_a_machine_that_runs(killed: KilledPaddock) -> None:
    async with killed.talk() as talk:
        await talk.make(DATA_VOLUMES, data_volume("disk", killed.url))
        await filled(talk, "disk")
        await talk.make(VMS, on_claim("web", "disk"))
        await talk.make(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "keeper"}})
        await write(talk, "web")
        claim, run = await uid_of(talk, f"{CLAIMS}/disk"), await uid_of(talk, f"{VMIS}/web")
    marks = 1

    async def check(talk: Talk, *names: str) -> None:
        """Fail unless the claim has these owners, and the machine runs on it and writes."""
        nonlocal marks
        assert await owners(talk, f"{CLAIMS}/disk") == list(names) and await uid_of(talk, f"{CLAIMS}/disk") == claim
        await write(talk, "web")
        marks += 1
        assert await uid_of(talk, f"{VMIS}/web") == run and killed.marks(claim) == marks

    async def let_go(talk: Talk) -> None:
        await gone(talk, f"{DATA_VOLUMES}/disk")
        await check(talk)

    async def adopted(talk: Talk) -> None:
        await filled(talk, "disk")
        await check(talk, "disk")

    for _ in range(2):
        await killed.step(lambda talk: drop(talk, f"{DATA_VOLUMES}/disk", "Orphan"), let_go)
        await killed.step(lambda talk: ensure(talk, DATA_VOLUMES, data_volume("disk", killed.url, **ADOPT)), adopted)
    async with killed.talk() as talk:
        keeper = {"apiVersion": "v1", "kind": "ConfigMap", "name": "keeper", "uid": await uid_of(talk, f"{CONFIG_MAPS}/keeper")}
        references = [*(await talk.get(f"{CLAIMS}/disk"))["metadata"]["ownerReferences"], keeper]
        await talk.change(f"{CLAIMS}/disk", {"metadata": {"ownerReferences": references}})

    async def shared(talk: Talk) -> None:
        await gone(talk, f"{DATA_VOLUMES}/disk")
        await talk.until(f"{CLAIMS}/disk", lambda found: len(found["metadata"]["ownerReferences"]) == 1, "one owner is left", 30)
        await check(talk, "keeper")

    await killed.step(lambda talk: drop(talk, f"{DATA_VOLUMES}/disk"), shared)
    async with killed.talk() as talk:
        await drop(talk, f"{VMS}/web")
        await gone(talk, f"{VMIS}/web")
        # The last owner takes it along.
        await drop(talk, f"{CONFIG_MAPS}/keeper")
    await killed.check_empty()


@pytest.mark.spec("kubevirt", 111)
@played_by(play, "killed")
async def test_a_disk_moves_to_another_namespace_and_back(killed: KilledPaddock) -> None:
    async with killed.talk() as talk:
        await talk.make(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        await talk.make(VMS, installed("beside", "other", killed.url))
        await talk.make(DATA_VOLUMES, data_volume("disk", killed.url))
        await filled(talk, "disk")
        await talk.make(VMS, on_claim("web", "disk"))
        await write(talk, "web")
        await write(talk, "beside")
        run = await uid_of(talk, f"{VMIS}/beside")

    async def away(talk: Talk) -> None:
        # It waits for the machine to end.
        await ensure(talk, TRANSFERS, transfer("away", "DataVolume", ("default", "disk"), ("shop", "goods")))
        await drop(talk, f"{VMS}/web")

    async def arrived(talk: Talk) -> None:
        await moved(talk, "away")
        assert await talk.get(f"{CLAIMS}/disk") == {} and await talk.get(f"{DATA_VOLUMES}/disk") == {}
        assert await owners(talk, f"{ELSEWHERE}/goods") == ["goods"]
        assert killed.marks(await uid_of(talk, f"{ELSEWHERE}/goods")) == 1
        assert await uid_of(talk, f"{VMIS}/beside") == run

    await killed.step(away, arrived)

    async def back(talk: Talk) -> None:
        await ensure(talk, TRANSFERS, transfer("back", "PersistentVolumeClaim", ("shop", "goods"), ("default", "disk")))

    async def is_back(talk: Talk) -> None:
        await moved(talk, "back")
        await gone(talk, f"{ELSEWHERE}/goods")
        await gone(talk, f"{DATA_VOLUMES}/disk")
        assert await owners(talk, f"{CLAIMS}/disk") == []
        assert killed.marks(await uid_of(talk, f"{CLAIMS}/disk")) == 1

    await killed.step(back, is_back)
    async with killed.talk() as talk:
        await talk.make(VMS, on_claim("web", "disk"))
        await write(talk, "web", 2)
        assert killed.marks(await uid_of(talk, f"{CLAIMS}/disk")) == 2
        for name in ("web", "beside"):
            await drop(talk, f"{VMS}/{name}")
            await gone(talk, f"{VMIS}/{name}")
        await drop(talk, f"{CLAIMS}/disk")
    await killed.check_empty()


@pytest.mark.spec("kubevirt", 111, 100)
@pytest.mark.spec("kubermatic", 56)
@played_by(play, "killed")
async def test_a_pool_keeps_its_disks(killed: KilledPaddock) -> None:
    """It is scaled in and out, and deleted in the end: what was scaled in stays."""
    body = pool(killed.url, "8Mi", "32Mi", "Always")
    body["spec"]["scaleInStrategy"]["proactive"]["selectionPolicy"] = {"sortPolicy": "DescendingOrder"}
    async with killed.talk() as talk:
        await talk.make(POOLS, body)
        for name in ("web-0", "web-1"):
            await write(talk, name)
        kept = {name: await disk(talk, name) for name in ("disk-0", "disk-1")}
        run = await uid_of(talk, f"{VMIS}/web-0")

    async def check(talk: Talk, owner: list[str], marks: int) -> None:
        assert {name: await disk(talk, name) for name in kept} == kept
        assert await owners(talk, f"{DATA_VOLUMES}/disk-1") == owner
        assert (killed.marks(kept["disk-0"][1]), killed.marks(kept["disk-1"][1])) == (1, marks)
        assert await uid_of(talk, f"{VMIS}/web-0") == run

    for number in (1, 2):

        async def is_in(talk: Talk, number: int = number) -> None:
            await gone(talk, f"{VMS}/web-1")
            await gone(talk, f"{VMIS}/web-1")
            await check(talk, [], number)

        async def is_out(talk: Talk, number: int = number) -> None:
            await write(talk, "web-1", number + 1)
            await check(talk, ["web-1"], number + 1)

        await killed.step(lambda talk: scale(talk, 1), is_in)
        await killed.step(lambda talk: scale(talk, 2), is_out)

    async def end(talk: Talk) -> None:
        await drop(talk, f"{POOLS}/web")

    async def ended(talk: Talk) -> None:
        await gone(talk, f"{POOLS}/web")
        await gone(talk, f"{CLAIMS}/disk-0")
        assert await disk(talk, "disk-1") == kept["disk-1"] and killed.marks(kept["disk-1"][1]) == 3

    async with killed.talk() as talk:
        await scale(talk, 1)
        await gone(talk, f"{VMS}/web-1")
    await killed.step(end, ended)
    async with killed.talk() as talk:
        await drop(talk, f"{DATA_VOLUMES}/disk-1")
    await killed.check_empty()


async def scale(talk: Talk, replicas: int) -> None:
    """Say how many machines a pool is to have."""
    await talk.change(f"{POOLS}/web", {"spec": {"replicas": replicas}})
