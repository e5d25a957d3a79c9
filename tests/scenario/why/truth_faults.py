"""Faults of which nothing else speaks: objects that nobody carries out, machines that run and do nothing, causes that are over."""

import asyncio
from typing import Any

from tests.kit.engine.fakehost import FakeHost, machine
from tests.scenario.why.cluster import condition, made
from tests.scenario.why.faults import Fault
from tests.scenario.why.front_faults import of_vitistack, post, source, stakater
from tests.scenario.why.image_faults import DISK, URL, template
from tests.scenario.why.told_faults import Told
from tests.scenario.why.told_faults import instance as guest
from tests.scenario.why.told_faults import machine as told_machine

_RIGAUD = "/apis/infra.virtrigaud.io/v1beta1/namespaces/default"
_STAKATER = "/apis/infrastructure.stakater.com/v1/namespaces/default/virtualmachines"
_FILE = "/paddock/images/abc/disk.qcow2"
_NOT_READY = {"type": "Ready", "status": "False", "reason": "QemuMissing", "message": "qemu-system-x86_64 is not on PATH"}
_GUEST = "VirtualMachineInstance web"


async def _rigaud_set(host: FakeHost) -> None:
    machine = {"providerRef": {"name": "local"}, "classRef": {"name": "small"}, "imageRef": {"name": "debian"}}
    labels = {"app": "web"}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": machine}}
    about = {"apiVersion": "infra.virtrigaud.io/v1beta1", "kind": "VMSet", "metadata": {"name": "web"}}
    await post(host, f"{_RIGAUD}/vmsets", {**about, "spec": spec})


async def _blank(host: FakeHost) -> None:
    await of_vitistack({})(host)


async def _blank_disk(host: FakeHost) -> None:
    await host.make(machine(volumes=DISK, templates=[template({"blank": {}})]))


async def _disk_deleted(host: FakeHost) -> None:
    host.engine.images.offer(URL)
    await host.make(machine(volumes=DISK, templates=[template({"http": {"url": URL}})]))
    await host.running(seconds=30)
    await host.delete("PersistentVolumeClaim", "v1", "web-root")


async def _unattended(host: FakeHost) -> None:
    """Controllers that never began, and a machine that is made all the same."""
    await host.end()
    reply = await host.api.merge("/api/v1/nodes/host/status", {"status": {"conditions": [_NOT_READY]}})
    assert reply.status == 200, reply.data
    await host.make(machine())


async def _unattended_running(host: FakeHost) -> None:
    """A machine that still says Running after its host went away."""
    await host.make(machine())
    await host.running()
    await host.end()
    await host.api.merge("/api/v1/nodes/host/status", {"status": {"conditions": [_NOT_READY]}})


async def _file_gone(host: FakeHost) -> None:
    """QEMU is killed, which is over; later the file below its disk is gone, and it cannot be started again."""
    await host.make(machine())
    (await host.running()).end("crashed", "QEMU was ended by signal SIGKILL")
    await host.running(seconds=30)
    define = host.engine.machines.define

    async def defined(id: str, config: Any) -> Any:
        host.engine.machines.fail(id, f"qemu: Could not open '{_FILE}': No such file or directory")
        return await define(id, config)

    host.engine.machines.define = defined  # type: ignore[method-assign]
    reply = await host.verb("web", "restart")
    assert reply.status == 202, reply.data
    await asyncio.sleep(120)


async def _unmanaged(host: FakeHost) -> None:
    """Paddock ends, the config of a running machine is damaged, and Paddock begins again."""
    await host.make(machine())
    uid = (await host.running()).id
    await host.end()
    host.engine.machines.lose(uid, f"cannot manage machine {uid}: /paddock/machines/{uid}/config.json is damaged")
    await host.begin()


async def _stakater_first(host: FakeHost) -> None:
    await source(host)
    await post(host, _STAKATER, stakater({}))
    await asyncio.sleep(20)
    await of_vitistack({})(host)


