"""Our client and what controllers stand on, against a real kube-apiserver."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from paddock.base.clock import SystemClock
from paddock.base.jsondata import Data
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.http.https import Https
from paddock.kubernetes.client.options import Selection, WriteOptions, merge_patch
from paddock.kubernetes.client.target import EVENTS, LEASES, Key, plain
from paddock.kubernetes.client.transport import ResponseStream, TransportRequest, TransportResponse
from paddock.kubernetes.runtime.desired import DesiredObject, DesiredOutcome, DesiredSet
from paddock.kubernetes.runtime.election import Election, LeaseTerms
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.recorder import Recorder
from paddock.kubernetes.runtime.reference import reference
from tests.contract.test_client import (
    MACHINES,
    MAPS,
    Case,
    config,
    test_a_watch_that_begins_with_everything,
    test_an_object_from_its_creation_to_its_end,
    test_apply_with_managers,
    test_declared_classes,
    test_errors_have_types_and_causes,
    test_lists_are_whole_although_they_come_in_pages,
    test_many_requests_at_once_share_a_few_connections,
    test_other_paths_and_cluster_scope,
    test_status_is_a_subresource,
    test_watches,
)
from tests.coroutines import played_by
from tests.reference.crds import Crd
from tests.reference.server import Access

__all__ = [
    "test_a_watch_that_begins_with_everything",
    "test_an_object_from_its_creation_to_its_end",
    "test_apply_with_managers",
    "test_declared_classes",
    "test_errors_have_types_and_causes",
    "test_lists_are_whole_although_they_come_in_pages",
    "test_many_requests_at_once_share_a_few_connections",
    "test_other_paths_and_cluster_scope",
    "test_status_is_a_subresource",
    "test_watches",
]

pytestmark = pytest.mark.reference

SERVICES = plain("", "v1", "services", "Service")
CLAIMS = plain("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
SECRETS = plain("", "v1", "secrets", "Secret")
NAMESPACES = plain("", "v1", "namespaces", "Namespace", namespaced=False)
KINDS = (MAPS, SERVICES, CLAIMS, SECRETS, MACHINES)
HERE = Selection(namespace="default")
Script = Callable[[Client], Awaitable[None]]


class Counting(Https):
    """Remembers writes, and can lose all its streams."""

    writes: list[str]
    flows: list[ResponseStream]

    async def send(self, ask: TransportRequest) -> TransportResponse:
        if ask.method != "GET":
            self.writes.append(f"{ask.method} {ask.target.partition('?')[0]}")
        return await super().send(ask)

    async def stream(self, ask: TransportRequest) -> ResponseStream:
        flow = await super().stream(ask)
        self.flows.append(flow)
        return flow


@pytest.fixture
def run(access: Access, installed: list[Crd]) -> Callable[[Case], None]:
    """Runs a case with a client of the real server, whose default namespace is empty before and after."""

    async def script(case: Case) -> None:
        async with asyncio.timeout(120), opened(access) as (client, _):
            try:
                await ensure_default(client)
                await case(client)
            finally:
                await clear(client)

    return lambda case: asyncio.run(script(case))


@asynccontextmanager
async def opened(access: Access) -> AsyncIterator[tuple[Client, Counting]]:
    transport = Counting(kubeconfig.find({}, SystemClock(), explicit=access.kubeconfig))
    transport.writes, transport.flows = [], []
    async with Client(transport) as client:
        yield client, transport


async def ensure_default(client: Client) -> None:
    try:
        await client.get(NAMESPACES, Key("", "default"))
    except NotFound:
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    await clear(client)


async def clear(client: Client) -> None:
    for kind in (*KINDS, EVENTS):
        for each in (await client.list(kind, HERE)).items:
            if each["metadata"]["name"] != "kubernetes":
                key = Key("default", each["metadata"]["name"])
                with contextlib.suppress(NotFound):
                    if each["metadata"].get("finalizers"):
                        await client.patch(kind, key, merge_patch({"metadata": {"finalizers": None}}))
                    await client.delete(kind, key)


@played_by("run")
async def test_an_informer_follows_a_real_server(client: Client, /, access: Access) -> None:
    async with opened(access) as (watching, wire):
        machinery = Machinery()
        informers = Informers(watching, machinery)
        maps = informers.of(MAPS, HERE)
        informers.start()
        await informers.wait_synced()
        for number in range(20):
            await client.create(MAPS, config(f"m{number}"))
        for flow in wire.flows:
            flow.close()
        for number in range(10):
            await client.patch(MAPS, Key("default", f"m{number}"), merge_patch({"data": {"n": str(number)}}))
        for number in range(5, 15):
            await client.delete(MAPS, Key("default", f"m{number}"))
        there = await client.list(MAPS, HERE)
        async with asyncio.timeout(30):
            while not maps.revision or int(maps.revision) < int(there.revision):
                # Nothing else is written, so the last revision comes with a write of this kind.
                await client.patch(MAPS, Key("default", "m0"), merge_patch({"data": {"again": maps.revision}}))
                await asyncio.sleep(0.2)
        there = await client.list(MAPS, HERE)
        await asyncio.sleep(0.5)
        assert {each.meta.name: each.read(MAPS) for each in maps.cache} == {each["metadata"]["name"]: each for each in there.items}
        assert machinery.metrics.counter("paddock_informer_lists_total", "", ("resource",)).value("configmaps default") == 1
        await informers.stop()


def wanted() -> tuple[DesiredObject, ...]:
    def one(target: Any, name: str, **body: Any) -> DesiredObject:
        return DesiredObject(
            target, {"apiVersion": target.api_version, "kind": target.kind, "metadata": {"name": name, "namespace": "default"}, **body}
        )

    domain = {"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}, "resources": {"requests": {"memory": "1024Mi"}}}
    volumes = [{"name": "root", "persistentVolumeClaim": {"claimName": "disk"}}]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"domain": domain, "volumes": volumes}}
    return (
        one(MAPS, "a", data={"x": "1"}),
        one(SERVICES, "web", spec={"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]}),
        one(CLAIMS, "disk", spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}),
        one(SECRETS, "cloud-init", stringData={"userdata": "#cloud-config"}),
        one(MACHINES, "web", spec={"runStrategy": "Always", "template": template}),
    )


@played_by("run")
async def test_what_an_owner_should_have_on_a_real_server(other: Client, /, access: Access) -> None:
    """A real server's managedFields are read rightly: nothing is written where nothing differs, also after a restart."""
    async with opened(access) as (client, wire):
        await client.create(MAPS, config("owner"))
        informers = Informers(client, Machinery())
        kinds = [informers.of(kind, HERE) for kind in KINDS]
        informers.start()
        await informers.wait_synced()
        seen = kinds[0].cache.get(Key("default", "owner"))
        assert seen is not None
        owner = reference(MAPS, seen.meta)
        made = DesiredSet(client, kinds, manager="vm-controller")
        assert len((await made.reach(owner, wanted())).applied) == 5
        assert await made.reach(owner, wanted()) == DesiredOutcome(unchanged=5)
        await asyncio.sleep(1)
        wire.writes.clear()
        assert await made.reach(owner, wanted()) == DesiredOutcome(unchanged=5)
        again = DesiredSet(client, kinds, manager="vm-controller")
        before = (await client.list(MACHINES, HERE)).items
        reached = await again.reach(owner, wanted())
        assert set(reached.applied) <= {"persistentvolumeclaims default/disk", "secrets default/cloud-init"}
        assert (await client.list(MACHINES, HERE)).items == before
        wire.writes.clear()
        assert await again.reach(owner, wanted()) == DesiredOutcome(unchanged=5)
        assert wire.writes == []
        await client.apply(MAPS, config("a", x="2"), WriteOptions(manager="somebody", force=True))
        await asyncio.sleep(1)
        assert (await again.reach(owner, wanted()[:1])).applied == ("configmaps default/a",)
        assert (await client.get(MAPS, Key("default", "a")))["data"] == {"x": "1"}
        with pytest.raises(NotFound):
            await client.get(SERVICES, Key("default", "web"))
        await informers.stop()


