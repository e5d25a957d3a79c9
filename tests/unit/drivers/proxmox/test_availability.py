"""Machines under high availability: the HA manager starts and stops them, some seconds after a call's task has ended."""

import pytest

from paddock.contract import messages as m
from paddock_drivers.proxmox.power import OFF, ON
from tests.coroutines import played_by
from tests.kit.proxmox.inventory import HaService
from tests.unit.drivers.proxmox.conftest import Stage, play


async def running(made: Stage, name: str = "web") -> str:
    """Make a machine that runs under high availability."""
    own = await made.make(made.request(name))
    await made.power(own, m.PowerOp.ON)
    made.simulator.cluster.services[number(own)] = HaService()
    return own


def number(own: str) -> int:
    return int(own.partition("/")[0])


async def state(made: Stage, own: str) -> str:
    return (await made.driver.describe(m.DescribeRequest(id=own))).power_state


@pytest.mark.spec("virtrigaud", 157)
@played_by(play)
async def test_a_machine_under_ha_goes_off_and_on_and_each_task_lasts_until_it_has(made: Stage, /) -> None:
    own = await running(made)
    await made.power(own, m.PowerOp.OFF)
    assert await state(made, own) == OFF
    await made.power(own, m.PowerOp.ON)
    assert await state(made, own) == ON
    await made.power(own, m.PowerOp.SHUTDOWN_GRACEFUL)
    assert await state(made, own) == OFF
    assert made.simulator.cluster.services[number(own)].requested == "stopped"


@played_by(play)
async def test_a_guest_under_ha_that_ignores_everybody_is_restarted(made: Stage, /) -> None:
    own = await running(made, "web-hang")
    await made.power(own, m.PowerOp.REBOOT)
    assert await state(made, own) == ON
    assert made.count("POST /nodes/pve1/qemu/100/status/stop") == 1


@pytest.mark.spec("virtrigaud", 157)
@played_by(play)
async def test_a_running_machine_under_ha_is_deleted_and_is_no_resource_afterwards(made: Stage, /) -> None:
    own = await running(made)
    assert await made.finish((await made.driver.delete(m.DeleteRequest(id=own))).task) == ""
    assert number(own) not in made.simulator.cluster.machines and not made.simulator.cluster.services


@played_by(play)
async def test_another_driver_waits_for_the_ha_manager_as_well(made: Stage, /) -> None:
    own = await running(made)
    task = (await made.driver.power(m.PowerRequest(id=own, op=m.PowerOp.OFF))).task
    made.restart()
    assert await made.finish(task) == ""
    assert await state(made, own) == OFF


@played_by(play)
async def test_a_resource_that_the_ha_manager_has_given_up_fails_and_says_what_to_do(made: Stage, /) -> None:
    own = await running(made)
    await made.power(own, m.PowerOp.OFF)
    # No node has a bridge for it any more, so the manager cannot start it.
    made.simulator.cluster.nodes["pve1"].bridges.clear()
    answer = await made.driver.power(m.PowerRequest(id=own, op=m.PowerOp.ON))
    error = await made.finish(answer.task)
    assert "state error" in error and "disable the HA resource" in error


@played_by(play)
async def test_a_machine_that_no_manager_looks_after_is_stopped_over_its_shutdown(made: Stage, /) -> None:
    own = await made.make(made.request("web-hang"))
    await made.power(own, m.PowerOp.ON)
    shutdown = await made.driver.power(m.PowerRequest(id=own, op=m.PowerOp.SHUTDOWN_GRACEFUL, graceful_timeout_seconds=600))
    await made.power(own, m.PowerOp.OFF)
    assert "interrupt" in await made.finish(shutdown.task)
