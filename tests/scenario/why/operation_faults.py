"""Faults of snapshots, restores, clones, exports and series of machines."""

import asyncio
from typing import Any

from tests.kit.engine.fakehost import FakeHost, machine
from tests.scenario.hosts.snapshotting import CLONE, MACHINE, export, restore, snapshot, web
from tests.scenario.why.faults import Fault
from tests.scenario.why.host_faults import made

_POOLS = "/apis/pool.kubevirt.io/v1alpha1/namespaces/default/virtualmachinepools"
Data = dict[str, Any]


async def _without_agent(host: FakeHost) -> None:
    await web(host)
    await host.make(snapshot())
    await asyncio.sleep(30)


async def _empty_disk(host: FakeHost) -> None:
    template = {
        "metadata": {"name": "disk"},
        "spec": {"source": {"upload": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}},
    }
    await host.make(machine(strategy="Halted", volumes=[{"name": "root", "dataVolume": {"name": "disk"}}], templates=[template]))
    await asyncio.sleep(5)
    await host.make(snapshot())
    await asyncio.sleep(20)


async def _overdue(host: FakeHost) -> None:
    await _empty_disk(host)
    await asyncio.sleep(400)


async def _target_runs(host: FakeHost) -> None:
    await web(host)
    await host.make(snapshot())
    await asyncio.sleep(30)
    await host.make(restore(targetReadinessPolicy="FailImmediate"))
    await asyncio.sleep(10)


async def _clone_exists(host: FakeHost) -> None:
    await web(host)
    other = machine("copy", strategy="Halted")
    clone = {"apiVersion": CLONE, "kind": "VirtualMachineClone", "metadata": {"name": "out"}}
    await host.make(other)
    await asyncio.sleep(3)
    await host.make({**clone, "spec": {"source": MACHINE, "target": {**MACHINE, "name": "copy"}}})
    await asyncio.sleep(10)


async def _in_use(host: FakeHost) -> None:
    await web(host)
    host.engine.volumes.users = lambda directory: True
    await host.make(export("VirtualMachine", "web", "kubevirt.io"))
    await asyncio.sleep(10)


def _pool(**spec: Any) -> Data:
    template = {"metadata": {"labels": {"pool": "web"}}, "spec": machine()["spec"]}
    return {
        "apiVersion": "pool.kubevirt.io/v1alpha1",
        "kind": "VirtualMachinePool",
        "metadata": {"name": "crowd"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"pool": "web"}}, "virtualMachineTemplate": template, **spec},
    }


async def _paused(host: FakeHost) -> None:
    reply = await host.api.post(_POOLS, _pool(paused=True))
    assert reply.status == 201, reply.data
    await asyncio.sleep(10)


async def _unplaced(host: FakeHost) -> None:
    made_ = _pool()
    made_["spec"]["virtualMachineTemplate"]["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "fast"}
    reply = await host.api.post(_POOLS, made_)
    assert reply.status == 201, reply.data
    await asyncio.sleep(20)


OPERATION_FAULTS: tuple[Fault, ...] = (
    Fault("a snapshot of no machine", made(snapshot()), "machine-missing", "VirtualMachine web", ask="vmsnapshot/one"),
    Fault(
        "a snapshot without an agent",
        _without_agent,
        "snapshot-without-agent",
        "VirtualMachineSnapshot one",
        ask="vmsnapshot/one",
        state="notice",
    ),
    Fault("a snapshot of a disk that is not filled", _empty_disk, "upload-not-begun", "DataVolume disk", ask="vmsnapshot/one"),
    Fault("a snapshot that took too long", _overdue, "upload-not-begun", "DataVolume disk", ask="vmsnapshot/one"),
    Fault("a restore from no snapshot", made(restore()), "snapshot-missing", "VirtualMachineSnapshot one", ask="vmrestore/back"),
    Fault("a restore of a machine that runs", _target_runs, "restore-target-running", "VirtualMachineRestore back", ask="vmrestore/back"),
    Fault("a clone whose name is taken", _clone_exists, "clone-target-exists", "VirtualMachineClone out", ask="vmclone/out"),
    Fault("an export of a disk that is in use", _in_use, "export-source-in-use", "VirtualMachineExport out", ask="vmexport/out"),
    Fault(
        "an export of nothing",
        made(export("PersistentVolumeClaim", "gone")),
        "disk-missing",
        "PersistentVolumeClaim gone",
        ask="vmexport/out",
    ),
    Fault("a pool that is paused", _paused, "series-paused", "VirtualMachinePool crowd", ask="crowd", state="notice"),
    Fault("a pool whose machines fit nowhere", _unplaced, "node-selector", "VirtualMachineInstance crowd-0", ask="crowd"),
)