async def _vitistack_first(host: FakeHost) -> None:
    await of_vitistack({})(host)
    await source(host)
    await post(host, _STAKATER, stakater({}))
    await asyncio.sleep(20)


def unwell(reason: str, message: str) -> tuple[Any, ...]:
    """A machine whose guest or QEMU no longer answers."""
    said = [condition("Ready", "False", reason, message)]
    running = {"phase": "Running", "nodeName": "host", "conditions": said}
    return told_machine({"printableStatus": "Running", "conditions": said}), guest(running)


def of_host(reason: str, message: str) -> tuple[Any, ...]:
    """A machine that nobody has looked at, on a host that is not ready."""
    node = made("Node", "v1", "host", {}, {"conditions": [condition("Ready", "False", reason, message)]})
    del node["metadata"]["namespace"]
    return told_machine({}), node


TRUTH_FAULTS: tuple[Fault, ...] = (
    Fault("VirtRigaud's set", _rigaud_set, "provider-missing", "VirtRigaud Provider local", ask="vmset/web"),
    Fault("Vitistack: an empty disk", _blank, "disks-blank", _GUEST, ask="machine/web", state="notice", seconds=600),
    Fault("an empty disk", _blank_disk, "disks-blank", _GUEST, state="notice", seconds=600),
    Fault("a disk that is deleted under a machine", _disk_deleted, "claim-terminating", "PersistentVolumeClaim web-root", state="notice"),
    Fault(
        "a deleted disk that a machine runs on",
        _disk_deleted,
        "claim-terminating",
        "PersistentVolumeClaim web-root",
        ask="pvc/web-root",
        state="notice",
    ),
    Fault("a machine whose config cannot be read", _unmanaged, "machine-unmanaged", _GUEST),
    Fault("a host that nobody looks after", _unattended, "host-not-ready", "Node host", seconds=60),
    Fault("a host that is no longer looked after", _unattended_running, "host-not-ready", "Node host", state="notice"),
    Fault("a file below a disk is gone", _file_gone, "disk-file-missing", _GUEST),
    Fault(
        "one name in two dialects, Stakater's first",
        _stakater_first,
        "name-conflict",
        "Machine web",
        ask="machine/web",
        says="belongs to Stakater VirtualMachine web",
    ),
    Fault(
        "one name in two dialects, Vitistack's first",
        _vitistack_first,
        "name-conflict",
        "Stakater VirtualMachine web",
        ask="web",
        says="belongs to Machine web",
    ),
)
TOLD_TRUTHS: tuple[Told, ...] = (
    Told("a QEMU that is stopped", unwell("ProcessStopped", "QEMU is stopped by a signal"), "qemu-stopped", _GUEST),
    Told("a monitor that is silent", unwell("MonitorUnresponsive", "no answer for 30 s"), "qemu-unresponsive", _GUEST),
    Told("a guest that is silent", unwell("GuestNotResponding", "its agent was there, and is silent"), "guest-hung", _GUEST),
    Told("a guest that reboots for ever", unwell("GuestRebootLoop", "5 resets in 60 s"), "guest-reboot-loop", _GUEST),
    Told(
        "an agent that is silent",
        (
            told_machine({"printableStatus": "Running", "conditions": [condition("Ready", "True", "")]}),
            guest(
                {
                    "phase": "Running",
                    "conditions": [condition("Ready", "True", ""), condition("AgentConnected", "False", "AgentNotResponding", "60 s")],
                }
            ),
        ),
        "agent-not-responding",
        _GUEST,
        state="notice",
    ),
    Told("no QEMU", of_host("QemuMissing", "qemu-system-x86_64 is not on PATH"), "host-not-ready", "Node host"),
    Told("a server that begins", of_host("EngineStarting", "a moment"), "host-starting", "Node host", state="waits"),
    Told(
        "a host that may not be looked at",
        (told_machine({"printableStatus": "Stopped", "conditions": [condition("Ready", "False", "HostNotReady", "no QEMU")]}),),
        "host-not-ready",
        "VirtualMachine web",
        blind=("Node",),
    ),
)
