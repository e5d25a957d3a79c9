"""Fake drivers that break a promise about hardware, disks, snapshots or clones."""

import copy
from collections.abc import Callable
from typing import Any

import msgspec

from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake import specs
from paddock_drivers.fake.driver import FakeDriver
from paddock_drivers.fake.machines import OFF
from tests.unit.contract.conformance.broken import breaks, done, inside, replace

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
    driver._snapshots._existing = lambda request: None  # type: ignore[method-assign]


@breaks("clone-orphaned")
def a_clone_is_looked_for_at_its_source(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.CloneResponse:
        inside(driver).machine(request.source_vm_id)
        response: m.CloneResponse = await original(request)
        return response

    replace(driver, "clone", answer)


@breaks("clone-conflict")
def a_clone_takes_over_another_machine(driver: FakeDriver) -> None:
    driver._snapshots._existing = lambda request: inside(driver).named(request.target_name)  # type: ignore[method-assign]
