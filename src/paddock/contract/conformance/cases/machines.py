"""Cases about creation, ownership, description and deletion."""

import asyncio

import msgspec

from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.conformance.case import ConformanceCase
from paddock.contract.conformance.context import POWER_STATES, CaseMachine, ConformanceContext
from paddock.contract.errors import ErrorKind, ProviderError


async def _create(context: ConformanceContext) -> None:
    machine = await context.create()
    described = await context.describe(machine)
    context.check(described.exists, "Describe does not have the machine that Create has made")
    context.check(
        described.power_state in POWER_STATES, f"the power state is {described.power_state!r}", f"it must be one of {POWER_STATES}"
    )
    entry = await context.listed(machine)
    context.check(entry.name == machine.name, f"ListVMs has the name {entry.name!r}", f"it must be {machine.name!r}")
    owner = machine.request.owner
    if m.OWNER_UID in entry.provider_raw and owner is not None:
        context.check(entry.provider_raw[m.OWNER_UID] == owner.uid, "ListVMs names another owner", entry.provider_raw[m.OWNER_UID])
    sizes = (entry.cpu, entry.memory_mib)
    wanted = (context.settings.cpu, context.settings.memory_mib)
    context.check(sizes == wanted, f"the machine has {sizes[0]} CPUs and {sizes[1]} MiB", f"Create asked for {wanted[0]} and {wanted[1]}")


async def _describe_raw(context: ConformanceContext) -> None:
    machine = await context.create()
    raw = (await context.describe(machine)).provider_raw_json
    context.provider.check_text("provider_raw_json", raw)
    if raw:
        try:
            msgspec.json.decode(raw, type=dict[str, str])
        except msgspec.MsgspecError as error:
            context.check(False, "provider_raw_json must be an object of strings", str(error))


async def _create_disks(context: ConformanceContext) -> None:
    plain = await context.listed(await context.create())
    disks = (payloads.DiskPayload(name="data", size_gib=1), payloads.DiskPayload(name="logs", size_gib=2))
    machine = await context.create(context.request(disks_json=payloads.encode_list(disks)))
    entry = await context.listed(machine)
    context.check(
        len(entry.disks) == len(plain.disks) + 2, f"the machine has {len(entry.disks)} disks", f"it must have {len(plain.disks) + 2}"
    )
    sizes = sorted(each.size_gib for each in entry.disks)
    missing = [each.size_gib for each in disks if each.size_gib not in sizes]
    context.check(not missing, f"no disk has the size of {missing} GiB", f"the sizes are {sizes}")


async def _same_owner(context: ConformanceContext) -> None:
    machine = await context.create()
    again = await context.provider.create(machine.request)
    context.note(again.id)
    await context.finish("Create", again.task)
    context.check(again.id == machine.id, "a repeated Create made another machine", f"ids {machine.id} and {again.id}")
    await _one(context, machine.name)


async def _same_owner_at_once(context: ConformanceContext) -> None:
    request = context.request()
    responses = await asyncio.gather(*(context.provider.create(request) for _ in range(4)), return_exceptions=True)
    made = [each for each in responses if isinstance(each, m.CreateResponse)]
    for each in made:
        context.note(each.id)
    # A provider may ask for patience, but one of the calls has to succeed.
    for failed in (each for each in responses if isinstance(each, BaseException)):
        if not (isinstance(failed, ProviderError) and failed.kind in (ErrorKind.UNAVAILABLE, ErrorKind.RATE_LIMIT)):
            raise failed
    context.check(made, "none of four equal creates at once succeeded")
    for each in made:
        await context.finish("Create", each.task)
    context.check(
        len({each.id for each in made}) == 1, "equal creates at once made several machines", str(sorted(each.id for each in made))
    )
    await _one(context, request.name)


async def _one(context: ConformanceContext, name: str) -> None:
    found = await context.find(lambda each: each.name == name)
    context.check(len(found) == 1, f"ListVMs has {len(found)} machines named {name}", "there must be one")


async def _conflict(context: ConformanceContext) -> None:
    machine = await context.create()
    stranger = m.ObjectIdentity(uid=f"uid-other-{machine.name}", namespace="other", name=machine.name)
    hardware = context.hardware(cpu=context.settings.cpu + 1)
    request = context.request(name=machine.name, hardware=hardware, owner=stranger)
    await context.refused("a create under the name of another owner's machine", context.provider.create(request), ErrorKind.CONFLICT)
    await _one(context, machine.name)
    entry = await context.listed(machine)
    context.check(entry.cpu == context.settings.cpu, "the refused create changed the other owner's machine")


