"""What many machines cost: calls and writes until they run, and at rest (docs/spec/virtrigaud.md item 113). Nothing here measures time."""

import asyncio
from collections import Counter

import pytest

from paddock_drivers.fake.settings import SecondsRange
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.rigaudharness import GROUP, Rigaud, machine, rigaud

MANY = 1000
# The provider answers when the work is done; one that answers with tasks is asked about them besides.
AT_ONCE = SecondsRange()


async def running(life: Rigaud) -> bool:
    found = (await life.api.get(f"{GROUP}/virtualmachines")).data["items"]
    ready = (any((each["type"], each["status"]) == ("Ready", "True") for each in one["status"].get("conditions") or ()) for one in found)
    return all(one["status"].get("phase") == "Running" and one["status"].get("ips") for one in found) and all(ready)


def calls(life: Rigaud) -> Counter[str]:
    found = Counter(name for name, _ in life.driver.calls)
    for name in ("Validate", "GetCapabilities", "GetFeatures"):
        found.pop(name, None)
    return found


@pytest.mark.spec("virtrigaud", 113, 114)
@timeless
async def test_a_thousand_machines() -> None:
    async with rigaud(tasks="sync", task_seconds=AT_ONCE) as life:
        await asyncio.sleep(5)
        life.driver.calls.clear()
        life.wire.writes = 0
        for number in range(MANY):
            await life.make(machine(f"web-{number}"))
        await asyncio.sleep(60)
        assert await running(life)
        assert calls(life) == {"Create": MANY, "Power": MANY, "Describe": MANY}
        # The beginning of the creation, the id, and the machine as it is. A few more count for the objects around them.
        assert 3 * MANY <= life.wire.writes <= 3 * MANY + MANY // 20
        await rests(life, describes=5)


async def rests(life: Rigaud, describes: int) -> None:
    """Each machine is described once in a poll interval of two minutes, and nothing of it is written; its Provider is checked."""
    life.wire.about = ("/virtualmachines/", "/vmclasses/", "/vmimages/", "/vmnetworkattachments/")
    await asyncio.sleep(130)
    life.driver.calls.clear()
    life.wire.requests = 0
    await asyncio.sleep(describes * 120)
    assert calls(life) == {"Describe": describes * MANY}
    assert life.wire.requests == 0
    checks = Counter(name for name, _ in life.driver.calls)["Validate"]
    assert checks == describes * 120 / 30