@played_by("run")
async def test_an_election_on_a_real_server(client: Client, /, access: Access) -> None:
    acting: list[str] = []
    elections, tasks = [], []
    for name in ("a", "b"):
        terms = LeaseTerms(key=Key("default", "controllers"), identity=name, duration=4, deadline=3, retry=0.4)

        async def lead(name: str = name) -> None:
            acting.append(name)
            await asyncio.Event().wait()

        elections.append(Election(client, terms, Machinery()))
        tasks.append(asyncio.create_task(elections[-1].run(lead)))
        await asyncio.sleep(1)
    try:
        await asyncio.sleep(3)
        assert acting == ["a"]
        tasks[0].cancel()
        await asyncio.gather(tasks[0], return_exceptions=True)
        await asyncio.sleep(2)
        assert acting == ["a", "b"]
        lease: Data = await client.get(LEASES, Key("default", "controllers"))
        assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("b", 1)
    finally:
        tasks[1].cancel()
        await asyncio.gather(tasks[1], return_exceptions=True)
        await client.delete(LEASES, Key("default", "controllers"))


@played_by("run")
async def test_events_on_a_real_server(client: Client, /) -> None:
    made = await client.create(MAPS, config("a"))
    informers = Informers(client, Machinery())
    maps = informers.of(MAPS, HERE)
    informers.start()
    await informers.wait_synced()
    seen = maps.cache.get(Key("default", made["metadata"]["name"]))
    assert seen is not None
    recorder = Recorder(client, "controller", "host", Machinery())
    recorder.start()
    for _ in range(3):
        recorder.tell(reference(MAPS, seen.meta), "Warning", "Failed", "no disk")
    await recorder.stop()
    (event,) = (await client.list(EVENTS, Selection(namespace="default", fields="involvedObject.name=a"))).items
    assert (event["reason"], event["message"], event["count"]) == ("Failed", "no disk", 3)
    await informers.stop()
