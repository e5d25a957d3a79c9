"""Cases about snapshots and clones."""

from paddock.contract import messages as m
from paddock.contract.conformance.case import ConformanceCase
from paddock.contract.conformance.context import CaseMachine, ConformanceContext
from paddock.contract.errors import ErrorKind, ProviderError

_SNAPSHOTS = ("supports_snapshots",)
_MEMORY = ("supports_snapshots", "supports_memory_snapshots")
_LINKED = ("supports_linked_clones",)


async def _take(context: ConformanceContext, machine: CaseMachine, name: str = "before", *, memory: bool = False) -> str:
    request = m.SnapshotCreateRequest(vm_id=machine.id, name_hint=name, include_memory=memory, description="of the conformance suite")
    response = await context.provider.snapshot_create(request)
    context.check(response.snapshot_id, "SnapshotCreate answers without an id")
    await context.finish("SnapshotCreate", response.task)
    return response.snapshot_id


async def _count(context: ConformanceContext, machine: CaseMachine) -> int:
    return len((await context.disk(machine)).snapshots)


async def _expect_count(context: ConformanceContext, machine: CaseMachine, wanted: int) -> None:
    async def observed() -> int:
        return await _count(context, machine)

    await context.expect("the number of snapshots in GetDiskInfo", observed, wanted)


async def _create(context: ConformanceContext) -> None:
    machine = await context.create()
    await _expect_count(context, machine, 0)
    first = await _take(context, machine)
    await _expect_count(context, machine, 1)
    # A provider may take a repeated name for a repeated call.
    second = await _take(context, machine, "later")
    context.check(first != second, "two snapshots have one id")
    await _expect_count(context, machine, 2)


async def _memory(context: ConformanceContext) -> None:
    machine = await context.create()
    await context.power(machine, m.PowerOp.ON)
    snapshot = await _take(context, machine, memory=True)
    await _expect_count(context, machine, 1)
    await context.expect_power(machine, "On")
    await context.power(machine, m.PowerOp.OFF)
    await _revert_to(context, machine, snapshot)
    await context.expect_power(machine, "On")


async def _revert_to(context: ConformanceContext, machine: CaseMachine, snapshot: str) -> None:
    response = await context.provider.snapshot_revert(m.SnapshotRevertRequest(vm_id=machine.id, snapshot_id=snapshot))
    await context.finish("SnapshotRevert", response.task)


async def _revert(context: ConformanceContext) -> None:
    machine = await context.create()
    await context.power(machine, m.PowerOp.OFF)
    snapshot = await _take(context, machine)
    await context.reconfigure(machine, context.hardware(cpu=context.settings.cpu + 1))
    await _revert_to(context, machine, snapshot)

    async def observed() -> int:
        return (await context.listed(machine)).cpu

    await context.expect("the number of CPUs after SnapshotRevert", observed, context.settings.cpu)
    await _expect_count(context, machine, 1)


async def _delete(context: ConformanceContext) -> None:
    machine = await context.create()
    snapshot = await _take(context, machine)
    await _expect_count(context, machine, 1)
    response = await context.provider.snapshot_delete(m.SnapshotDeleteRequest(vm_id=machine.id, snapshot_id=snapshot))
    await context.finish("SnapshotDelete", response.task)
    await _expect_count(context, machine, 0)
    context.check((await context.describe(machine)).exists, "SnapshotDelete deleted the machine")


async def _unknown(context: ConformanceContext) -> None:
    machine = await context.create()
    missing = f"{context.run}-missing"
    call = context.provider.snapshot_revert(m.SnapshotRevertRequest(vm_id=machine.id, snapshot_id=missing))
    await context.refused("SnapshotRevert to a missing snapshot", call, ErrorKind.NOT_FOUND)
    try:
        response = await context.provider.snapshot_delete(m.SnapshotDeleteRequest(vm_id=machine.id, snapshot_id=missing))
        await context.finish("SnapshotDelete", response.task)
    except ProviderError as error:
        context.check(
            error.kind is ErrorKind.NOT_FOUND, "deleting a missing snapshot must succeed, or be NotFound", f"it is {error.kind}: {error}"
        )


# --- clones ---------------------------------------------------------------------------------------------------------------


async def _cloned(context: ConformanceContext, source: CaseMachine, *, linked: bool = False, name: str = "") -> CaseMachine:
    name = name or context.name()
    target = m.ObjectIdentity(namespace="conformance", name=name)
    request = m.CloneRequest(source_vm_id=source.id, target_name=name, linked=linked, target_vm=target)
    response = await context.provider.clone(request)
    context.check(response.target_vm_id, "Clone answers without an id")
    context.note(response.target_vm_id)
    await context.finish("Clone", response.task)
    return CaseMachine(response.target_vm_id, context.request(name=name))


