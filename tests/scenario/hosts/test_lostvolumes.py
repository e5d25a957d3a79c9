"""A disk that is gone: its machine is held, and no blank disk takes its place, until the disk is there again."""

import asyncio

import pytest

from tests.coroutines import played
from tests.kit.engine.fakehost import FakeHost
from tests.scenario.hosts.snapshotting import web


async def _lose(host: FakeHost) -> dict[str, object]:
    """End the server, and start it when its volumes are out of reach: a file system is not mounted, or an old store was restored."""
    await host.change("web", {"spec": {"runStrategy": "Halted"}})
    await asyncio.sleep(300)
    assert await host.status() == "Stopped"
    await host.end()
    kept: dict[str, object] = dict(host.engine.volumes.volumes)
    assert len(kept) == 1
    host.engine.volumes.volumes.clear()
    await host.begin()
    return kept


@pytest.mark.spec("kubevirt", 131)
@played
async def test_a_machine_whose_disk_is_gone_is_held_until_it_is_there_again(host: FakeHost, /) -> None:
    await web(host)
    await host.running()
    kept = await _lose(host)
    await asyncio.sleep(10)
    claim = await host.get("PersistentVolumeClaim", "v1", "disk")
    name = claim["spec"]["volumeName"]
    assert claim["status"]["phase"] == "Lost" and name in claim["status"]["conditions"][0]["message"]
    assert (await host.events("disk")).count("ClaimLost") == 1
    source = (await host.get("DataVolume", "cdi.kubevirt.io/v1beta1", "disk"))["status"]
    said = {each["type"]: (each["status"], each.get("reason")) for each in source["conditions"]}
    assert source["phase"] == "Succeeded"
    assert said["Bound"] == ("False", "ClaimLost") and said["Ready"] == ("False", "ClaimLost")

    await host.change("web", {"spec": {"runStrategy": "Always"}})
    await asyncio.sleep(120)
    assert (await host.status(), host.engine.volumes.ids()) == ("ErrorPvcNotFound", set())
    conditions = {each["type"]: each for each in (await host.vmi())["status"]["conditions"]}
    assert conditions["Synchronized"]["reason"] == "FailedPvcNotFound" and name in conditions["Synchronized"]["message"]
    assert conditions["Ready"]["reason"] == "VolumeLost"

    host.engine.volumes.volumes.update(kept)  # type: ignore[arg-type]  # what was there before
    await asyncio.sleep(60)
    assert (await host.status(), host.engine.volumes.ids()) == ("Running", set(kept))
    claim = await host.get("PersistentVolumeClaim", "v1", "disk")
    assert claim["status"]["phase"] == "Bound" and "conditions" not in claim["status"]
    source = (await host.get("DataVolume", "cdi.kubevirt.io/v1beta1", "disk"))["status"]
    assert {each["type"]: each["status"] for each in source["conditions"]} == {"Bound": "True", "Ready": "True", "Running": "False"}


@played
async def test_a_lost_disk_that_is_given_up_goes_with_its_claim(host: FakeHost, /) -> None:
    await web(host)
    await host.running()
    await _lose(host)
    await host.delete("VirtualMachine", "kubevirt.io/v1", "web")
    await asyncio.sleep(60)
    await web(host)
    await asyncio.sleep(30)
    assert await host.status() == "Running" and len(host.engine.volumes.ids()) == 1
