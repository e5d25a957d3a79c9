"""Two copies of one operator on one server, in virtual time: one works, the other takes over, and what they make is right."""

import asyncio
import random
from collections.abc import Callable

import pytest

from paddock.app.localtransport import door
from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client, ClientSettings
from paddock.kubernetes.client.errors import Unreachable
from paddock.kubernetes.client.localtransport import LocalTransport
from paddock.kubernetes.client.retrying import Retries
from paddock.kubernetes.client.target import Key, plain
from paddock.kubernetes.client.transport import ResponseStream, TransportRequest, TransportResponse
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.controller import DONE, Controller, Outcome, owners
from paddock.kubernetes.runtime.desired import DesiredObject, DesiredSet
from paddock.kubernetes.runtime.election import LeaseTerms
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.runtime.reference import reference
from tests import virtualtime
from tests.coroutines import run_by
from tests.kit.servers.apiharness import Harness

MAPS = plain("", "v1", "configmaps", "ConfigMap")
SECRETS = plain("", "v1", "secrets", "Secret")
FINALIZER = "example.com/clean"
MAPS_PATH, SECRETS_PATH = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/secrets"


class Wire:
    """A way to the server that can be cut."""

    def __init__(self, inner: LocalTransport) -> None:
        self._inner = inner
        self.cut = False

    async def send(self, ask: TransportRequest) -> TransportResponse:
        if self.cut:
            raise Unreachable("the wire is cut", sent=False)
        return await self._inner.send(ask)

    async def stream(self, ask: TransportRequest) -> ResponseStream:
        if self.cut:
            raise Unreachable("the wire is cut", sent=False)
        return await self._inner.stream(ask)

    async def close(self) -> None:
        await self._inner.close()


class Operator:
    """Makes a Secret for every ConfigMap that is labelled so, with what stands in it."""

    def __init__(self, api: Harness, name: str, worked: Callable[[str], None]) -> None:
        self.wire = Wire(LocalTransport(door(api.api, name)))
        self.client = Client(self.wire, ClientSettings(retries=Retries(attempts=1)))
        self._name = name
        self._worked = worked
        machinery = Machinery(clock=virtualtime.Clock(), chance=random.Random(name))
        terms = LeaseTerms(key=Key("default", "operator"), identity=name)
        self.program = ControllerManager(self.client, component="operator", instance=name, machinery=machinery, terms={"": terms})
        self.maps = self.program.informers.of(MAPS)
        secrets = self.program.informers.of(SECRETS)
        self.set = DesiredSet(self.client, [secrets], manager="operator")
        controller = Controller("maps", self.maps, self.reconcile, machinery=machinery, recorder=self.program.recorder)
        controller.watch(secrets, owners("", "ConfigMap"))
        self.program.add(controller)
        self.task = asyncio.create_task(self.program.run())

    async def reconcile(self, key: Key) -> Outcome:
        seen = self.maps.cache.get(key)
        if seen is None:
            return DONE
        self._worked(self._name)
        owner = reference(MAPS, seen.meta)
        if seen.meta.deleting:
            await self.set.reach(owner, ())
            await finalizers.take_off(self.client, MAPS, seen.meta, FINALIZER)
            return DONE
        if (seen.meta.labels or {}).get("mirror") == "yes":
            await finalizers.put_on(self.client, MAPS, seen.meta, FINALIZER)
            await self.set.reach(owner, [DesiredObject(SECRETS, _mirror(seen.read(MAPS)))])
        else:
            await self.set.reach(owner, ())
        return DONE

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def _mirror(source: Data) -> Data:
    metadata = {"name": f"{source['metadata']['name']}-copy", "namespace": source["metadata"]["namespace"]}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": source.get("data") or {}}


async def secrets(api: Harness) -> dict[str, Data]:
    return {each["metadata"]["name"]: each.get("data") for each in (await api.get(SECRETS_PATH)).data["items"]}


@pytest.mark.parametrize("how", ["stop", "crash", "cut"])
@run_by(virtualtime.run)
async def test_one_of_two_operators_works_and_the_other_takes_over(how: str) -> None:
    async with Harness() as api:
        working: list[str] = []
        first = Operator(api, "first", working.append)
        await asyncio.sleep(5)
        second = Operator(api, "second", working.append)
        await api.post(MAPS_PATH, {"metadata": {"name": "a", "labels": {"mirror": "yes"}}, "data": {"x": "1"}})
        await asyncio.sleep(60)
        assert await secrets(api) == {"a-copy": {"x": "MQ=="}}
        assert set(working) == {"first"}
        quiet = api.store.revision
        leases = (await api.get("/apis/coordination.k8s.io/v1/namespaces/default/leases/operator")).data
        assert leases["spec"]["holderIdentity"] == "first"
        assert second.program.health.unready == ""
        if how == "stop":
            await first.end()
        else:
            first.wire.cut = True
            if how == "crash":
                await first.end()
        working.clear()
        await asyncio.sleep(60)
        assert set(working) == {"second"}
        # Nothing differs, so nobody wrote anything but the lease.
        written = {change.key.collection for change in api.store.history(quiet)}
        assert written <= {"leases.coordination.k8s.io"}
        await api.merge(f"{MAPS_PATH}/a", {"data": {"x": "2"}})
        await api.delete(f"{SECRETS_PATH}/a-copy")
        await asyncio.sleep(5)
        assert await secrets(api) == {"a-copy": {"x": "Mg=="}}
        await api.delete(f"{MAPS_PATH}/a")
        await asyncio.sleep(5)
        assert (await api.get(f"{MAPS_PATH}/a")).status == 404
        assert await secrets(api) == {}
        first.wire.cut = False
        await asyncio.sleep(60)
        assert set(working) == {"second"}
        await first.end()
        await second.end()
        assert not first.program.leading
