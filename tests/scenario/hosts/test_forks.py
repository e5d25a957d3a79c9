"""Warm clones on a whole host: another machine goes on from the memory of a running one, or what is in the way is named."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from paddock.engine.machine.config import Tpm, UserNetwork
from paddock.engine.machine.guest import GuestExecResult
from tests.coroutines import played
from tests.kit.engine.fakehost import Data, FakeHost, machine
from tests.scenario.hosts.snapshotting import CLONE, MACHINE, SNAPSHOT, TEMPLATE, snapshot
from tests.scenario.hosts.test_memory import VOLUMES, every, halted, kept, with_memory

WARM, CONTINUES = "paddock.dev/warm", "paddock.dev/continues"
OF_SNAPSHOT = {"apiGroup": "snapshot.kubevirt.io", "kind": "VirtualMachineSnapshot", "name": "one"}


def warm(name: str = "fork", source: Data = MACHINE, **spec: Any) -> Data:
    target = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": name}
    metadata = {"name": name, "annotations": {WARM: "true"}}
    return {"apiVersion": CLONE, "kind": "VirtualMachineClone", "metadata": metadata, "spec": {"source": source, "target": target, **spec}}


async def web(host: FakeHost, *, agent: bool = True, **more: Any) -> None:
    await host.make(machine(volumes=VOLUMES, templates=[TEMPLATE], **more))
    await asyncio.sleep(30)
    if agent:
        (await host.running()).agent.connect()
        await asyncio.sleep(5)


async def status(host: FakeHost, name: str = "fork") -> Data:
    return dict((await host.get("VirtualMachineClone", CLONE, name)).get("status", {}))


async def told(host: FakeHost, reason: str) -> list[str]:
    found = (await host.api.get("/api/v1/namespaces/default/events")).data["items"]
    return [str(each["message"]) for each in found if each["involvedObject"]["kind"] == "VirtualMachineClone" and each["reason"] == reason]


async def is_clean(host: FakeHost) -> bool:
    """Return whether nothing is left of the way to a clone."""
    kinds = ("VirtualMachineSnapshot", "VirtualMachineSnapshotContent", "VirtualMachineRestore")
    return not kept(host) and not [each for kind in kinds for each in await every(host, kind, SNAPSHOT)]


@pytest.mark.spec("kubevirt", 244)
@pytest.mark.spec("kubevirt", 245)
@played
async def test_a_fork_goes_on_beside_its_source(host: FakeHost, /) -> None:
    await web(host)
    source = await host.running()
    await host.make(warm())
    await asyncio.sleep(30)
    assert (await status(host))["phase"] == "Succeeded", await status(host)
    fork = await host.running("fork")
    (saved,) = fork.continued
    # The source runs on, in the same run, and both have a layer of their own.
    assert await host.running() is source and source.observed.phase == "running" and not source.continued
    layers = [one.config.disks[0].layer for one in (source, fork)]
    assert layers[0] is not None and layers[1] is not None and layers[0].path != layers[1].path
    # Its own identity.
    assert saved.identity is not None and saved.identity.hostname == "fork"
    before, own = source.config.nics[0].mac, fork.config.nics[0].mac
    assert before != own and saved.identity.macs == {"default": (before, own)}
    counters = [one.config.devices.generation_id for one in (source, fork)]
    assert all(counters) and counters[0] != counters[1]
    assert source.config.firmware.uuid != fork.config.firmware.uuid
    found = await host.vm("fork")
    assert found["spec"]["runStrategy"] == "Always" and CONTINUES not in found["metadata"]["annotations"]
    assert not await told(host, "IdentityShared") and await is_clean(host)
    # Another start boots.
    await host.change("fork", {"spec": {"runStrategy": "Halted"}})
    await asyncio.sleep(120)
    await host.change("fork", {"spec": {"runStrategy": "Always"}})
    await asyncio.sleep(60)
    assert (await host.running("fork")).continued == []


@pytest.mark.spec("kubevirt", 244)
@played
async def test_forks_of_a_snapshot(host: FakeHost, /) -> None:
    """Each has the memory of the snapshot, which stays; the source need not run any more."""
    await web(host)
    await host.make(with_memory(snapshot()))
    await asyncio.sleep(10)
    (name,) = kept(host)
    await halted(host)
    await host.make(*(warm(f"fork-{number}", OF_SNAPSHOT) for number in range(3)))
    await asyncio.sleep(60)
    forks = [await host.running(f"fork-{number}") for number in range(3)]
    assert all(len(one.continued) == 1 for one in forks) and len({one.config.nics[0].mac for one in forks}) == 3
    assert kept(host) == [name]


@pytest.mark.spec("kubevirt", 246)
@pytest.mark.parametrize("why", ["tpm", "host device", "no agent", "user mode", "entropy", "not running"])
@played
async def test_what_cannot_be_is_named_before_anything_happens(host: FakeHost, /, why: str) -> None:
    text = {
        "tpm": "its TPM holds secrets",
        "host device": "passed through",
        "no agent": "no agent, which would give the network interfaces",
        "user mode": "is in user mode",
        "entropy": "the same random numbers",
        "not running": "no machine runs on its volumes",
    }[why]
    await web(host, agent=why != "no agent")
    running = await host.running()
    config = running.config
    if why == "tpm":
        running.config = replace(config, devices=replace(config.devices, tpm=Tpm()))
    elif why == "host device":
        running.immovable = ("devices of the host are passed through to it",)
    elif why == "user mode":
        backend = UserNetwork("10.0.2.0/24", "10.0.2.2", "10.0.2.15", "10.0.2.3")
        running.config = replace(config, nics=tuple(replace(nic, backend=backend) for nic in config.nics))
    elif why == "entropy":
        running.agent.run = lambda argv: GuestExecResult(4, b"", b"")
    elif why == "not running":
        await halted(host)
    before = running.config
    await host.make(warm())
    await asyncio.sleep(60)
    found = await status(host)
    assert found["phase"] == "Failed" and text in found["conditions"][0]["reason"], found
    assert text in (await told(host, "CloneFailed"))[0]
    assert running.config == before and not running.overlays and await is_clean(host)
    assert [each["metadata"]["name"] for each in await every(host, "VirtualMachine", "kubevirt.io/v1")] == ["web"]
    assert len(await every(host, "PersistentVolumeClaim", "v1")) == 1


@pytest.mark.spec("kubevirt", 246)
@played
async def test_a_snapshot_without_memory_has_no_forks(host: FakeHost, /) -> None:
    await web(host)
    await host.make(snapshot())
    await asyncio.sleep(10)
    await host.make(warm(source=OF_SNAPSHOT))
    await asyncio.sleep(60)
    found = await status(host)
    assert found["phase"] == "Failed" and "it has no memory" in found["conditions"][0]["reason"], found
    assert [each["metadata"]["name"] for each in await every(host, "VirtualMachine", "kubevirt.io/v1")] == ["web"]


@pytest.mark.spec("kubevirt", 247)
@played
async def test_a_guest_without_agent_shares_its_identity(host: FakeHost, /) -> None:
    """Without network interfaces it may be forked, and what it cannot be told is named."""
    disks = [{"name": each["name"], "disk": {"bus": "virtio"}} for each in VOLUMES]
    domain = {"devices": {"disks": disks, "autoattachPodInterface": False}}
    await web(host, agent=False, domain={"memory": {"guest": "128Mi"}, **domain})
    await host.make(warm())
    await asyncio.sleep(60)
    assert (await status(host))["phase"] == "Succeeded", await status(host)
    (saved,) = (await host.running("fork")).continued
    assert saved.identity is None
    (note,) = await told(host, "IdentityShared")
    assert "SSH host keys" in note and "random numbers" in note


@pytest.mark.spec("kubevirt", 246)
@pytest.mark.parametrize("change", ["value", "serial", "patches"])
@played
async def test_what_a_running_guest_cannot_follow_is_refused_at_once(host: FakeHost, /, change: str) -> None:
    specs: dict[str, Data] = {
        "value": {},
        "serial": {"newSMBiosSerial": "one"},
        "patches": {"patches": ['{"op": "replace", "path": "/spec/template/spec/domain/cpu/cores", "value": 4}']},
    }
    wanted = warm(**specs[change])
    if change == "value":
        wanted["metadata"]["annotations"][WARM] = "yes"
    reply = await host.api.post(host.place("VirtualMachineClone", CLONE), wanted)
    assert reply.status == 422 and any(word in reply.data["message"] for word in ("true", "serial number", "/metadata/labels/"))
    wanted["metadata"]["annotations"][WARM] = "false"
    assert (await host.api.post(host.place("VirtualMachineClone", CLONE), wanted)).status == 201


@pytest.mark.spec("kubevirt", 248)
@pytest.mark.parametrize("which", ["source", "fork", "clone"])
@played
async def test_deletions_leave_nothing(host: FakeHost, /, which: str) -> None:
    await web(host)
    await host.make(warm())
    await asyncio.sleep(30)
    fork = await host.running("fork")
    kind, version, name = {
        "source": ("VirtualMachine", "kubevirt.io/v1", "web"),
        "fork": ("VirtualMachine", "kubevirt.io/v1", "fork"),
        "clone": ("VirtualMachineClone", CLONE, "fork"),
    }[which]
    await host.delete(kind, version, name)
    await asyncio.sleep(120)
    left = {each["metadata"]["name"] for each in await every(host, "VirtualMachine", "kubevirt.io/v1")}
    assert left == {"source": {"fork"}, "fork": {"web"}, "clone": {"web", "fork"}}[which]
    if which != "fork":
        assert await host.running("fork") is fork and fork.observed.phase == "running"
    for other in left:
        await host.delete("VirtualMachine", "kubevirt.io/v1", other)
    await asyncio.sleep(180)
    assert await is_clean(host) and not await every(host, "PersistentVolumeClaim", "v1")
    assert not host.engine.volumes.snapshots and not await every(host, "VirtualMachineClone", CLONE)


@pytest.mark.spec("kubevirt", 249)
@pytest.mark.parametrize("first", range(0, 32, 4))
@played
async def test_a_restart_of_paddock_at_any_moment(host: FakeHost, /, first: int) -> None:
    """The fork goes on once; the source runs on, and nothing half made is left."""
    await web(host)
    source = await host.running()
    for moment in range(first, first + 4):
        name = f"fork-{moment}"
        await host.make(warm(name))
        await asyncio.sleep(moment * 0.05)
        await host.again()
        await asyncio.sleep(40)
        assert (await status(host, name))["phase"] == "Succeeded", (moment, await status(host, name))
        (fork,) = [each for each in host.engine.machines if each.config.label == f"default_{name}"]
        assert len(fork.continued) == 1 and fork.observed.phase == "running"
        assert source.observed.phase == "running" and not source.continued and await is_clean(host)