async def _source(context: ConformanceContext) -> CaseMachine:
    machine = await context.create()
    await context.power(machine, m.PowerOp.OFF)
    return machine


async def _check_clone(context: ConformanceContext, source: CaseMachine, clone: CaseMachine) -> None:
    context.check(clone.id != source.id, "the clone has the id of its source")
    context.check((await context.describe(clone)).exists, "Describe does not have the clone")
    entry, original = await context.listed(clone), await context.listed(source)
    context.check(entry.name == clone.name, f"the clone is named {entry.name!r}", f"it must be {clone.name!r}")
    context.check((entry.cpu, entry.memory_mib) == (original.cpu, original.memory_mib), "the clone has other hardware than its source")
    context.check(
        len(entry.disks) == len(original.disks), f"the clone has {len(entry.disks)} disks", f"its source has {len(original.disks)}"
    )
    shared = {each.path for each in entry.disks if each.path} & {each.path for each in original.disks}
    context.check(not shared, "the clone has a disk of its source", ", ".join(sorted(shared)))


async def _full(context: ConformanceContext) -> None:
    source = await _source(context)
    clone = await _cloned(context, source)
    await _check_clone(context, source, clone)
    await context.power(clone, m.PowerOp.ON)
    await context.expect_power(clone, "On")
    await context.expect_power(source, "Off")
    await context.delete(source)
    context.check((await context.describe(clone)).exists, "a full clone went with its source")


async def _linked(context: ConformanceContext) -> None:
    source = await _source(context)
    clone = await _cloned(context, source, linked=True)
    await _check_clone(context, source, clone)
    await context.delete(clone)
    context.check((await context.describe(source)).exists, "the source went with its linked clone")


async def _twice(context: ConformanceContext) -> None:
    source = await _source(context)
    clone = await _cloned(context, source)
    try:
        again = await _cloned(context, source, name=clone.name)
    except ProviderError as error:
        context.check(
            error.kind is ErrorKind.CONFLICT,
            "a repeated Clone must give the same machine, or be a Conflict",
            f"it is {error.kind}: {error}",
        )
    else:
        context.check(again.id == clone.id, "a repeated Clone made another machine", f"ids {clone.id} and {again.id}")
    found = await context.find(lambda each: each.name == clone.name)
    context.check(len(found) == 1, f"ListVMs has {len(found)} machines named {clone.name}", "there must be one")


async def _orphaned(context: ConformanceContext) -> None:
    if not context.features:
        raise context.skip("a provider without extension features does not promise it")
    source = await _source(context)
    clone = await _cloned(context, source)
    await context.delete(source)
    again = await _cloned(context, source, name=clone.name)
    context.check(again.id == clone.id, "a repeated Clone does not find its machine when the source is gone", f"ids {clone.id}, {again.id}")
    other = m.CloneRequest(
        source_vm_id=source.id, target_name=context.name(), target_vm=m.ObjectIdentity(namespace="conformance", name="x")
    )
    await context.refused("a clone of a machine that is gone", context.provider.clone(other), ErrorKind.NOT_FOUND)


async def _foreign_name(context: ConformanceContext) -> None:
    source, other = await _source(context), await context.create()
    target = m.ObjectIdentity(namespace="conformance", name="somebody-else")
    call = context.provider.clone(m.CloneRequest(source_vm_id=source.id, target_name=other.name, target_vm=target))
    await context.refused("a clone under the name of another owner's machine", call, ErrorKind.CONFLICT)
    context.check((await context.describe(other)).exists, "the refused clone deleted the other machine")


CASES = (
    ConformanceCase(name="snapshot-create", text="SnapshotCreate takes snapshots that GetDiskInfo counts", run=_create, needs=_SNAPSHOTS),
    ConformanceCase(name="snapshot-memory", text="A snapshot with memory brings a machine back running", run=_memory, needs=_MEMORY),
    ConformanceCase(name="snapshot-revert", text="SnapshotRevert brings back the machine's hardware", run=_revert, needs=_SNAPSHOTS),
    ConformanceCase(name="snapshot-delete", text="SnapshotDelete removes a snapshot and nothing else", run=_delete, needs=_SNAPSHOTS),
    ConformanceCase(name="snapshot-unknown", text="A missing snapshot is NotFound", run=_unknown, needs=_SNAPSHOTS),
    ConformanceCase(name="clone-full", text="A clone has its own disks and survives its source", run=_full, optional=True),
    ConformanceCase(name="clone-linked", text="A linked clone leaves its source alone", run=_linked, needs=_LINKED),
    ConformanceCase(name="clone-twice", text="A repeated Clone makes one machine", run=_twice, optional=True),
    ConformanceCase(name="clone-orphaned", text="A repeated Clone finds its machine when the source is gone", run=_orphaned, optional=True),
    ConformanceCase(name="clone-conflict", text="A clone under another owner's name is a Conflict", run=_foreign_name, optional=True),
)
