"""Cases about reconfiguration and disks."""

import msgspec

from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.conformance.case import ConformanceCase
from paddock.contract.conformance.context import CaseMachine, ConformanceContext
from paddock.contract.errors import ErrorKind, ProviderError

_GIB = 1 << 30
_HOT = payloads.PerformancePayload(cpu_hot_add_enabled=True, memory_hot_add_enabled=True)


async def _expect_sizes(context: ConformanceContext, machine: CaseMachine, cpu: int, memory_mib: int) -> None:
    async def observed() -> tuple[int, int]:
        entry = await context.listed(machine)
        return entry.cpu, entry.memory_mib

    await context.expect("CPUs and MiB of memory in ListVMs", observed, (cpu, memory_mib))


async def _stopped(context: ConformanceContext, disks: tuple[payloads.DiskPayload, ...] = ()) -> CaseMachine:
    machine = await context.create(context.request(disks_json=payloads.encode_list(disks)))
    await context.power(machine, m.PowerOp.OFF)
    return machine


async def _offline(context: ConformanceContext) -> None:
    machine = await _stopped(context)
    cpu, memory = context.settings.cpu + 1, context.settings.memory_mib * 2
    await context.reconfigure(machine, context.hardware(cpu=cpu, memory_mib=memory))
    await _expect_sizes(context, machine, cpu, memory)
    await context.reconfigure(machine, context.hardware())
    await _expect_sizes(context, machine, context.settings.cpu, context.settings.memory_mib)


async def _online(context: ConformanceContext) -> None:
    machine = await context.create(context.request(hardware=context.hardware(performance_profile=_HOT)))
    await context.power(machine, m.PowerOp.ON)
    cpu, memory = context.settings.cpu + 1, context.settings.memory_mib * 2
    await context.reconfigure(machine, context.hardware(cpu=cpu, memory_mib=memory, performance_profile=_HOT))
    await _expect_sizes(context, machine, cpu, memory)
    await context.expect_power(machine, "On")


async def _honest(context: ConformanceContext) -> None:
    """A running machine that shrinks: it has shrunk, the call is refused, or Describe says that a restart is required."""
    cpu, memory = context.settings.cpu + 1, context.settings.memory_mib * 2
    machine = await context.create(context.request(hardware=context.hardware(cpu=cpu, memory_mib=memory)))
    await context.power(machine, m.PowerOp.ON)
    desired = context.desired(machine.request, hardware=context.hardware())
    wanted = (cpu, memory)
    try:
        response = await context.provider.reconfigure(m.ReconfigureRequest(id=machine.id, desired_json=desired))
        failed = await context.outcome("Reconfigure", response.task)
        if not failed and not await _awaits_restart(context, machine):
            wanted = (context.settings.cpu, context.settings.memory_mib)
    except ProviderError as error:
        context.check(error.kind is not ErrorKind.INTERNAL, "a change that needs a stopped machine is no internal error", str(error))
    await _expect_sizes(context, machine, *wanted)


async def _awaits_restart(context: ConformanceContext, machine: CaseMachine) -> bool:
    raw = (await context.describe(machine)).provider_raw_json
    try:
        return msgspec.json.decode(raw or "{}", type=dict[str, str]).get("restartRequired") == "true"
    except msgspec.MsgspecError:
        return False


async def _same(context: ConformanceContext) -> None:
    machine = await context.create()
    await context.power(machine, m.PowerOp.ON)
    await context.reconfigure(machine, context.hardware())
    await context.expect_power(machine, "On")
    await _expect_sizes(context, machine, context.settings.cpu, context.settings.memory_mib)


# --- disks ----------------------------------------------------------------------------------------------------------------


def _data(size_gib: int) -> tuple[payloads.DiskPayload, ...]:
    return (payloads.DiskPayload(name="data", size_gib=size_gib),)


async def _disk_sizes(context: ConformanceContext, machine: CaseMachine) -> list[int]:
    return sorted(each.size_gib for each in (await context.listed(machine)).disks)


async def _info(context: ConformanceContext) -> None:
    machine = await context.create()
    primary = await context.disk(machine)
    context.check(primary.virtual_size_bytes > 0, "the primary disk has no size")
    context.check(primary.format, "the primary disk has no format")
    least = context.settings.disk_gib * _GIB
    context.check(
        primary.virtual_size_bytes >= least, f"the primary disk has {primary.virtual_size_bytes} bytes", f"the class asks for {least}"
    )
    context.check(primary.disk_id, "the primary disk has no id")
    by_id = await context.disk(machine, primary.disk_id)
    context.check(by_id.virtual_size_bytes == primary.virtual_size_bytes, "a disk's id leads to another disk")
    call = context.disk(machine, f"{context.run}-missing")
    await context.refused("GetDiskInfo of a missing disk", call, ErrorKind.NOT_FOUND, ErrorKind.INVALID_SPEC)


