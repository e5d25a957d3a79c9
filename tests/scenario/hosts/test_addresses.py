"""Machines keep their addresses as long as they exist."""

import asyncio

import pytest

from tests.coroutines import played
from tests.kit.engine.fakehost import FakeHost, machine


async def addresses(host: FakeHost, name: str) -> list[tuple[str, str, str]]:
    """Return the reported cards of a running machine."""
    await host.running(name)
    return [(each["name"], each["mac"], each["ipAddress"]) for each in (await host.vmi(name))["status"]["interfaces"]]


@pytest.mark.spec("kubevirt", 34)
@played
async def test_addresses_stay_over_stops_starts_and_restarts(host: FakeHost, /) -> None:
    names = ("one", "two")
    for name in names:
        await host.make(machine(name))
    before = {name: await addresses(host, name) for name in names}
    assert len({each[1:] for cards in before.values() for each in cards}) == 2
    # The first is stopped, and a third comes in between: it gets others.
    await host.change("one", {"spec": {"runStrategy": "Halted"}})
    await asyncio.sleep(60)
    assert await host.vmi("one") == {}
    await host.make(machine("three"))
    third = await addresses(host, "three")
    assert third[0][1:] not in [each[1:] for cards in before.values() for each in cards]
    await host.again()
    await host.change("one", {"spec": {"runStrategy": "Always"}})
    assert {name: await addresses(host, name) for name in names} == before
    await host.again()
    assert {name: await addresses(host, name) for name in (*names, "three")} == {**before, "three": third}
    # A crash is a new run of the same machine.
    (await host.running("two")).crash("it")
    assert await addresses(host, "two") == before["two"]
