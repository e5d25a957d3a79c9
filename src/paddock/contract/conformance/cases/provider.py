"""Cases about the provider itself: validation, capabilities, lists, tasks."""

import asyncio

from paddock.contract import messages as m
from paddock.contract.conformance.case import ConformanceCase
from paddock.contract.conformance.context import POWER_STATES, ConformanceContext

_QUICK = 5.0


async def _validate(context: ConformanceContext) -> None:
    response = await context.provider.validate(m.ValidateRequest())
    context.check(response.ok, "Validate says that the provider is not ready", response.message)


async def _capabilities(context: ConformanceContext) -> None:
    can = await context.provider.get_capabilities(m.GetCapabilitiesRequest())
    context.check(can == context.capabilities, "GetCapabilities gives two different answers")
    context.check(can.supports_snapshots or not can.supports_memory_snapshots, "memory snapshots need snapshots")
    for direction, supported in (("export", can.supports_disk_export), ("import", can.supports_disk_import)):
        formats = getattr(can, f"supported_{direction}_formats")
        context.check(
            bool(formats) == supported, f"supports_disk_{direction} is {supported}", f"supported_{direction}_formats is {list(formats)}"
        )


async def _list(context: ConformanceContext) -> None:
    machine = await context.create()
    entries = await context.find(lambda each: True)
    ids = [each.id for each in entries]
    context.check(machine.id in ids, f"ListVMs does not have machine {machine.id}")
    context.check(all(ids), "ListVMs has an entry without an id")
    context.check(len(ids) == len(set(ids)), "ListVMs has two entries with one id")
    for each in entries:
        context.check(
            each.power_state in POWER_STATES, f"the power state of {each.id} is {each.power_state!r}", f"it must be one of {POWER_STATES}"
        )
        context.check(each.cpu >= 0 and each.memory_mib >= 0, f"machine {each.id} has negative hardware")


async def _task_empty(context: ConformanceContext) -> None:
    for task in (None, m.TaskRef()):
        status = await context.provider.task_status(m.TaskStatusRequest(task=task))
        context.check(status.done and not status.error, "a task without an id stands for work that is done", f"TaskStatus answers {status}")


async def _task_unknown(context: ConformanceContext) -> None:
    status = await context.provider.task_status(m.TaskStatusRequest(task=m.TaskRef(id=f"{context.run}-unknown")))
    context.check(status.done or status.error, "an unknown task must have ended", "a caller would wait for it without end")


async def _answers_while_busy(context: ConformanceContext) -> None:
    creates = [asyncio.create_task(_created(context)) for _ in range(3)]
    try:
        for _ in range(5):
            start = asyncio.get_running_loop().time()
            await context.provider.validate(m.ValidateRequest())
            await context.provider.list_vms(m.ListVMsRequest())
            seconds = asyncio.get_running_loop().time() - start
            context.check(seconds < _QUICK, "Validate and ListVMs wait for other calls", f"they took {seconds:.1f} s")
            await asyncio.sleep(context.settings.poll_seconds)
    finally:
        # A machine whose create is cancelled would be nobody's.
        failures = [each for each in await asyncio.gather(*creates, return_exceptions=True) if each is not None]
    for each in failures:
        raise each


async def _created(context: ConformanceContext) -> None:
    await context.create()


CASES = (
    ConformanceCase(name="validate", text="Validate says that the hypervisor can be reached", run=_validate),
    ConformanceCase(name="capabilities", text="GetCapabilities is stable and does not contradict itself", run=_capabilities),
    ConformanceCase(name="list", text="ListVMs has every machine once, with a known power state", run=_list),
    ConformanceCase(name="task-empty", text="A task without an id is done", run=_task_empty),
    ConformanceCase(name="task-unknown", text="An unknown task has ended", run=_task_unknown),
    ConformanceCase(name="answers-while-busy", text="Machines being created hold up no other call", run=_answers_while_busy),
)
