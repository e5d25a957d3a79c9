"""The promises of a client on either transport: in process, and over TLS."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client, WatchEvent
from paddock.kubernetes.client.errors import AlreadyExists, Conflict, Expired, Invalid, NotFound
from paddock.kubernetes.client.options import (
    DeletionOptions,
    Selection,
    WatchOptions,
    WriteOptions,
    json_patch,
    merge_patch,
    strategic_patch,
)
from paddock.kubernetes.client.target import Key, Target, declared, plain
from paddock.kubernetes.core import configmap, secret
from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubevirt.kinds import virtualmachine
from tests.coroutines import played_by
from tests.kit.servers import apiclient

MAPS = plain("", "v1", "configmaps", "ConfigMap")
(_SECRETS,) = (kind for kind in secret.KINDS if kind.kind == "Secret")
SECRETS = declared(_SECRETS, secret.Secret)
TYPED_MAPS = declared(next(kind for kind in configmap.KINDS if kind.kind == "ConfigMap"), configmap.ConfigMap)
MACHINES: Target[Data] = declared(next(kind for kind in virtualmachine.KINDS if kind.kind == "VirtualMachine"), dict)
NAMESPACES = plain("", "v1", "namespaces", "Namespace", namespaced=False)

Case = Callable[[Client], Awaitable[None]]


@pytest.fixture(params=["in process", "over TLS"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[Case], None]:
    """Runs a case with a client of a fresh server."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Client]:
        async with apiclient.in_process() if request.param == "in process" else apiclient.over_tls(tmp_path) as client:
            yield client

    def play(case: Case) -> None:
        async def script() -> None:
            async with asyncio.timeout(30), opened() as client:
                await case(client)

        asyncio.run(script())

    return play


def config(name: str, **data: str) -> Data:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


@played_by("run")
async def test_an_object_from_its_creation_to_its_end(client: Client, /) -> None:
    key = Key("default", "a")
    made = await client.create(MAPS, config("a", x="1"))
    assert made["metadata"]["managedFields"][0]["manager"] == "paddock"
    assert await client.get(MAPS, key) == made
    made["data"]["x"] = "2"
    changed = await client.update(MAPS, made)
    assert changed["data"] == {"x": "2"}
    with pytest.raises(Conflict):
        await client.update(MAPS, made)
    assert (await client.patch(MAPS, key, merge_patch({"data": {"x": None, "y": "3"}})))["data"] == {"y": "3"}
    operations = [{"op": "add", "path": "/data/z", "value": "4"}]
    assert (await client.patch(MAPS, key, json_patch(operations)))["data"] == {"y": "3", "z": "4"}
    patched = await client.patch(MAPS, key, strategic_patch({"metadata": {"labels": {"a": "b"}}}), WriteOptions(dry_run=True))
    assert patched["metadata"]["labels"] == {"a": "b"}
    assert "labels" not in (await client.get(MAPS, key))["metadata"]
    with pytest.raises(Conflict):
        await client.delete(MAPS, key, DeletionOptions(uid="00000000-0000-4000-8000-00000000ffff"))
    await client.delete(MAPS, key, DeletionOptions(uid=made["metadata"]["uid"], propagation="Background"))
    with pytest.raises(NotFound) as missing:
        await client.get(MAPS, key)
    assert (missing.value.code, missing.value.details["name"]) == (404, "a")


@played_by("run")
async def test_errors_have_types_and_causes(client: Client, /) -> None:
    await client.create(MAPS, config("a"))
    with pytest.raises(AlreadyExists):
        await client.create(MAPS, config("a"))
    with pytest.raises(Invalid) as wrong:
        await client.create(MAPS, config("A", **{"a b": "x"}))
    assert (wrong.value.code, len(wrong.value.causes), "metadata.name" in wrong.value.causes) == (422, 2, True)


@played_by("run")
async def test_declared_classes(client: Client, /) -> None:
    wanted = secret.Secret(apiVersion="v1", kind="Secret", metadata=ObjectMeta(name="s", namespace="default"), stringData={"password": "x"})
    made = await client.create(SECRETS, wanted)
    assert made.data == {"password": "eA=="}
    found = await client.list(SECRETS, Selection(namespace="default", fields="metadata.name=s"))
    assert found.items == [made]


@played_by("run")
async def test_apply_with_managers(client: Client, /) -> None:
    mine, theirs = WriteOptions(manager="mine"), WriteOptions(manager="theirs")
    await client.apply(MAPS, config("a", x="1", y="1"), mine)
    with pytest.raises(Conflict) as taken:
        await client.apply(MAPS, config("a", x="2"), theirs)
    assert list(taken.value.causes) == [".data.x"]
    assert (await client.apply(MAPS, config("a", x="2"), WriteOptions(manager="theirs", force=True)))["data"] == {"x": "2", "y": "1"}
    assert (await client.apply(MAPS, config("a"), mine))["data"] == {"x": "2"}


