"""Claims that a restore makes have an owner at every moment: when all machines, clones, snapshots and restores are gone, so are they.

A user deletes something before a request of the controllers: each second of them, as all take a minute. The deletion is committed before
that request, or decided and committed later, while the controllers still see the object.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any

import pytest

from paddock.kubernetes.client.errors import Unreachable
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta import adoption
from paddock.kubevirt.controllers.snapshots.restores import RestoreReconciler
from paddock.server.housekeeping.collector import GarbageCollector
from paddock.server.store.contract import StoreKey
from tests.coroutines import played
from tests.kit.engine.fakehost import FakeHost
from tests.kit.servers.slowstore import SlowStore
from tests.scenario.hosts import snapshotting
from tests.scenario.hosts.conftest import Play

GROUP = "/apis/snapshot.kubevirt.io/v1beta1/namespaces/default"
RESTORES, SNAPSHOTS = f"{GROUP}/virtualmachinerestores", f"{GROUP}/virtualmachinesnapshots"
CLONES = "/apis/clone.kubevirt.io/v1beta1/namespaces/default/virtualmachineclones"
MACHINES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
CLAIMS, VOLUMES = "/api/v1/namespaces/default/persistentvolumeclaims", "/api/v1/persistentvolumes"
DATA_VOLUMES = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
COPY = {
    "apiVersion": snapshotting.CLONE,
    "kind": "VirtualMachineClone",
    "metadata": {"name": "copy"},
    "spec": {"source": snapshotting.MACHINE, "target": {**snapshotting.MACHINE, "name": "other"}},
}
# More than the controllers ask in one of the scripts.
MOST = 200
# The time that a commit takes on a slow disk.
COMMIT_SECONDS = 0.2
# REQUESTS=0:1 plays each of them
FIRST, STEP = (int(each) for each in os.environ.get("REQUESTS", "0:2").split(":"))


async def names(host: FakeHost, path: str) -> list[str]:
    return [each["metadata"]["name"] for each in (await host.api.get(path)).data["items"]]


async def check_nothing_is_left(host: FakeHost) -> None:
    """Fail unless all disks go with what users can see and delete."""
    for path in (CLONES, RESTORES, SNAPSHOTS, MACHINES):
        for name in await names(host, path):
            await host.api.delete(f"{path}/{name}")
    # The longest pause of a controller after failures, and some.
    await asyncio.sleep(700)
    for path in (CLONES, RESTORES, SNAPSHOTS, MACHINES, DATA_VOLUMES, CLAIMS, VOLUMES):
        assert await names(host, path) == [], path
    assert host.engine.volumes.ids() == set() and host.engine.volumes.snapshots == {}


async def begun(host: FakeHost) -> None:
    await snapshotting.web(host, "Halted")
    await asyncio.sleep(20)
    await host.make(COPY)


async def restored(host: FakeHost) -> None:
    await snapshotting.web(host, "Halted")
    await asyncio.sleep(20)
    await host.make(snapshotting.snapshot())
    await asyncio.sleep(20)
    await host.make(snapshotting.restore())


@pytest.mark.spec("kubevirt", 129)
@pytest.mark.parametrize("slow", [False, True], ids=["committed", "decided"])
@pytest.mark.parametrize("deleted", [f"{MACHINES}/other", f"{CLONES}/copy"], ids=["target", "clone"])
def test_a_clone_leaves_nothing_whatever_is_deleted_at_any_request(play: Play, deleted: str, slow: bool) -> None:
    at_each_request(play, begun, deleted, slow=slow)


@pytest.mark.spec("kubevirt", 129)
@pytest.mark.parametrize("slow", [False, True], ids=["committed", "decided"])
@pytest.mark.parametrize("deleted", [f"{MACHINES}/web", f"{RESTORES}/back", f"{SNAPSHOTS}/one"], ids=["target", "restore", "snapshot"])
def test_a_restore_leaves_nothing_whatever_is_deleted_at_any_request(play: Play, deleted: str, slow: bool) -> None:
    at_each_request(play, restored, deleted, slow=slow)


@pytest.mark.spec("kubevirt", 129)
def test_a_clone_that_is_discarded_with_its_target_leaves_nothing_when_the_collector_is_late(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The restore goes on until the collector comes to it, and finds the claim of a machine that is gone."""
    look = GarbageCollector._reconcile

    async def late(self: GarbageCollector, key: StoreKey) -> None:
        await asyncio.sleep(5 * COMMIT_SECONDS)
        await look(self, key)

    monkeypatch.setattr(GarbageCollector, "_reconcile", late)
    at_each_request(play, begun, f"{CLONES}/copy", f"{MACHINES}/other", slow=True)


