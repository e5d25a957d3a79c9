"""A machine whose config cannot be read while its QEMU lives: it is kept, it says so, and nothing is done to it."""

import asyncio

import pytest

from tests.coroutines import played
from tests.kit.engine.fakehost import Data, FakeHost
from tests.scenario.hosts.snapshotting import web


def _ready(found: Data) -> tuple[str, str, str]:
    each = next(each for each in found["status"]["conditions"] if each["type"] == "Ready")
    return each["status"], each.get("reason", ""), each.get("message", "")


async def _lost(host: FakeHost) -> str:
    """A machine runs, Paddock ends, its file is damaged, and Paddock begins again; return the UID of the instance."""
    await web(host)
    uid = (await host.running()).id
    await host.end()
    host.engine.machines.lose(uid, "machines/a/config.json is damaged")
    await host.begin()
    await asyncio.sleep(60)
    return uid


@pytest.mark.spec("kubevirt", 138, 139)
@played
async def test_it_stays_and_says_so(host: FakeHost, /) -> None:
    uid = await _lost(host)
    instance = await host.vmi()
    assert (instance["metadata"]["uid"], instance["status"]["phase"]) == (uid, "Running")
    unmanaged = ("False", "MachineUnmanaged", "machines/a/config.json is damaged")
    assert _ready(instance) == _ready(await host.vm()) == unmanaged
    assert (await host.events(kind="VirtualMachineInstance")).count("MachineUnmanaged") == 1
    assert list(host.engine.machines) == [], "another one was started"
    reply = await host.verb("web", "pause", kind="VirtualMachineInstance")
    assert reply.status == 409 and "config.json is damaged" in reply.data["message"]


@pytest.mark.spec("kubevirt", 140)
@played
async def test_it_is_managed_again_when_the_file_is_right(host: FakeHost, /) -> None:
    uid = await _lost(host)
    host.engine.machines.mend(uid)
    await asyncio.sleep(10)
    instance = await host.vmi()
    assert (instance["metadata"]["uid"], _ready(instance)[0]) == (uid, "True")
    assert "NeedsAttention" not in {each["type"] for each in instance["status"]["conditions"]}
    reply = await host.verb("web", "pause", kind="VirtualMachineInstance")
    assert reply.status in (200, 202), reply.data


@pytest.mark.spec("kubevirt", 139)
@played
async def test_its_end_is_seen_and_another_is_started(host: FakeHost, /) -> None:
    uid = await _lost(host)
    left = host.engine.machines.unmanaged(uid)
    assert left is not None
    left.machine.crash("nobody saw how it ended")
    await asyncio.sleep(60)
    instance = await host.vmi()
    assert instance["metadata"]["uid"] != uid and _ready(instance)[0] == "True"
    assert host.engine.machines.leftovers() == set()


@pytest.mark.spec("kubevirt", 139)
@played
async def test_its_deletion_waits_for_the_end_of_its_qemu(host: FakeHost, /) -> None:
    uid = await _lost(host)
    await host.delete("VirtualMachine", "kubevirt.io/v1", "web")
    await asyncio.sleep(300)
    instance = await host.vmi()
    assert instance["metadata"]["uid"] == uid and _ready(instance)[1] == "MachineUnmanaged"
    left = host.engine.machines.unmanaged(uid)
    assert left is not None and left.lives
    left.machine.crash()
    await asyncio.sleep(60)
    assert await host.vmi() == {} and await host.vm() == {}
    assert host.engine.machines.leftovers() == set()


@played
async def test_its_claim_is_in_use(host: FakeHost, /) -> None:
    await _lost(host)
    other = await host.vm()
    spec = {"runStrategy": "Always", "template": other["spec"]["template"]}
    await host.make({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "other"}, "spec": spec})
    await asyncio.sleep(30)
    conditions = {each["type"]: each for each in (await host.vmi("other"))["status"]["conditions"]}
    assert conditions["Synchronized"]["reason"] == "PVCInUse"
