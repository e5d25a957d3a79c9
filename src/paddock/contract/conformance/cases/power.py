import asyncio

from paddock.contract import messages as m
from paddock.contract.conformance.case import ConformanceCase
from paddock.contract.conformance.context import CaseMachine, ConformanceContext
from paddock.contract.errors import ErrorKind

_TIMEOUT = 3
# A forced stop needs a moment, too.
_FORCED = 30.0


async def _running(context: ConformanceContext, suffix: str = "") -> CaseMachine:
    machine = await context.create(context.request(name=context.name(suffix)))
    await context.power(machine, m.PowerOp.ON)
    await context.expect_power(machine, "On")
    return machine


async def _on(context: ConformanceContext) -> None:
    machine = await _running(context)
    entry = await context.listed(machine)
    context.check(entry.power_state == "On", f"ListVMs has the power state {entry.power_state!r}", "Describe has On")
    await context.power(machine, m.PowerOp.ON)
    await context.expect_power(machine, "On")


async def _off(context: ConformanceContext) -> None:
    machine = await _running(context)
    await context.power(machine, m.PowerOp.OFF)
    await context.expect_power(machine, "Off")
    await context.power(machine, m.PowerOp.OFF)
    await context.expect_power(machine, "Off")


async def _again(context: ConformanceContext) -> None:
    machine = await _running(context)
    for op, state in ((m.PowerOp.OFF, "Off"), (m.PowerOp.ON, "On"), (m.PowerOp.OFF, "Off")):
        await context.power(machine, op)
        await context.expect_power(machine, state)


async def _reboot(context: ConformanceContext) -> None:
    machine = await _running(context)
    await context.power(machine, m.PowerOp.REBOOT)
    await context.expect_power(machine, "On")


async def _graceful(context: ConformanceContext) -> None:
    machine = await _running(context)
    await context.power(machine, m.PowerOp.SHUTDOWN_GRACEFUL, seconds=_TIMEOUT)
    await context.expect_power(machine, "Off")


async def _graceful_off(context: ConformanceContext) -> None:
    machine = await context.create()
    await context.power(machine, m.PowerOp.OFF)
    await context.power(machine, m.PowerOp.SHUTDOWN_GRACEFUL, seconds=_TIMEOUT)
    await context.expect_power(machine, "Off")


async def _forced(context: ConformanceContext) -> None:
    machine = await _running(context, suffix="-hang")
    start = asyncio.get_running_loop().time()
    await context.power(machine, m.PowerOp.SHUTDOWN_GRACEFUL, seconds=_TIMEOUT)
    await context.expect_power(machine, "Off")
    seconds = asyncio.get_running_loop().time() - start
    context.check(seconds < _TIMEOUT + _FORCED, f"the forced end came after {seconds:.0f} s", f"the timeout is {_TIMEOUT} s")


async def _unspecified(context: ConformanceContext) -> None:
    machine = await context.create()
    before = (await context.describe(machine)).power_state
    call = context.provider.power(m.PowerRequest(id=machine.id, op=m.PowerOp.UNSPECIFIED))
    await context.refused("Power without an operation", call, ErrorKind.INVALID_SPEC)
    await context.expect_power(machine, before)


CASES = (
    ConformanceCase(name="power-on", text="ON starts a machine; a second ON is success", run=_on),
    ConformanceCase(name="power-off", text="OFF stops a machine; a second OFF is success", run=_off),
    ConformanceCase(name="power-cycle", text="A machine starts and stops again and again", run=_again),
    ConformanceCase(name="power-reboot", text="REBOOT leaves a machine running", run=_reboot),
    ConformanceCase(name="power-graceful", text="SHUTDOWN_GRACEFUL ends with the machine off", run=_graceful),
    ConformanceCase(name="power-graceful-off", text="SHUTDOWN_GRACEFUL of a stopped machine is success", run=_graceful_off),
    ConformanceCase(name="power-graceful-forced", text="A guest that ignores the shutdown is off soon after the timeout", run=_forced),
    ConformanceCase(name="power-unspecified", text="Power without an operation is InvalidSpec", run=_unspecified),
)
