"""Run by test_added_field, with a copy of the program whose Machine has the field `tint`."""

import asyncio

from tests.coroutines import played
from tests.scenario.fronts.vitistack.conftest import Vitistack, machine


@played
async def test_an_event_names_the_field(host: Vitistack, /) -> None:
    await host.make(machine(resources={"cpu": {"cores": 2, "tint": "red"}}))
    await host.up()
    assert (await host.events("web", "Machine")).count("FieldsIgnored") == 1
    await asyncio.sleep(120)
    assert (await host.events("web", "Machine")).count("FieldsIgnored") == 1
