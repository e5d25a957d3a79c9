"""The desired objects of an owner: applied, left alone when they are so, deleted when they are no longer desired."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Conflict, Invalid
from paddock.kubernetes.client.options import merge_patch
from paddock.kubernetes.client.target import Key, Target, declared, plain
from paddock.kubernetes.client.transport import ResponseStream, Transport, TransportRequest, TransportResponse
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.desired import DesiredObject, DesiredOutcome, DesiredSet, ForeignObject
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.runtime.reference import InvolvedObject, reference
from paddock.kubevirt.kinds import virtualmachine
from tests.coroutines import played
from tests.unit.kubernetes.runtime.conftest import World

MAPS = plain("", "v1", "configmaps", "ConfigMap")
SERVICES = plain("", "v1", "services", "Service")
CLAIMS = plain("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
SECRETS = plain("", "v1", "secrets", "Secret")
MACHINES: Target[Data] = declared(next(kind for kind in virtualmachine.KINDS if kind.kind == "VirtualMachine"), dict)
KINDS = (MAPS, SERVICES, CLAIMS, SECRETS, MACHINES)
BASE = "/api/v1/namespaces/default"


class Counting:
    """A transport that remembers what was written."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.writes: list[str] = []

    async def send(self, ask: TransportRequest) -> TransportResponse:
        if ask.method != "GET":
            self.writes.append(f"{ask.method} {ask.target.partition('?')[0]}")
        return await self._inner.send(ask)

    async def stream(self, ask: TransportRequest) -> ResponseStream:
        return await self._inner.stream(ask)

    async def close(self) -> None:
        await self._inner.close()


class Site:
    """An owner, its set, and what was written for it."""

    def __init__(self, world: World) -> None:
        self.api = world.api
        self.wire = Counting(world.client._transport)
        self.client = Client(self.wire)
        self.informers = Informers(self.client, world.machinery)
        self.owner = InvolvedObject("v1", "ConfigMap", "default", "owner", "")
        self.set = self.again()

    def again(self) -> DesiredSet:
        """The set as a program that has just started has it."""
        return DesiredSet(self.client, [self.informers.of(kind) for kind in KINDS], manager="vm-controller")

    async def reach(self, *wanted: DesiredObject) -> DesiredOutcome:
        reached = await self.set.reach(self.owner, wanted)
        await asyncio.sleep(1)
        return reached

    def written(self) -> list[str]:
        found, self.wire.writes = self.wire.writes, []
        return found


@asynccontextmanager
async def site(world: World) -> AsyncIterator[Site]:
    made = Site(world)
    await world.api.post(f"{BASE}/configmaps", {"metadata": {"name": "owner"}})
    made.informers.start()
    await made.informers.wait_synced()
    seen = made.informers.of(MAPS).cache.get(Key("default", "owner"))
    assert seen is not None
    made.owner = reference(MAPS, seen.meta)
    yield made
    await made.informers.stop()


def config(name: str, **data: str) -> DesiredObject:
    return DesiredObject(MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data})


def object_of(target: Target[Data], name: str, **body: Any) -> DesiredObject:
    return DesiredObject(
        target, {"apiVersion": target.api_version, "kind": target.kind, "metadata": {"name": name, "namespace": "default"}, **body}
    )


SERVICE = object_of(SERVICES, "web", spec={"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80}]})
CLAIM = object_of(CLAIMS, "disk", spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}})
SECRET = object_of(SECRETS, "cloud-init", stringData={"userdata": "#cloud-config"})
DOMAIN = {"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}, "resources": {"requests": {"memory": "1024Mi"}}}
MACHINE = object_of(
    MACHINES,
    "web",
    spec={
        "runStrategy": "Always",
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"domain": DOMAIN, "volumes": [{"name": "root", "persistentVolumeClaim": {"claimName": "disk"}}]},
        },
    },
)
EVERYTHING = (config("a", x="1"), SERVICE, CLAIM, SECRET, MACHINE)


