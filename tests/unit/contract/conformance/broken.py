"""Fake drivers that each break one promise of the contract."""

import asyncio
import copy
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from paddock.base.errors import PaddockError
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.drivers.fake import specs
from paddock.drivers.fake.driver import FakeDriver
from paddock.drivers.fake.machines import OFF

Mutation = Callable[[FakeDriver], None]
# name -> the case that must fail, and what breaks the driver
MUTATIONS: dict[str, tuple[str, Mutation]] = {}


def breaks(case: str) -> Callable[[Mutation], Mutation]:
    """Register a mutation with the case that has to find it."""

    def register(mutation: Mutation) -> Mutation:
        MUTATIONS[mutation.__name__] = (case, mutation)
        return mutation

    return register


def replace(driver: FakeDriver, rpc: str, make: Callable[[Any, Any], Awaitable[Any]]) -> None:
    """Replace a call; `make` gets the original and the request."""
    original = getattr(driver, rpc)

    async def replaced(request: Any) -> Any:
        return await make(original, request)

    setattr(driver, rpc, replaced)


def inside(driver: FakeDriver) -> Any:
    """The inventory; a mutation reaches inside."""
    return driver._inventory


async def done(original: Any, request: Any) -> m.TaskResponse:
    """Claim success and do nothing."""
    return m.TaskResponse()


# --- the provider ---------------------------------------------------------------------------------------------------------


