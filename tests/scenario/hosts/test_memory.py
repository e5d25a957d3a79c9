"""Snapshots with memory on a whole host: what users ask for, what they are told, and what is there when something dies in between."""

import asyncio
import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.coroutines import played
from tests.kit.engine.fakehost import Data, FakeHost, machine
from tests.scenario.hosts.snapshotting import (
    CLONE,
    SNAPSHOT,
    TEMPLATE,
    completed,
    export,
    exported,
    restore,
    restored,
    snapshot,
    succeeded,
    taken,
)

WISH, STATE, CONTINUES = "paddock.dev/memory", "paddock.dev/memory-state", "paddock.dev/continues"
VOLUMES = [{"name": "root", "dataVolume": {"name": "disk"}}, {"name": "seed", "cloudInitNoCloud": {"userData": "#cloud-config"}}]


def with_memory(made: Data, value: str = "true") -> Data:
    return {**made, "metadata": {**made["metadata"], "annotations": {WISH: value}}}


async def web(host: FakeHost) -> None:
    await host.make(machine(volumes=VOLUMES, templates=[TEMPLATE]))
    await asyncio.sleep(30)


async def snapshotted(host: FakeHost, **spec: Any) -> Data:
    await web(host)
    await host.make(with_memory(snapshot(**spec)))
    await asyncio.sleep(10)
    return await succeeded(host)


async def content(host: FakeHost) -> Data:
    return dict(await host.get("VirtualMachineSnapshotContent", SNAPSHOT, (await taken(host))["virtualMachineSnapshotContentName"]))


async def told(host: FakeHost, reason: str) -> str:
    await asyncio.sleep(1)
    found = (await host.api.get("/api/v1/namespaces/default/events")).data["items"]
    return next(str(each["message"]) for each in found if each["involvedObject"]["name"] == "one" and each["reason"] == reason)


async def every(host: FakeHost, kind: str, version: str) -> list[Data]:
    return list((await host.api.get(host.place(kind, version))).data["items"])


def kept(host: FakeHost) -> list[str]:
    return sorted(path.name for path in host.engine.memories.root.iterdir())


async def halted(host: FakeHost) -> None:
    await host.change("web", {"spec": {"runStrategy": "Halted"}})
    await asyncio.sleep(120)


async def failed(host: FakeHost) -> Data:
    status = await taken(host)
    assert status["phase"] == "Failed", status
    return next(each for each in status["conditions"] if each["type"] == "Failure")


@pytest.mark.spec("kubevirt", 210)
@played
async def test_a_snapshot_tells_of_its_memory(host: FakeHost, /) -> None:
    status = await snapshotted(host)
    assert status["indications"] == ["Memory", "Online"]
    assert "memory" in status["sourceIndications"][0]["message"]
    made = await host.get("VirtualMachineSnapshot", SNAPSHOT, "one")
    note = json.loads(made["metadata"]["annotations"][STATE])
    assert note == {"bytes": 38 << 20, "pauseMilliseconds": 42, "qemu": "7.2.0"}
    assert await told(host, "MemoryKept") == "memory 38 MiB, the guest stood still for 42 ms"
    assert kept(host) == [(await content(host))["metadata"]["uid"]]
    running = await host.running()
    assert len(running.overlays) == 1 and not running.agent.calls
    assert "snapshotInProgress" not in (await host.vm())["status"]


@pytest.mark.spec("kubevirt", 212)
@played
async def test_a_restore_goes_on(host: FakeHost, /) -> None:
    await snapshotted(host)
    (name,) = kept(host)
    await halted(host)
    await host.make(restore())
    await asyncio.sleep(20)
    await completed(host)
    running = await host.running()
    (saved,) = running.continued
    assert saved.config.disks[0].layer == running.config.disks[0].layer
    assert (await host.vmi())["metadata"]["annotations"][CONTINUES] == name
    # The machine runs as it did, and no later instance goes on from there.
    found = await host.vm()
    assert found["spec"]["runStrategy"] == "Always" and CONTINUES not in found["metadata"]["annotations"]
    await halted(host)
    await host.change("web", {"spec": {"runStrategy": "Always"}})
    await asyncio.sleep(60)
    assert (await host.running()).continued == [] and kept(host) == [name]


@played
async def test_disks_alone(host: FakeHost, /) -> None:
    await snapshotted(host)
    await halted(host)
    await host.make(with_memory(restore(), "false"))
    await asyncio.sleep(20)
    await completed(host)
    found = await host.vm()
    assert found["spec"]["runStrategy"] == "Halted" and CONTINUES not in found["metadata"]["annotations"]
    await host.change("web", {"spec": {"runStrategy": "Always"}})
    await asyncio.sleep(60)
    assert (await host.running()).continued == []


