"""A machine that is deleted: everything of it goes in its order, and nothing is left."""

import asyncio
from typing import Any

import pytest

from tests.coroutines import played
from tests.scenario.fronts.stakater.stage import DISK, GROUP, KEY, Data, Stage, front

FULL: dict[str, Any] = {
    "sshPublicKey": {"secretName": "team-keys"},
    "cloudInit": {"password": "a password"},
    "service": {"enabled": True},
    "additionalDisks": [DISK],
}
TEAM_KEYS: Data = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "team-keys"}, "stringData": {"key": KEY}}
KINDS = {
    "front": f"{GROUP}/virtualmachines",
    "service": "/api/v1/services",
    "machine": "/apis/kubevirt.io/v1/virtualmachines",
    "instance": "/apis/kubevirt.io/v1/virtualmachineinstances",
    "volume": "/apis/cdi.kubevirt.io/v1beta1/datavolumes",
    "claim": "/api/v1/persistentvolumeclaims",
    "secret": "/api/v1/secrets",
}


async def order(stage: Stage, seconds: float) -> list[str]:
    """Return the deleted objects in the order of watches: names by kind."""
    gone: list[tuple[int, str]] = []

    async def follow(kind: str, path: str) -> None:
        async with stage.api.watch(f"{path}?watch=true") as events:
            while True:
                event = await events.next()
                if event["type"] == "DELETED":
                    meta = event["object"]["metadata"]
                    gone.append((int(meta["resourceVersion"]), f"{kind} {meta['name']}"))

    tasks = [asyncio.create_task(follow(kind, path)) for kind, path in KINDS.items()]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return [name for _, name in sorted(gone)]


@pytest.mark.spec("stakater", 67)
@played
async def test_everything_goes_in_its_order_and_what_is_somebody_elses_stays(stage: Stage, /) -> None:
    await stage.host.make(TEAM_KEYS)
    await stage.make(front(**FULL))
    await stage.available()
    watching = asyncio.create_task(order(stage, 90))
    await asyncio.sleep(1)
    await stage.delete()
    gone = await watching
    names = [each for each in gone if each.split()[0] in ("service", "machine", "secret", "front")]
    assert names == ["service web-lb", "machine web", "secret web-cloudinit", "front web"]
    for kind in ("instance web", "volume web-rootdisk", "volume web-data", "claim web-rootdisk", "claim web-data"):
        assert gone.index(kind) < gone.index("secret web-cloudinit"), gone
    assert gone.index("instance web") < gone.index("volume web-rootdisk")
    assert await stage.secret("team-keys") != {}
    assert await stage.front() == {} and stage.host.engine.volumes.ids() == set() and list(stage.host.engine.machines) == []
    left = {name for name in await stage.everything() if not name.endswith("team-keys")}
    assert left == set()


@played
async def test_the_status_says_what_is_waited_for_and_a_stall_is_told(stage: Stage, /) -> None:
    await stage.make(front(terminationGracePeriodSeconds=30))
    await stage.available()
    ours = "example.com/keeps"
    place = "/api/v1/namespaces/default/persistentvolumeclaims/web-rootdisk"
    held = (await stage.claim("web-rootdisk"))["metadata"]["finalizers"]
    assert (await stage.api.merge(place, {"metadata": {"finalizers": [*held, ours]}})).status == 200
    await stage.delete()
    await asyncio.sleep(60)
    assert (await stage.said())["Ready"] == ("False", "Deleting")
    assert await stage.message() == "waiting until PersistentVolumeClaim web-rootdisk is gone"
    assert "DeletionStalled" not in await stage.reasons()
    await asyncio.sleep(600)
    told = [note for reason, note in await stage.notes() if reason == "DeletionStalled"]
    assert len(told) == 1 and "PersistentVolumeClaim web-rootdisk" in told[0]
    assert await stage.front() != {} and await stage.claim("web-rootdisk") != {}
    assert (await stage.api.merge(place, {"metadata": {"finalizers": None}})).status == 200
    await asyncio.sleep(30)
    assert await stage.front() == {} and await stage.everything() == {}