@breaks("validate")
def validate_is_not_ok(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ValidateResponse:
        return m.ValidateResponse(ok=False, message="down")

    replace(driver, "validate", answer)


@breaks("capabilities")
def capabilities_contradict_themselves(driver: FakeDriver) -> None:
    inside(driver).capabilities = msgspec.structs.replace(inside(driver).capabilities, supported_export_formats=())


@breaks("list")
def list_has_a_machine_twice(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ListVMsResponse:
        found = (await original(request)).vms
        return m.ListVMsResponse(vms=(*found, *found))

    replace(driver, "list_vms", answer)


@breaks("list")
def list_is_empty(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ListVMsResponse:
        return m.ListVMsResponse()

    replace(driver, "list_vms", answer)


@breaks("task-empty")
def an_empty_task_runs_forever(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskStatusResponse:
        known = request.task is not None and request.task.id
        return await original(request) if known else m.TaskStatusResponse()

    replace(driver, "task_status", answer)


@breaks("task-unknown")
def an_unknown_task_runs_forever(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskStatusResponse:
        status = await original(request)
        return m.TaskStatusResponse() if "unknown" in status.error else status

    replace(driver, "task_status", answer)


@breaks("answers-while-busy")
def a_create_holds_up_everything(driver: FakeDriver) -> None:
    turn = asyncio.Lock()

    async def slow(original: Any, request: Any) -> Any:
        async with turn:
            await asyncio.sleep(10)
            return await original(request)

    async def waiting(original: Any, request: Any) -> Any:
        async with turn:
            return await original(request)

    replace(driver, "create", slow)
    replace(driver, "list_vms", waiting)


# --- machines -------------------------------------------------------------------------------------------------------------


@breaks("create-same-owner")
def create_makes_another_machine(driver: FakeDriver) -> None:
    driver._lifecycle._existing = lambda request: None  # type: ignore[method-assign]


@breaks("create-same-owner-at-once")
def create_looks_and_then_waits(driver: FakeDriver) -> None:
    existing = driver._lifecycle._existing

    async def late(original: Any, request: Any) -> m.CreateResponse:
        found = existing(request)
        await asyncio.sleep(0.01)
        driver._lifecycle._existing = lambda request: found  # type: ignore[method-assign]
        answered: m.CreateResponse = await original(request)
        return answered

    replace(driver, "create", late)


@breaks("create-conflict")
def create_takes_over_another_owners_machine(driver: FakeDriver) -> None:
    driver._lifecycle._existing = lambda request: inside(driver).named(request.name)  # type: ignore[method-assign]


@breaks("create")
def create_does_not_end(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.CreateResponse:
        return m.CreateResponse(id=(await original(request)).id, task=m.TaskRef(id="stuck"))

    async def status(original: Any, request: Any) -> m.TaskStatusResponse:
        stuck = request.task is not None and request.task.id == "stuck"
        return m.TaskStatusResponse() if stuck else await original(request)

    replace(driver, "create", answer)
    replace(driver, "task_status", status)


@breaks("create")
def create_has_no_id(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.CreateResponse:
        return m.CreateResponse(task=(await original(request)).task)

    replace(driver, "create", answer)


@breaks("create")
def create_ignores_the_class(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.CreateResponse:
        machine = inside(driver).machines[(await original(request)).id]
        machine.hardware.memory_mib = 4096
        return m.CreateResponse(id=machine.id)

    replace(driver, "create", answer)


@breaks("create-disks")
def create_ignores_the_disks(driver: FakeDriver) -> None:
    driver._lifecycle._extra = lambda machine, spec: []  # type: ignore[method-assign]


@breaks("describe-raw")
def the_raw_object_has_numbers(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.DescribeResponse:
        response: m.DescribeResponse = await original(request)
        return msgspec.structs.replace(response, provider_raw_json='{"cpu":1}')

    replace(driver, "describe", answer)


@breaks("describe-raw")
def the_raw_object_has_the_user_data(driver: FakeDriver) -> None:
    given: dict[str, str] = {}

    async def create(original: Any, request: Any) -> m.CreateResponse:
        response: m.CreateResponse = await original(request)
        given[response.id] = request.user_data.decode()
        return response

    async def answer(original: Any, request: Any) -> m.DescribeResponse:
        raw = msgspec.json.encode({"userData": given.get(request.id, "")}).decode()
        response: m.DescribeResponse = await original(request)
        return msgspec.structs.replace(response, provider_raw_json=raw)

    replace(driver, "create", create)
    replace(driver, "describe", answer)


@breaks("describe-missing")
def describe_of_a_missing_machine_is_an_error(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.DescribeResponse:
        found: m.DescribeResponse = await original(request)
        if not found.exists:
            raise ProviderError(ErrorKind.NOT_FOUND, "no such machine")
        return found

    replace(driver, "describe", answer)


@breaks("create")
def describe_denies_every_machine(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.DescribeResponse:
        return m.DescribeResponse()

    replace(driver, "describe", answer)


@breaks("create")
def describe_does_not_answer(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.DescribeResponse:
        await asyncio.sleep(1e9)
        return m.DescribeResponse()

    replace(driver, "describe", answer)


@breaks("create")
def describe_has_raw_words(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.DescribeResponse:
        response: m.DescribeResponse = await original(request)
        return msgspec.structs.replace(response, power_state="poweredOff")

    replace(driver, "describe", answer)


@breaks("delete")
def delete_leaves_the_machine(driver: FakeDriver) -> None:
    replace(driver, "delete", done)


@breaks("delete-running")
def delete_refuses_a_running_machine(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        machine = inside(driver).machines.get(request.id)
        if machine is not None and machine.power != OFF:
            raise ProviderError(ErrorKind.INTERNAL, "the machine is running")
        response: m.TaskResponse = await original(request)
        return response

    replace(driver, "delete", answer)


@breaks("delete-missing")
def delete_of_a_missing_machine_is_an_internal_error(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        if request.id not in inside(driver).machines:
            raise ProviderError(ErrorKind.INTERNAL, "no such domain")
        response: m.TaskResponse = await original(request)
        return response

    replace(driver, "delete", answer)


@breaks("unknown-machine")
def power_of_a_missing_machine_succeeds(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        return await original(request) if request.id in inside(driver).machines else m.TaskResponse()

    replace(driver, "power", answer)


# --- power ----------------------------------------------------------------------------------------------------------------


def ignores(driver: FakeDriver, *operations: m.PowerOp) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        return m.TaskResponse() if request.op in operations else await original(request)

    replace(driver, "power", answer)


@breaks("power-on")
def power_on_is_ignored(driver: FakeDriver) -> None:
    ignores(driver, m.PowerOp.ON)


@breaks("power-off")
def power_off_is_ignored(driver: FakeDriver) -> None:
    ignores(driver, m.PowerOp.OFF)


@breaks("power-graceful")
def a_graceful_shutdown_returns_at_once(driver: FakeDriver) -> None:
    ignores(driver, m.PowerOp.SHUTDOWN_GRACEFUL)


@breaks("power-unspecified")
def an_unspecified_operation_succeeds(driver: FakeDriver) -> None:
    ignores(driver, m.PowerOp.UNSPECIFIED)


@breaks("power-graceful-forced")
def a_hanging_guest_is_never_forced_off(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        machine = inside(driver).machines.get(request.id)
        hangs = machine is not None and machine.name.endswith("-hang") and request.op is m.PowerOp.SHUTDOWN_GRACEFUL
        return m.TaskResponse() if hangs else await original(request)

    replace(driver, "power", answer)


@breaks("power-on")
def a_second_on_is_an_error(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        machine = inside(driver).machines.get(request.id)
        if machine is not None and machine.power == "On" and request.op is m.PowerOp.ON:
            raise ProviderError(ErrorKind.INTERNAL, "already running")
        response: m.TaskResponse = await original(request)
        return response

    replace(driver, "power", answer)


@breaks("power-reboot")
def a_reboot_leaves_the_machine_off(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        off = msgspec.structs.replace(request, op=m.PowerOp.OFF) if request.op is m.PowerOp.REBOOT else request
        response: m.TaskResponse = await original(off)
        return response

    replace(driver, "power", answer)


# --- reconfigure and disks ------------------------------------------------------------------------------------------------


@breaks("reconfigure-offline")
def reconfigure_claims_success(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        inside(driver).machine(request.id)
        specs.of_desired(request.desired_json)
        return m.TaskResponse()

    replace(driver, "reconfigure", answer)


@breaks("reconfigure-honest")
def a_running_machine_claims_to_shrink(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        try:
            response: m.TaskResponse = await original(request)
        except ProviderError as error:
            if error.kind is not ErrorKind.CONFLICT:
                raise
            return m.TaskResponse()
        return response

    replace(driver, "reconfigure", answer)


@breaks("reconfigure-online")
def online_reconfigure_is_claimed_and_refused(driver: FakeDriver) -> None:
    can: m.GetCapabilitiesResponse = inside(driver).capabilities
    inside(driver).capabilities = msgspec.structs.replace(can, supports_reconfigure_online=False)

    async def answer(original: Any, request: Any) -> m.GetCapabilitiesResponse:
        return can

    replace(driver, "get_capabilities", answer)


@breaks("reconfigure-same")
def reconfigure_restarts_the_machine(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        response: m.TaskResponse = await original(request)
        inside(driver).machine(request.id).power = OFF
        return response

    replace(driver, "reconfigure", answer)


def without_disks(driver: FakeDriver, change: Callable[[dict[str, Any]], None]) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        try:
            desired = msgspec.json.decode(request.desired_json)
            change(desired)
        except (msgspec.MsgspecError, AttributeError, TypeError, KeyError):
            response: m.TaskResponse = await original(request)
            return response
        changed: m.TaskResponse = await original(msgspec.structs.replace(request, desired_json=msgspec.json.encode(desired).decode()))
        return changed

    replace(driver, "reconfigure", answer)


@breaks("disk-grow")
def the_first_disk_does_not_grow(driver: FakeDriver) -> None:
    without_disks(driver, lambda desired: desired["Class"].update(DiskDefaults=None))


@breaks("disk-add")
def a_new_disk_is_ignored(driver: FakeDriver) -> None:
    without_disks(driver, lambda desired: desired.update(Disks=None))


@breaks("disk-keep")
def a_reconfigure_drops_the_data_disks(driver: FakeDriver) -> None:
    without_disks(driver, lambda desired: desired.update(Disks=None))


@breaks("disk-grow-data")
def a_data_disk_does_not_grow(driver: FakeDriver) -> None:
    def keep(desired: dict[str, Any]) -> None:
        for each in desired["Disks"]:
            each["SizeGiB"] = 3

    without_disks(driver, keep)


@breaks("disk-shrink")
def a_disk_that_shrinks_is_accepted(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        try:
            response: m.TaskResponse = await original(request)
        except ProviderError as error:
            if "shrink" not in str(error):
                raise
            return m.TaskResponse()
        return response

    replace(driver, "reconfigure", answer)


@breaks("disk-info")
def every_disk_is_the_first_one(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.GetDiskInfoResponse:
        response: m.GetDiskInfoResponse = await original(msgspec.structs.replace(request, disk_id=""))
        return response

    replace(driver, "get_disk_info", answer)


# --- snapshots and clones -------------------------------------------------------------------------------------------------


@breaks("snapshot-create")
def a_snapshot_is_not_taken(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.SnapshotCreateResponse:
        inside(driver).machine(request.vm_id)
        return m.SnapshotCreateResponse(snapshot_id=inside(driver).next_id("snapshot"))

    replace(driver, "snapshot_create", answer)


@breaks("snapshot-memory")
def a_snapshot_has_no_memory(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.SnapshotCreateResponse:
        response: m.SnapshotCreateResponse = await original(msgspec.structs.replace(request, include_memory=False))
        return response

    replace(driver, "snapshot_create", answer)


@breaks("snapshot-revert")
def a_revert_does_nothing(driver: FakeDriver) -> None:
    replace(driver, "snapshot_revert", done)


@breaks("snapshot-unknown")
def a_revert_to_nothing_succeeds(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        try:
            response: m.TaskResponse = await original(request)
        except ProviderError:
            return m.TaskResponse()
        return response

    replace(driver, "snapshot_revert", answer)


@breaks("snapshot-delete")
def a_snapshot_stays(driver: FakeDriver) -> None:
    replace(driver, "snapshot_delete", done)


@breaks("clone-full")
def a_clone_has_the_disks_of_its_source(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.CloneResponse:
        response: m.CloneResponse = await original(request)
        machines = inside(driver).machines
        machines[response.target_vm_id].disks = [copy.copy(each) for each in machines[request.source_vm_id].disks]
        return response

    replace(driver, "clone", answer)


@breaks("clone-full")
def a_clone_is_the_source(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.CloneResponse:
        inside(driver).machine(request.source_vm_id)
        return m.CloneResponse(target_vm_id=request.source_vm_id)

    replace(driver, "clone", answer)


@breaks("clone-linked")
def a_linked_clone_takes_its_source_along(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        machine = inside(driver).machines.get(request.id)
        if machine is not None and machine.disks[0].backing:
            inside(driver).machines.pop(machine.cloned_from, None)
        response: m.TaskResponse = await original(request)
        return response

    replace(driver, "delete", answer)


@breaks("clone-twice")
def a_repeated_clone_makes_another_machine(driver: FakeDriver) -> None:
    driver._snapshots._existing = lambda source, request: None  # type: ignore[method-assign]


@breaks("clone-conflict")
def a_clone_takes_over_another_machine(driver: FakeDriver) -> None:
    driver._snapshots._existing = lambda source, request: inside(driver).named(request.target_name)  # type: ignore[method-assign]


# --- images and transfers -------------------------------------------------------------------------------------------------


@breaks("image-checksum")
def an_images_checksum_is_ignored(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ImagePrepareResponse:
        response: m.ImagePrepareResponse = await original(
            msgspec.structs.replace(request, image_json=request.image_json.replace('"checksum":', '"ignored":'))
        )
        return response

    replace(driver, "image_prepare", answer)


@breaks("image-prepare")
def an_image_is_not_kept(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ImagePrepareResponse:
        return m.ImagePrepareResponse()

    replace(driver, "image_prepare", answer)


@breaks("export")
def the_checksum_of_an_export_is_wrong(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ExportDiskResponse:
        response: m.ExportDiskResponse = await original(request)
        return msgspec.structs.replace(response, checksum="0" * 64)

    replace(driver, "export_disk", answer)


@breaks("export")
def an_export_stores_nothing(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ExportDiskResponse:
        return m.ExportDiskResponse(export_id="export-1", checksum="0" * 64)

    replace(driver, "export_disk", answer)


@breaks("export-unknown")
def an_unknown_disk_is_exported(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ExportDiskResponse:
        response: m.ExportDiskResponse = await original(msgspec.structs.replace(request, disk_id=""))
        return response

    replace(driver, "export_disk", answer)


@breaks("import")
def an_imported_disk_has_another_size(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ImportDiskResponse:
        response: m.ImportDiskResponse = await original(request)

        async def create(original: Any, request: Any) -> m.CreateResponse:
            made: m.CreateResponse = await original(request)
            if response.path in request.image_json:
                inside(driver).machines[made.id].disks[0].size += 1
            return made

        replace(driver, "create", create)
        return response

    replace(driver, "import_disk", answer)


@breaks("import-checksum")
def an_import_ignores_the_checksum(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ImportDiskResponse:
        response: m.ImportDiskResponse = await original(msgspec.structs.replace(request, verify_checksum=False))
        return response

    replace(driver, "import_disk", answer)


@breaks("import-missing")
def an_import_of_nothing_succeeds(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ImportDiskResponse:
        try:
            response: m.ImportDiskResponse = await original(request)
        except ProviderError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return m.ImportDiskResponse(disk_id="disk-0", path="/nowhere")
        return response

    replace(driver, "import_disk", answer)


# --- inputs ---------------------------------------------------------------------------------------------------------------


@breaks("malformed-create")
def broken_json_is_an_internal_error(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.CreateResponse:
        try:
            response: m.CreateResponse = await original(request)
        except ProviderError as error:
            if error.kind is ErrorKind.INVALID_SPEC:
                raise ProviderError(ErrorKind.INTERNAL, "cannot read the request") from None
            raise
        return response

    replace(driver, "create", answer)


def reads_leniently(driver: FakeDriver, member: str, plain: str) -> None:
    async def answer(original: Any, request: Any) -> m.CreateResponse:
        try:
            response: m.CreateResponse = await original(request)
        except ProviderError as error:
            if member not in str(error):
                raise
            response = await original(msgspec.structs.replace(request, **{member: plain}))
        return response

    replace(driver, "create", answer)


@breaks("wrong-types")
def unreadable_disks_are_no_disks(driver: FakeDriver) -> None:
    reads_leniently(driver, "disks_json", "null")


@breaks("out-of-range")
def any_number_of_cpus_will_do(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.CreateResponse:
        try:
            response: m.CreateResponse = await original(request)
        except ProviderError as error:
            if "Class.CPU" not in str(error):
                raise
            response = await original(msgspec.structs.replace(request, class_json='{"CPU":1,"MemoryMiB":512}'))
        return response

    replace(driver, "create", answer)


@breaks("bad-names")
def a_long_name_is_cut(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.CreateResponse:
        response: m.CreateResponse = await original(msgspec.structs.replace(request, name=request.name[:63]))
        return response

    replace(driver, "create", answer)


@breaks("malformed-reconfigure")
def a_broken_desired_state_is_ignored(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        try:
            response: m.TaskResponse = await original(request)
        except ProviderError as error:
            if error.kind is not ErrorKind.INVALID_SPEC:
                raise
            return m.TaskResponse()
        return response

    replace(driver, "reconfigure", answer)


@breaks("huge-input")
def deep_json_breaks_the_provider(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.CreateResponse:
        if len(request.class_json) > 10_000:
            raise RecursionError("maximum recursion depth exceeded")
        response: m.CreateResponse = await original(request)
        return response

    replace(driver, "create", answer)


@breaks("secrets")
def an_error_echoes_the_user_data(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.CreateResponse:
        try:
            response: m.CreateResponse = await original(request)
        except PaddockError as error:
            raise ProviderError(ErrorKind.INVALID_SPEC, f"cannot create {request.user_data!r}: {error}") from None
        return response

    replace(driver, "create", answer)


@breaks("secrets")
def an_error_echoes_the_credentials(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.ImportDiskResponse:
        try:
            response: m.ImportDiskResponse = await original(request)
        except PaddockError as error:
            raise ProviderError(ErrorKind.INVALID_SPEC, f"cannot import with {request.credentials}: {error}") from None
        return response

    replace(driver, "import_disk", answer)