@pytest.mark.spec("kubevirt", 211)
@pytest.mark.parametrize("why", ["host device", "restart required", "not running", "cut short"])
@played
async def test_what_cannot_be_is_refused_and_leaves_nothing(host: FakeHost, /, why: str) -> None:
    reason, text = {
        "host device": ("MemoryNotPossible", "passed through"),
        "restart required": ("MemoryNotPossible", "restart it first"),
        "not running": ("MemoryNotPossible", "no machine runs on its volumes"),
        "cut short": ("MemoryLost", "take another one"),
    }[why]
    await web(host)
    running = await host.running()
    if why == "host device":
        running.immovable = ("devices of the host are passed through to it",)
    elif why == "restart required":
        template = (await host.vm())["spec"]["template"]
        template["spec"]["domain"]["resources"] = {"requests": {"memory": "2Gi"}}
        await host.change("web", {"spec": {"template": template}})
        await asyncio.sleep(5)
    elif why == "not running":
        await halted(host)
    else:
        overlay = running.overlay_disks

        async def dies(layers: Any) -> None:
            await overlay(layers)
            running.unwritable = "QEMU said no"
            raise RuntimeError("in the middle")

        running.overlay_disks = dies  # type: ignore[method-assign]  # once
    await host.make(with_memory(snapshot()))
    await asyncio.sleep(60)
    found = await failed(host)
    assert found["reason"] == reason and text in found["message"]
    assert text in (await taken(host))["error"]["message"] and text in await told(host, reason)
    assert kept(host) == [] and not await every(host, "VirtualMachineSnapshotContent", SNAPSHOT)
    assert not host.engine.volumes.snapshots and "snapshotInProgress" not in (await host.vm())["status"]


@pytest.mark.spec("kubevirt", 213)
@pytest.mark.parametrize("why", ["series", "accelerator", "gone", "patches", "target"])
@played
async def test_a_restore_that_could_not_go_on_is_refused_before_anything_happens(host: FakeHost, /, why: str) -> None:
    text = {
        "series": "taken with QEMU 6.1.4, and this host has 7.2.0",
        "accelerator": "taken under kvm",
        "gone": "memory is gone",
        "patches": "the patches change the machine",
        "target": "that is not the target",
    }[why]
    await snapshotted(host)
    await halted(host)
    name, memories = kept(host)[0], host.engine.memories
    state = memories.get(name)
    assert state is not None
    record = {
        "series": replace(state.record, qemu="6.1.4"),
        "accelerator": replace(state.record, saved=replace(state.record.saved, accelerator="kvm")),
    }.get(why, state.record)
    found = replace(state, record=record) if why != "gone" else None
    memories.get = lambda id: found  # type: ignore[method-assign]
    before = await host.vm()
    change = '{"op": "add", "path": "/spec/template/spec/terminationGracePeriodSeconds", "value": 5}'
    spec: Data = {"patches": [change]} if why == "patches" else {}
    await host.make(restore(target="other" if why == "target" else "web", **spec))
    await asyncio.sleep(30)
    status = await restored(host)
    failure = next(each for each in status["conditions"] if each["type"] == "Failure")
    assert failure["reason"] == "MemoryMismatch" and text in failure["message"] and 'paddock.dev/memory: "false"' in failure["message"]
    assert (await host.vm())["spec"] == before["spec"] and len(await every(host, "PersistentVolumeClaim", "v1")) == 1
    # What is offered works.
    await host.make(with_memory(restore("disks", target="other" if why == "target" else "web", **spec), "false"))
    await asyncio.sleep(30)
    await completed(host, "disks", "other" if why == "target" else "web")


@pytest.mark.spec("kubevirt", 214)
@pytest.mark.parametrize("why", ["edited", "written"])
@played
async def test_a_guest_does_not_go_on_in_another_machine(host: FakeHost, /, why: str) -> None:
    """A machine may be changed between its restore and its start."""
    text = {"edited": "changed since, in memory", "written": "disk root was written since it was restored"}[why]
    await snapshotted(host)
    await halted(host)
    is_unwritten = host.engine.volumes.is_unwritten
    if why == "written":
        host.engine.volumes.is_unwritten = lambda layer: False  # type: ignore[method-assign]
    state = host.engine.memories.get(kept(host)[0])
    assert state is not None
    if why == "edited":
        saved = state.record.saved
        record = replace(
            state.record, saved=replace(saved, started=replace(saved.started, memory=replace(saved.config.memory, size=5 << 20)))
        )
        host.engine.memories.get = lambda id: replace(state, record=record)  # type: ignore[method-assign]
    await host.make(restore())
    await asyncio.sleep(60)
    await completed(host)
    conditions = (await host.vmi())["status"]["conditions"]
    ready = next(each for each in conditions if each["type"] == "Ready")
    assert ready["reason"] == "MemoryMismatch" and text in ready["message"] and "stop and start the machine" in ready["message"]
    host.engine.volumes.is_unwritten = is_unwritten  # type: ignore[method-assign]
    await halted(host)
    await host.change("web", {"spec": {"runStrategy": "Always"}})
    await asyncio.sleep(60)
    assert (await host.running()).continued == []