@played
async def test_disks_that_were_taken_out_go_with_the_machine(stage: Stage, /) -> None:
    await stage.make(front(additionalDisks=[DISK]))
    await stage.available()
    await stage.parameters(additionalDisks=[])
    await asyncio.sleep(30)
    assert await stage.volume("web-data") != {}
    await stage.delete()
    await asyncio.sleep(90)
    assert await stage.front() == {} and await stage.everything() == {}


@pytest.mark.parametrize("way", ["Foreground", "Background"])
@played
async def test_every_way_of_deleting_leaves_nothing(stage: Stage, /, way: str) -> None:
    await stage.make(front(service={"enabled": True}, cloudInit={"password": "a password"}))
    await stage.available()
    await stage.delete(options=f"?propagationPolicy={way}")
    await asyncio.sleep(120)
    assert await stage.front() == {} and await stage.everything() == {}


@played
async def test_what_was_made_is_left_where_that_is_asked_for(stage: Stage, /) -> None:
    await stage.make(front(service={"enabled": True}, cloudInit={"password": "a password"}))
    await stage.available()
    running = await stage.host.running()
    await stage.delete(options="?propagationPolicy=Orphan")
    await asyncio.sleep(120)
    assert await stage.front() == {}
    assert await stage.host.running() is running and await stage.service() != {} and await stage.secret("web-cloudinit") != {}
    # Nothing of us holds it any more.
    assert "infrastructure.stakater.com/root-disk" not in ((await stage.volume("web-rootdisk"))["metadata"].get("finalizers") or ())
    await stage.host.delete("VirtualMachine", "kubevirt.io/v1", "web")
    await asyncio.sleep(60)
    assert await stage.volume("web-rootdisk") == {}


@pytest.mark.parametrize("runs", [True, False], ids=["on", "off"])
@played
async def test_what_was_made_is_left_also_by_an_operator_that_was_away(stage: Stage, /, runs: bool) -> None:
    """It finds the finalizer `orphan` taken off, and the references of the dependents gone."""
    await stage.make(front(service={"enabled": True}, cloudInit={"password": "a password"}, additionalDisks=[DISK]))
    await stage.available()
    if not runs:
        await stage.parameters(runStrategy="Halted")
        await asyncio.sleep(60)
    await stage.host.end()
    before = await stage.everything()
    await stage.delete(options="?propagationPolicy=Orphan")
    await asyncio.sleep(30)
    await stage.host.begin()
    await asyncio.sleep(300)
    assert await stage.front() == {}
    gone = {each for each in before if each.startswith(KINDS["front"])}
    assert (await stage.everything()).keys() == before.keys() - gone
    assert "infrastructure.stakater.com/root-disk" not in ((await stage.volume("web-rootdisk"))["metadata"].get("finalizers") or ())


@played
async def test_a_machine_that_was_torn_away_leaves_no_disk_that_cannot_go(stage: Stage, /) -> None:
    """Somebody took our finalizer off: the collector clears away what it can, and we hold nothing."""
    await stage.make(front())
    await stage.available()
    await stage.host.end()
    await stage.delete()
    await stage.change({"metadata": {"finalizers": None}})
    await asyncio.sleep(30)
    await stage.host.begin()
    await asyncio.sleep(120)
    assert await stage.front() == {} and await stage.everything() == {}


@pytest.mark.parametrize("held", [True, False])
@played
async def test_a_machine_that_never_came_to_be_goes_at_once(stage: Stage, /, held: bool) -> None:
    given = {"sshPublicKey": {"secretName": "missing"}} if held else {"service": {"enabled": True}}
    await stage.make(front(**given))
    await asyncio.sleep(10 if held else 0.05)
    await stage.delete()
    await asyncio.sleep(90)
    assert await stage.front() == {} and await stage.everything() == {}