@played_by("run")
async def test_status_is_a_subresource(client: Client, /) -> None:
    template: Data = {"spec": {"domain": {"devices": {}, "resources": {"requests": {"memory": "1Gi"}}}}}
    machine = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"runStrategy": "Halted", "template": template},
    }
    made = await client.create(MACHINES, machine)
    made["spec"]["runStrategy"] = "Always"
    made["status"] = {"printableStatus": "Stopped"}
    told = await client.update(MACHINES, made, WriteOptions(subresource="status"))
    assert (told["spec"]["runStrategy"], told["status"]["printableStatus"]) == ("Halted", "Stopped")
    patched = await client.patch(
        MACHINES, Key("default", "web"), merge_patch({"status": {"printableStatus": "Running"}}), WriteOptions(subresource="status")
    )
    assert patched["status"]["printableStatus"] == "Running"


@patch("paddock.kubernetes.client.client._PAGE", 3)
@played_by("run")
async def test_lists_are_whole_although_they_come_in_pages(client: Client, /) -> None:
    for number in range(8):
        await client.create(MAPS, config(f"m{number}", n=str(number)))
    labelled = await client.patch(MAPS, Key("default", "m3"), merge_patch({"metadata": {"labels": {"odd": "yes"}}}))
    found = await client.list(MAPS, Selection(namespace="default", fields="metadata.name!=kube-root-ca.crt"))
    assert [each["metadata"]["name"] for each in found.items] == [f"m{number}" for number in range(8)]
    assert found.items[3] == labelled
    assert int(found.revision) >= int(labelled["metadata"]["resourceVersion"])
    assert (await client.list(MAPS, Selection(labels="odd=yes"))).items == [labelled]
    first = await client.page(MAPS, limit=3)
    assert (len(first.items), bool(first.token)) == (3, True)
    await client.delete_collection(MAPS, Selection(namespace="default", labels="odd=yes"))
    with pytest.raises(NotFound):
        await client.get(MAPS, Key("default", "m3"))


async def collect(events: AsyncIterator[WatchEvent[Data]], count: int) -> list[tuple[str, str]]:
    found = []
    async for event in events:
        if event.type != "BOOKMARK":
            found.append((event.type, event.object["metadata"]["name"]))
        if len(found) == count:
            break
    return found


@played_by("run")
async def test_watches(client: Client, /) -> None:
    chosen = Selection(namespace="default", fields="metadata.name!=kube-root-ca.crt")
    await client.create(MAPS, config("old"))
    start = (await client.list(MAPS, chosen)).revision
    events = client.watch(MAPS, chosen, WatchOptions(revision=start))
    following = asyncio.create_task(collect(events, 3))
    await client.create(MAPS, config("a"))
    await client.patch(MAPS, Key("default", "a"), merge_patch({"data": {"x": "1"}}))
    await client.delete(MAPS, Key("default", "a"))
    assert await following == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


@played_by("run")
async def test_a_watch_that_begins_with_everything(client: Client, /) -> None:
    for name in ("a", "b"):
        await client.create(MAPS, config(name))
    chosen = Selection(namespace="default", fields="metadata.name!=kube-root-ca.crt")
    found: list[tuple[str, Any]] = []
    async for event in client.watch(MAPS, chosen, WatchOptions(initial=True)):
        metadata = event.object["metadata"]
        found.append((event.type, metadata.get("name") or metadata["annotations"]))
        if event.type == "BOOKMARK":
            break
    assert found == [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", {"k8s.io/initial-events-end": "true"})]


@played_by("run")
async def test_a_watch_ends_with_its_time(client: Client, /) -> None:
    start = (await client.list(MAPS)).revision
    async for event in client.watch(MAPS, Selection(fields="metadata.name=nobody"), WatchOptions(revision=start, seconds=1)):
        assert event.type == "BOOKMARK"


@played_by("run")
async def test_a_watch_of_what_never_was(client: Client, /) -> None:
    with pytest.raises(Expired):
        async for _ in client.watch(MAPS, watching=WatchOptions(revision="123456789")):
            pass
    with pytest.raises(NotFound):
        async for _ in client.watch(plain("nobody.example", "v1", "things", "Thing")):
            pass


@played_by("run")
async def test_other_paths_and_cluster_scope(client: Client, /) -> None:
    assert (await client.version())["gitVersion"].startswith("v1.")
    made = await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    assert made["status"]["phase"] == "Active"
    assert (await client.get(NAMESPACES, Key("", "team")))["metadata"]["uid"] == made["metadata"]["uid"]
    typed = await client.create(
        TYPED_MAPS, configmap.ConfigMap(apiVersion="v1", kind="ConfigMap", metadata=ObjectMeta(name="t")), namespace="team"
    )
    assert typed.metadata.namespace == "team"


@played_by("run")
async def test_many_requests_at_once_share_a_few_connections(client: Client, /) -> None:
    await asyncio.gather(*(client.create(MAPS, config(f"m{number}")) for number in range(100)))
    assert len((await client.list(MAPS, Selection(namespace="default"))).items) >= 100
