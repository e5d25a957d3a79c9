"""A thousand machines are watched without loss: over lost connections, with bookmarks, and with a word when a revision is forgotten."""

import asyncio
from typing import Any
from unittest.mock import patch

import pytest

from paddock.server.objects import watches
from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

VMS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
COUNT = 1000


def machine(name: str) -> dict[str, Any]:
    domain = {"memory": {"guest": "128Mi"}, "devices": {}}
    spec = {"runStrategy": "Halted", "template": {"spec": {"domain": domain}}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": name}, "spec": spec}


def revision(thing: dict[str, Any]) -> str:
    return str(thing["metadata"]["resourceVersion"])


async def sees_everything(api: Harness) -> None:
    """A stream that begins with all there is says where that ends."""
    everything = f"{VMS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with api.watch(everything) as events:
        names = {event["object"]["metadata"]["name"] for event in await events.take(COUNT)}
        assert names == {f"vm-{number}" for number in range(COUNT)}
        end = await events.next()
        assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


@pytest.mark.spec("kubevirt", 56)
@patch.object(watches, "BOOKMARK_SECONDS", 0.0)
@played
async def test_a_thousand_machines_over_lost_connections(api: Harness, /) -> None:
    first = last = revision((await api.get(VMS)).data)
    made: list[str] = []

    async def makes() -> None:
        for number in range(COUNT):
            made.append(revision((await api.post(VMS, machine(f"vm-{number}"))).data))
            await asyncio.sleep(0)

    writer = asyncio.create_task(makes())
    seen: list[tuple[str, str]] = []
    while len(seen) < COUNT:
        # Every connection lives for 150 machines; the next goes on at the last that was seen.
        async with api.watch(f"{VMS}?watch=1&resourceVersion={last}") as events:
            for event in await events.take(min(150, COUNT - len(seen))):
                assert event["type"] == "ADDED" and event["object"]["spec"]["runStrategy"] == "Halted"
                last = revision(event["object"])
                seen.append((event["object"]["metadata"]["name"], last))
    await writer
    assert seen == [(f"vm-{number}", made[number]) for number in range(COUNT)]

    async with api.watch(f"{VMS}?watch=1&resourceVersion={last}&allowWatchBookmarks=true") as events:
        await api.post("/api/v1/namespaces/default/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}})
        await asyncio.sleep(0.01)
        api.parts.following.tell_time()
        mark = await events.next()
        assert (mark["type"], mark["object"]["kind"], revision(mark["object"])) == (
            "BOOKMARK",
            "VirtualMachine",
            str(api.store.revision),
        )
    # A bookmark is a place to go on from, when what was seen last is forgotten.
    await api.store.compact(int(revision(mark["object"])))
    await api.merge(f"{VMS}/vm-7", {"spec": {"runStrategy": "Manual"}})
    async with api.watch(f"{VMS}?watch=1&resourceVersion={revision(mark['object'])}") as events:
        event = await events.next()
        assert (event["type"], event["object"]["metadata"]["name"]) == ("MODIFIED", "vm-7")
    async with api.watch(f"{VMS}?watch=1&resourceVersion={first}") as events:
        error = await events.next()
        assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 410, "Expired")
        await asyncio.wait_for(events.ended.wait(), 5)
    await sees_everything(api)
