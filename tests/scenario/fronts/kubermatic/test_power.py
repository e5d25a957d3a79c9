"""Run strategies of machines with disks from DataSources, on a whole host."""

import pytest

from paddock.kubernetes.client.options import WriteOptions, merge_patch
from paddock.kubernetes.client.target import Key
from paddock.kubevirt.controllers.virtualmachine.targets import MACHINE_DATA
from tests.coroutines import played
from tests.kit.engine.fakehost import FakeHost
from tests.scenario.fronts.kubermatic.making import URL, machine, settle, source, volume


async def begin(host: FakeHost, strategy: str) -> None:
    host.engine.images.offer(URL)
    await host.make(source(), machine(strategy=strategy))


@pytest.mark.spec("kubermatic", 40)
@played
async def test_always_is_always(host: FakeHost, /) -> None:
    await begin(host, "Always")
    first = await host.running()
    first.power_off()
    second = await host.running(seconds=30)
    second.end("crashed", "killed by signal 9")
    third = await host.running(seconds=60)
    assert len({first.id, second.id, third.id}) == 3


@pytest.mark.spec("kubermatic", 41)
@played
async def test_manual_starts_on_request(host: FakeHost, /) -> None:
    await begin(host, "Manual")
    await settle(600)
    assert await host.status() == "Stopped" and await host.vmi() == {} == await volume(host)
    # What the verb "start" writes.
    start = merge_patch({"status": {"stateChangeRequests": [{"action": "Start"}]}})
    for _ in range(2):
        await host.api.client().patch(MACHINE_DATA, Key("default", "web"), start, WriteOptions(subresource="status"))
        (await host.running(seconds=30)).power_off()
        await settle(600)
        assert await host.status() == "Stopped"


@pytest.mark.spec("kubermatic", 42)
@pytest.mark.parametrize("end", ["power off", "crash"])
@played
async def test_once_is_once(host: FakeHost, /, end: str) -> None:
    await begin(host, "Once")
    ran = await host.running()
    if end == "crash":
        ran.end("crashed", "killed by signal 9")
    else:
        ran.power_off()
    await settle(600)
    assert await host.status() == "Stopped" and len(tuple(host.engine.machines)) <= 1
    assert all(each.id == ran.id for each in host.engine.machines)