async def _delete(context: ConformanceContext) -> None:
    machine = await context.create()
    await context.delete(machine)
    await _is_gone(context, machine)
    again = await context.create(context.request(name=machine.name, owner=m.ObjectIdentity(uid=f"new-{machine.name}")))
    context.check((await context.describe(again)).exists, "a deleted machine's name cannot be used again")


async def _delete_running(context: ConformanceContext) -> None:
    machine = await context.create()
    await context.power(machine, m.PowerOp.ON)
    await context.delete(machine)
    await _is_gone(context, machine)


async def _is_gone(context: ConformanceContext, machine: CaseMachine) -> None:
    async def exists() -> bool:
        return (await context.describe(machine)).exists

    await context.expect("`exists` of a deleted machine", exists, False)
    context.check(not await context.find(lambda each: each.id == machine.id), "ListVMs has a deleted machine")


async def _delete_missing(context: ConformanceContext) -> None:
    machine = await context.create()
    await context.delete(machine)
    try:
        await context.delete(machine)
    except ProviderError as error:
        context.check(
            error.kind is ErrorKind.NOT_FOUND, "deleting what is gone must succeed, or be NotFound", f"it is {error.kind}: {error}"
        )


async def _describe_missing(context: ConformanceContext) -> None:
    try:
        response = await context.provider.describe(m.DescribeRequest(id=f"{context.run}-missing"))
    except ProviderError as error:
        context.check(False, "Describe of a missing machine must answer with `exists` false", f"it is {error.kind}: {error}")
    else:
        context.check(not response.exists, "Describe has a machine that nobody made")


async def _unknown_machine(context: ConformanceContext) -> None:
    missing, provider = f"{context.run}-missing", context.provider
    desired = context.desired(context.request(), hardware=context.hardware())
    await context.refused("Power of a missing machine", provider.power(m.PowerRequest(id=missing, op=m.PowerOp.ON)), ErrorKind.NOT_FOUND)
    reconfigure = provider.reconfigure(m.ReconfigureRequest(id=missing, desired_json=desired))
    await context.refused("Reconfigure of a missing machine", reconfigure, ErrorKind.NOT_FOUND)
    optional = (ErrorKind.NOT_FOUND, ErrorKind.NOT_SUPPORTED)
    clone = provider.clone(m.CloneRequest(source_vm_id=missing, target_name=context.name()))
    await context.refused("Clone of a missing machine", clone, *optional)
    await context.refused("GetDiskInfo of a missing machine", provider.get_disk_info(m.GetDiskInfoRequest(vm_id=missing)), *optional)
    snapshot = provider.snapshot_create(m.SnapshotCreateRequest(vm_id=missing, name_hint="none"))
    await context.refused("SnapshotCreate of a missing machine", snapshot, *optional)


CASES = (
    ConformanceCase(name="create", text="Create makes a machine that Describe and ListVMs have, with its hardware", run=_create),
    ConformanceCase(name="describe-raw", text="provider_raw_json is an object of strings, without user data", run=_describe_raw),
    ConformanceCase(name="create-disks", text="Create makes the disks of disks_json", run=_create_disks),
    ConformanceCase(name="create-same-owner", text="A repeated Create answers with the owner's machine", run=_same_owner),
    ConformanceCase(name="create-same-owner-at-once", text="Equal creates at once make one machine", run=_same_owner_at_once),
    ConformanceCase(name="create-conflict", text="Another owner's name is a Conflict", run=_conflict),
    ConformanceCase(name="delete", text="Delete removes a machine and frees its name", run=_delete),
    ConformanceCase(name="delete-running", text="Delete stops a running machine first", run=_delete_running),
    ConformanceCase(name="delete-missing", text="Deleting what is gone succeeds, or is NotFound", run=_delete_missing),
    ConformanceCase(name="describe-missing", text="Describe of a missing machine answers with exists=false", run=_describe_missing),
    ConformanceCase(name="unknown-machine", text="Other calls for a missing machine are NotFound", run=_unknown_machine),
)