@pytest.mark.spec("kubevirt", 129)
@pytest.mark.parametrize("slow", [False, True], ids=["committed", "decided"])
def test_a_clone_that_is_given_up_leaves_nothing_when_its_target_goes_at_any_request(
    play: Play, monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    async def given_up(host: FakeHost) -> None:
        """The machine is on claims that it does not own when the clone is deleted."""

        async def end(self: RestoreReconciler, *arguments: Any) -> bool:
            raise Unreachable("the process ended", sent=True)

        await snapshotting.web(host, "Halted")
        with monkeypatch.context() as patch:
            patch.setattr(RestoreReconciler, "_own", end)
            await host.make(COPY)
            await asyncio.sleep(20)
        await host.api.delete(f"{CLONES}/copy")

    at_each_request(play, given_up, f"{MACHINES}/other", slow=slow)


@pytest.mark.spec("kubevirt", 129)
@played
async def test_a_restore_that_is_given_up_hands_its_claims_over_to_the_machine_that_is_on_them(
    host: FakeHost, /, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def end(self: RestoreReconciler, *arguments: Any) -> bool:
        raise Unreachable("the process ended", sent=True)

    await snapshotting.web_on_standing_disk(host)
    await host.make(snapshotting.snapshot())
    await asyncio.sleep(20)
    monkeypatch.setattr(RestoreReconciler, "_own", end)
    await host.make(snapshotting.restore())
    await asyncio.sleep(10)
    monkeypatch.undo()
    (claim,) = [name for name in await names(host, CLAIMS) if name.startswith("restore-")]
    assert await snapshotting.claim_of(host) == claim
    await host.api.delete(f"{RESTORES}/back")
    await asyncio.sleep(60)
    (owner,) = (await host.api.get(f"{CLAIMS}/{claim}")).data["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("VirtualMachine", "web")
    await host.api.delete(f"{DATA_VOLUMES}/disk")
    await check_nothing_is_left(host)


@pytest.mark.spec("kubevirt", 129)
@played
async def test_a_target_that_goes_before_it_has_its_claims_ends_the_restore_and_them(
    host: FakeHost, /, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = RestoreReconciler._own

    async def late(self: RestoreReconciler, *arguments: Any) -> bool:
        await host.api.delete(f"{MACHINES}/other")
        await host.house.collector.chores.settled()
        return await own(self, *arguments)

    monkeypatch.setattr(RestoreReconciler, "_own", late)
    await snapshotting.web_on_standing_disk(host)
    await host.make(COPY)
    await asyncio.sleep(60)
    assert await names(host, MACHINES) == ["web"] and await names(host, CLAIMS) == ["disk"]
    assert (await host.api.get(f"{CLONES}/copy")).data["status"]["phase"] == "Failed"
    await host.api.delete(f"{DATA_VOLUMES}/disk")
    await check_nothing_is_left(host)


@pytest.mark.spec("kubevirt", 129)
@pytest.mark.parametrize("held", [False, True], ids=["gone", "going"])
@played
async def test_a_target_that_goes_while_it_adopts_leaves_no_claim(host: FakeHost, /, monkeypatch: pytest.MonkeyPatch, held: bool) -> None:
    async def begin_to_adopt(self: RestoreReconciler, restore: Any, target: Key, claims: Iterable[str]) -> bool:
        """The process ends after the first write; target and clone are deleted before it starts again."""
        machine = (await host.api.get(f"{MACHINES}/other")).data
        owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "other", "uid": machine["metadata"]["uid"]}
        for name in claims:
            claim = (await host.api.get(f"{CLAIMS}/{name}")).data
            await host.api.merge(f"{CLAIMS}/{name}", {"metadata": adoption.adopted(claim["metadata"], owner)})
        if held:
            await host.api.merge(f"{MACHINES}/other", {"metadata": {"finalizers": ["test/hold"]}})
        monkeypatch.undo()
        await host.api.delete(f"{MACHINES}/other")
        await host.api.delete(f"{CLONES}/copy")
        raise Unreachable("the process ended", sent=True)

    monkeypatch.setattr(RestoreReconciler, "_own", begin_to_adopt)
    await snapshotting.web_on_standing_disk(host)
    await host.make(COPY)
    await asyncio.sleep(60)
    if held:
        assert await names(host, RESTORES) == [] and await names(host, CLAIMS) == ["disk"]
        await host.api.merge(f"{MACHINES}/other", {"metadata": {"finalizers": None}})
    await host.api.delete(f"{DATA_VOLUMES}/disk")
    await check_nothing_is_left(host)


def at_each_request(play: Play, begin: Callable[[FakeHost], Coroutine[Any, Any, None]], *deleted: str, slow: bool) -> None:
    over: list[int] = []

    async def delete(host: FakeHost) -> None:
        for each in deleted:
            await host.api.delete(each)

    async def script(host: FakeHost, store: SlowStore, request: int) -> None:
        await host.end()
        wire = host.interrupted()
        wire.about = (
            "/virtualmachinerestores/",
            "/virtualmachines/",
            "/persistentvolumeclaims/",
            "/virtualmachines",
            "/persistentvolumeclaims",
        )
        await host.begin()

        async def intrude() -> None:
            if slow:
                # The request finds the object as it was, and what it writes is committed after the deletion.
                intruding.append(asyncio.create_task(delete(host)))
                await asyncio.sleep(COMMIT_SECONDS / 2)
                return
            await delete(host)
            await host.house.collector.chores.settled()

        intruding: list[asyncio.Task[Any]] = []
        wire.act = intrude
        task = asyncio.create_task(begin(host))
        await asyncio.sleep(29)
        store.seconds = COMMIT_SECONDS if slow else 0.0
        wire.at = wire.requests + request
        await task
        await asyncio.sleep(60)
        if wire.requests <= wire.at:
            over.append(request)
        wire.at = -1
        await check_nothing_is_left(host)

    for request in range(FIRST, MOST, STEP):
        store = SlowStore()
        play(partial(script, store=store, request=request), store=store)
        if over:
            assert request > 5
            break
    else:
        raise AssertionError("it never ends by itself")