@played
async def test_applied_once_then_left_alone(world: World, /) -> None:
    async with site(world) as here:
        reached = await here.reach(*EVERYTHING)
        assert reached.applied[0] == "configmaps default/a"
        assert (len(reached.applied), len(here.written())) == (5, 5)
        made = (await world.api.get(f"{BASE}/configmaps/a")).data
        (owner,) = made["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == (here.owner.uid, True, True)
        for _ in range(3):
            assert await here.reach(*EVERYTHING) == DesiredOutcome(unchanged=5)
        assert here.written() == []


@played
async def test_nothing_is_written_before_the_watch_has_come_round(world: World, /) -> None:
    async with site(world) as here:
        await here.set.reach(here.owner, EVERYTHING)
        here.written()
        assert await here.set.reach(here.owner, EVERYTHING) == DesiredOutcome(unchanged=5)
        assert here.written() == []


@played
async def test_after_a_restart_nothing_is_written_that_can_be_compared(world: World, /) -> None:
    async with site(world) as here:
        await here.reach(*EVERYTHING)
        here.written()
        here.set = here.again()
        revision = world.api.store.revision
        reached = await here.reach(*EVERYTHING)
        # A quantity in another spelling and what the server does not show as it was given have to be asked about once.
        assert set(reached.applied) <= {"services default/web", "persistentvolumeclaims default/disk", "secrets default/cloud-init"}
        assert reached.unchanged >= 2
        # Even so, nothing changed.
        assert world.api.store.revision == revision
        here.written()
        assert (await here.reach(*EVERYTHING)).applied == ()
        assert here.written() == []


@played
async def test_what_others_change_of_ours_is_set_right_and_the_rest_is_theirs(world: World, /) -> None:
    async with site(world) as here:
        await here.reach(*EVERYTHING)
        here.written()
        machine = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines/web"
        await world.api.merge(f"{machine}/status", {"status": {"printableStatus": "Running"}})
        await world.api.merge(machine, {"metadata": {"annotations": {"theirs": "1"}}})
        await asyncio.sleep(1)
        assert await here.reach(*EVERYTHING) == DesiredOutcome(unchanged=5)
        assert here.written() == []
        await world.api.merge(machine, {"spec": {"runStrategy": "Halted"}})
        await asyncio.sleep(1)
        assert (await here.reach(*EVERYTHING)).applied == ("virtualmachines.kubevirt.io default/web",)
        assert (await world.api.get(machine)).data["spec"]["runStrategy"] == "Always"


@played
async def test_what_goes_while_the_set_is_applied_is_not_made_again(world: World, /) -> None:
    async with site(world) as here:
        await here.reach(config("first"), config("second"))
        send = here.wire.send

        async def slow(ask: TransportRequest) -> TransportResponse:
            reply = await send(ask)
            if "first" in ask.target:
                await world.api.delete(f"{BASE}/configmaps/second")
                await asyncio.sleep(1)
            return reply

        here.wire.send = slow  # type: ignore[method-assign]
        with pytest.raises(Conflict, match="went while it was about to be applied"):
            await here.reach(config("first", more="b"), config("second", more="b"))
        # Decided anew it is.
        assert (await here.reach(config("first", more="b"), config("second", more="b"))).applied == ("configmaps default/second",)


@played
async def test_what_others_put_beside_ours_goes_where_both_are_not_allowed(world: World, /) -> None:
    def service(number: int) -> DesiredObject:
        ports = [{"name": "access", "port": number, "protocol": "TCP"}]
        metadata = {"name": "made", "namespace": "default"}
        return DesiredObject(SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports}})

    async with site(world) as here:
        await here.reach(service(80))
        theirs = {"spec": {"ports": [{"name": "access", "port": 1, "protocol": "TCP"}]}}
        await here.client.patch(SERVICES, Key("default", "made"), merge_patch(theirs))
        await asyncio.sleep(1)
        await here.reach(service(80))
        found = await here.client.get(SERVICES, Key("default", "made"))
        assert [each["port"] for each in found["spec"]["ports"]] == [80]
        # What is wrong by itself stays refused.
        with pytest.raises(Invalid):
            await here.reach(service(-1))


@played
async def test_a_field_that_is_no_longer_wanted_goes_also_after_a_restart(world: World, /) -> None:
    async with site(world) as here:
        await here.reach(config("a", x="1", y="2"))
        here.set = here.again()
        assert (await here.reach(config("a", x="1"))).applied == ("configmaps default/a",)
        assert (await world.api.get(f"{BASE}/configmaps/a")).data["data"] == {"x": "1"}


@played
async def test_a_field_that_others_set_to_the_same_becomes_ours(world: World, /) -> None:
    async with site(world) as here:
        await here.reach(config("a", x="1"))
        await world.api.apply(f"{BASE}/configmaps/a", {"apiVersion": "v1", "kind": "ConfigMap", "data": {"y": "2"}}, "theirs")
        await asyncio.sleep(1)
        here.set = here.again()
        assert (await here.reach(config("a", x="1", y="2"))).applied == ("configmaps default/a",)


@played
async def test_what_is_no_longer_wanted_is_deleted_and_nothing_else(world: World, /) -> None:
    async with site(world) as here:
        await here.reach(config("a"), config("b"), SERVICE)
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": here.owner.uid}
        await world.api.post(f"{BASE}/configmaps", {"metadata": {"name": "somebodys", "ownerReferences": [owner]}})
        await asyncio.sleep(1)
        here.set = here.again()
        reached = await here.reach(config("b"))
        assert sorted(reached.deleted) == ["configmaps default/a", "services default/web"]
        left = {each["metadata"]["name"] for each in (await world.api.get(f"{BASE}/configmaps")).data["items"]}
        assert left == {"owner", "b", "somebodys"}


