"""The calls that an operation costs, beside those of a plain loop over the API that does the same and keeps nothing."""

import time
from collections.abc import Awaitable, Callable

from paddock.contract import messages as m
from paddock.contract import payloads as p
from tests.coroutines import played_by
from tests.unit.drivers.proxmox.conftest import TEMPLATE, Stage, play

MOST = {"create": 14, "power on": 5, "describe": 5, "reconfigure": 12, "snapshot": 6, "power off": 5, "list": 3, "delete": 5}


def plain(stage: Stage) -> dict[str, int]:
    """The same life of a machine, by somebody who knows the node and the VMID, and looks at each task once."""
    admin, base, found = stage.admin, "/nodes/pve1/qemu/500", {}

    def count(name: str, *calls: Callable[[], object]) -> None:
        before = len(stage.simulator.calls)
        for call in calls:
            answer = call()
            if isinstance(answer, str) and answer.startswith("UPID"):
                assert admin.done(answer) == "OK"
        found[name] = len(stage.simulator.calls) - before

    count(
        "create",
        lambda: admin.get("/cluster/nextid"),
        lambda: admin.post(f"/nodes/pve1/qemu/{TEMPLATE}/clone", newid=500, name="plain", full=1),
        lambda: admin.put(f"{base}/config", cores=1, memory=1024),
    )
    count("power on", lambda: admin.post(f"{base}/status/start"))
    count(
        "describe",
        lambda: admin.get(f"{base}/config"),
        lambda: admin.get(f"{base}/status/current"),
        lambda: admin.get(f"{base}/agent/network-get-interfaces"),
    )
    count("reconfigure", lambda: admin.post(f"{base}/config", cores=2))
    count("snapshot", lambda: admin.post(f"{base}/snapshot", snapname="before"))
    count("power off", lambda: admin.post(f"{base}/status/stop"))
    count("list", lambda: admin.get("/cluster/resources", type="vm"))
    count("delete", lambda: admin.delete(base))
    return found


async def driven(stage: Stage) -> dict[str, int]:
    """The life of a machine by the driver."""
    driver, found = stage.driver, {}

    async def count(name: str, call: Callable[[], Awaitable[object]]) -> None:
        before = len(stage.simulator.calls)
        answer = await call()
        await stage.finish(getattr(answer, "task", None))
        found[name] = len(stage.simulator.calls) - before

    await stage.make(stage.request("warm"))
    await count("create", lambda: driver.create(stage.request()))
    vm = (await driver.create(stage.request())).id
    wanted = p.encode(p.DesiredPayload(name="web", machine_class=p.ClassPayload(cpu=2, memory_mib=1024)))
    await count("power on", lambda: driver.power(m.PowerRequest(id=vm, op=m.PowerOp.ON)))
    await count("describe", lambda: driver.describe(m.DescribeRequest(id=vm)))
    await count("reconfigure", lambda: driver.reconfigure(m.ReconfigureRequest(id=vm, desired_json=wanted)))
    await count("snapshot", lambda: driver.snapshot_create(m.SnapshotCreateRequest(vm_id=vm, name_hint="a")))
    await count("power off", lambda: driver.power(m.PowerRequest(id=vm, op=m.PowerOp.OFF)))
    await driver.list_vms(m.ListVMsRequest())
    await count("list", lambda: driver.list_vms(m.ListVMsRequest()))
    await count("delete", lambda: driver.delete(m.DeleteRequest(id=vm)))
    return found


@played_by(play)
async def test_an_operation_costs_a_few_calls_more_than_a_plain_loop(stage: Stage, /) -> None:
    ours, theirs = await driven(stage), plain(stage)
    print("\n".join(f"{name:12} driver {ours[name]:3}  plain loop {theirs[name]:3}" for name in ours))
    assert all(ours[name] <= MOST[name] for name in MOST), ours


@played_by(play)
async def test_describing_costs_little_of_a_processor(stage: Stage, /) -> None:
    vm = await stage.make()
    await stage.power(vm, m.PowerOp.ON)
    begin = time.process_time()
    for _ in range(100):
        await stage.driver.describe(m.DescribeRequest(id=vm))
    seconds = (time.process_time() - begin) / 100
    print(f"describe: {seconds * 1000:.2f} ms of a processor, the simulator's share included")
    # A hundredth of a second is ten times what it takes here.
    assert seconds < 0.05