@pytest.mark.spec("kubevirt", 216)
@played
async def test_the_memory_is_packed_when_it_is_cold_and_goes_with_its_content(host: FakeHost, /) -> None:
    host.engine.memories.age = lambda id, now: 0.0  # type: ignore[method-assign]
    await snapshotted(host)
    (name,) = kept(host)
    state = host.engine.memories.get(name)
    assert state is not None and not state.packed
    host.engine.memories.age = lambda id, now: 601.0  # type: ignore[method-assign]
    await asyncio.sleep(700)
    state = host.engine.memories.get(name)
    assert state is not None and state.packed
    await host.delete("VirtualMachineSnapshot", SNAPSHOT, "one")
    await asyncio.sleep(10)
    assert kept(host) == [] and not await every(host, "VirtualMachineSnapshotContent", SNAPSHOT)


@pytest.mark.spec("kubevirt", 216)
@played
async def test_a_retained_content_retains_its_memory(host: FakeHost, /) -> None:
    name = (await snapshotted(host, deletionPolicy="Retain"))["virtualMachineSnapshotContentName"]
    await host.delete("VirtualMachineSnapshot", SNAPSHOT, "one")
    await asyncio.sleep(10)
    assert len(kept(host)) == 1
    await host.delete("VirtualMachineSnapshotContent", SNAPSHOT, name)
    await asyncio.sleep(10)
    assert kept(host) == []


@pytest.mark.spec("kubevirt", 217)
@played
async def test_clones_and_exports_say_that_the_memory_is_left_out(host: FakeHost, /) -> None:
    await snapshotted(host)
    source = {"apiGroup": "snapshot.kubevirt.io", "kind": "VirtualMachineSnapshot", "name": "one"}
    spec = {"source": source, "target": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "copy"}}
    await host.make(
        {"apiVersion": CLONE, "kind": "VirtualMachineClone", "metadata": {"name": "one"}, "spec": spec},
        export("VirtualMachineSnapshot", "one", "snapshot.kubevirt.io"),
    )
    await asyncio.sleep(60)
    assert (await host.get("VirtualMachineClone", CLONE, "one"))["status"]["phase"] == "Succeeded"
    assert await told(host, "MemoryLeftOut") == "The memory in snapshot one is left out: the clone boots from its disks"
    assert CONTINUES not in ((await host.vm("copy"))["metadata"].get("annotations") or {})
    ready = next(each for each in (await exported(host))["conditions"] if each["type"] == "Ready")
    assert ready["status"] == "True" and ready["message"] == "the memory in the snapshot is left out"


@pytest.mark.spec("kubevirt", 216)
@played
async def test_a_content_of_somebody_else_does_nothing_to_a_memory(host: FakeHost, /) -> None:
    """A user chooses the names, finalizers and annotations of objects, not their UIDs."""
    await snapshotted(host)
    (uid,) = kept(host)
    made = await content(host)
    reply = await host.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    assert reply.status == 201, reply.data
    metadata = {"name": made["metadata"]["name"], "namespace": "other", "finalizers": made["metadata"]["finalizers"]}
    forged = {"apiVersion": SNAPSHOT, "kind": made["kind"], "metadata": metadata, "spec": made["spec"]}
    await host.make(forged)
    path = host.place(made["kind"], SNAPSHOT, "other", metadata["name"])
    assert (await host.api.delete(path)).status in (200, 202)
    stolen = machine("thief", volumes=VOLUMES[1:])
    stolen["metadata"]["annotations"] = {CONTINUES: uid}
    await host.make(stolen)
    await asyncio.sleep(60)
    assert kept(host) == [uid]
    conditions = (await host.vmi("thief"))["status"]["conditions"]
    ready = next(each for each in conditions if each["type"] == "Ready")
    assert ready["reason"] == "MemoryMismatch" and "no agent" in ready["message"] and "changed since, in disks" in ready["message"]