async def _grow_root(context: ConformanceContext) -> None:
    machine = await _stopped(context)
    await _grow(context, machine)


async def _grow_root_online(context: ConformanceContext) -> None:
    machine = await context.create()
    await context.power(machine, m.PowerOp.ON)
    await _grow(context, machine)
    await context.expect_power(machine, "On")


async def _grow(context: ConformanceContext, machine: CaseMachine) -> None:
    size = (await context.disk(machine)).virtual_size_bytes
    gib = -(-size // _GIB) + 1
    await context.reconfigure(machine, context.hardware(disk_defaults=payloads.DiskDefaultsPayload(size_gib=gib)))

    async def observed() -> int:
        return (await context.disk(machine)).virtual_size_bytes

    await context.expect("the size of the primary disk", observed, gib * _GIB)


async def _add(context: ConformanceContext) -> None:
    machine = await _stopped(context)
    before = await _disk_sizes(context, machine)
    await context.reconfigure(machine, context.hardware(), _data(3))
    await context.expect("the disks' sizes in GiB", lambda: _disk_sizes(context, machine), sorted([*before, 3]))


async def _grow_data(context: ConformanceContext) -> None:
    machine = await _stopped(context, _data(3))
    before = await _disk_sizes(context, machine)
    context.check(3 in before, "Create did not make the data disk")
    before.remove(3)
    await context.reconfigure(machine, context.hardware(), _data(5))
    await context.expect("the disks' sizes in GiB", lambda: _disk_sizes(context, machine), sorted([*before, 5]))


async def _keep(context: ConformanceContext) -> None:
    machine = await _stopped(context, _data(3))
    before = await _disk_sizes(context, machine)
    context.check(3 in before, "Create did not make the data disk")
    await context.reconfigure(machine, context.hardware(cpu=context.settings.cpu + 1), _data(3))
    await _expect_sizes(context, machine, context.settings.cpu + 1, context.settings.memory_mib)
    after = await _disk_sizes(context, machine)
    context.check(after == before, "a change of the CPUs changed the disks", f"from {before} to {after} GiB")


async def _shrink(context: ConformanceContext) -> None:
    machine = await _stopped(context, _data(3))
    before = await _disk_sizes(context, machine)
    context.check(3 in before, "Create did not make the data disk")
    desired = context.desired(machine.request, hardware=context.hardware(), disks=_data(1))
    call = context.provider.reconfigure(m.ReconfigureRequest(id=machine.id, desired_json=desired))
    await context.refused("a disk that shrinks", call)
    after = await _disk_sizes(context, machine)
    context.check(after == before, "the refused change changed the disks", f"from {before} to {after} GiB")


CASES = (
    ConformanceCase(name="reconfigure-offline", text="CPUs and memory of a stopped machine grow and shrink", run=_offline),
    ConformanceCase(
        name="reconfigure-online",
        text="CPUs and memory of a running machine grow",
        run=_online,
        needs=("supports_reconfigure_online",),
    ),
    ConformanceCase(name="reconfigure-honest", text="A change that is not applied is not reported as success", run=_honest),
    ConformanceCase(name="reconfigure-same", text="An unchanged state is success and changes nothing", run=_same),
    ConformanceCase(name="disk-info", text="GetDiskInfo has the primary disk and refuses an unknown one", run=_info, optional=True),
    ConformanceCase(name="disk-grow", text="The primary disk of a stopped machine grows", run=_grow_root, optional=True),
    ConformanceCase(
        name="disk-grow-online",
        text="The primary disk of a running machine grows",
        run=_grow_root_online,
        needs=("supports_disk_expansion_online",),
    ),
    ConformanceCase(name="disk-add", text="A new disk is attached", run=_add, optional=True),
    ConformanceCase(name="disk-grow-data", text="A data disk grows", run=_grow_data, optional=True),
    ConformanceCase(name="disk-keep", text="Other changes leave the data disks alone", run=_keep, optional=True),
    ConformanceCase(name="disk-shrink", text="A disk that shrinks is refused", run=_shrink, optional=True),
)