@played
async def test_what_is_kept_stays_when_it_is_not_wanted_any_more(world: World, /) -> None:
    async with site(world) as here:
        here.set = DesiredSet(here.client, [here.informers.of(SERVICES)], manager="vm-controller", keeps=[here.informers.of(MAPS)])
        kept = DesiredObject(MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": "default"}})
        assert (await here.reach(kept)).applied == ("configmaps default/kept",)
        assert (await here.reach(kept)).unchanged == 1
        assert await here.reach() == DesiredOutcome()
        assert (await here.api.get(f"{BASE}/configmaps/kept")).status == 200


@played
async def test_what_was_read_is_said_again_to_the_object_that_was_read_alone(world: World, /) -> None:
    async with site(world) as here:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": {"a": "1"}}
        await here.reach(DesiredObject(MAPS, body))
        seen = here.informers.of(MAPS).cache.get(Key("default", "a"))
        assert seen is not None
        await here.client.patch(MAPS, Key("default", "a"), merge_patch({"data": {"a": "2"}}))
        with pytest.raises(Conflict):
            await here.set.reach(here.owner, [DesiredObject(MAPS, {**body, "data": {"a": "3"}}, at=seen.meta.resourceVersion)])
        assert (await here.api.get(f"{BASE}/configmaps/a")).data["data"] == {"a": "2"}


@played
async def test_what_is_deleted_by_others_comes_back(world: World, /) -> None:
    async with site(world) as here:
        await here.reach(config("a"))
        await world.api.delete(f"{BASE}/configmaps/a")
        await asyncio.sleep(1)
        assert (await here.reach(config("a"))).applied == ("configmaps default/a",)


@played
async def test_what_goes_as_soon_as_it_is_made_is_made_again_after_a_pause(world: World, /) -> None:
    async with site(world) as here:
        await here.set.reach(here.owner, [config("a"), config("b")])
        # seen as it should be, before it goes
        await asyncio.sleep(0.1)
        assert (await here.set.reach(here.owner, [config("a"), config("b")])).unchanged == 2
        await world.api.delete(f"{BASE}/configmaps/a")
        await asyncio.sleep(0.1)
        here.written()
        with pytest.raises(Conflict, match="configmaps default/a went as soon as it was made"):
            await here.set.reach(here.owner, [config("a"), config("b")])
        assert here.written() == []
        # What is to be something else now is another matter.
        assert (await here.set.reach(here.owner, [config("a", more="c"), config("b")])).applied == ("configmaps default/a",)
        await world.api.delete(f"{BASE}/configmaps/a")
        await asyncio.sleep(1)
        assert (await here.reach(config("a"), config("b"))).applied == ("configmaps default/a",)


@pytest.mark.spec("stakater", 71, "each message names the other's object")
@pytest.mark.parametrize("adopt", [False, True])
@played
async def test_objects_of_others_are_not_taken(world: World, /, adopt: bool) -> None:
    async with site(world) as here:
        await world.api.post(f"{BASE}/configmaps", {"metadata": {"name": "a"}, "data": {"theirs": "1"}})
        other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "other-uid", "controller": True}
        await world.api.post(f"{BASE}/configmaps", {"metadata": {"name": "b", "ownerReferences": [other]}})
        await asyncio.sleep(1)
        with pytest.raises(ForeignObject, match="belongs to ConfigMap other"):
            await here.reach(msgspec.structs.replace(config("b"), adopt=adopt))
        if adopt:
            assert (await here.reach(msgspec.structs.replace(config("a"), adopt=True))).applied == ("configmaps default/a",)
        else:
            with pytest.raises(ForeignObject, match="nobody that says so"):
                await here.reach(config("a"))
        assert (await world.api.get(f"{BASE}/configmaps/a")).data["data"] == {"theirs": "1"}


@played
async def test_finalizers(world: World, /) -> None:
    async with site(world) as here:
        maps = here.informers.of(MAPS)
        key = Key("default", "owner")

        def meta() -> Any:
            seen = maps.cache.get(key)
            assert seen is not None
            return seen.meta

        old = meta()
        assert await finalizers.put_on(here.client, MAPS, old, "paddock.example/clean")
        with pytest.raises(Conflict):
            await finalizers.put_on(here.client, MAPS, old, "paddock.example/other")
        await asyncio.sleep(1)
        assert not await finalizers.put_on(here.client, MAPS, meta(), "paddock.example/clean")
        await here.client.delete(MAPS, key)
        await asyncio.sleep(1)
        assert meta().deleting
        assert not await finalizers.put_on(here.client, MAPS, meta(), "paddock.example/other")
        await here.client.patch(MAPS, key, merge_patch({"metadata": {"labels": {"a": "b"}}}))
        await asyncio.sleep(1)
        last = meta()
        assert await finalizers.take_off(here.client, MAPS, last, "paddock.example/clean")
        assert not await finalizers.take_off(here.client, MAPS, last, "paddock.example/clean")
        await asyncio.sleep(1)
        assert maps.cache.get(key) is None


@played
async def test_what_was_deleted_a_moment_ago_is_not_made_by_whoever_has_not_heard_of_it(world: World, /) -> None:
    async with site(world) as here:
        await here.reach(config("a", x="1"))
        await world.api.delete(f"{BASE}/configmaps/a")
        with pytest.raises(Conflict):
            await here.set.reach(here.owner, [config("a", x="2")])
        assert (await world.api.get(f"{BASE}/configmaps/a")).status == 404
        await asyncio.sleep(1)
        assert (await here.reach(config("a", x="2"))).applied == ("configmaps default/a",)
