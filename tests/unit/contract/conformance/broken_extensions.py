"""Fake drivers that break a promise of the extension service."""

import asyncio
from typing import Any

import msgspec

from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake.driver import FakeDriver
from tests.unit.contract.conformance.broken import breaks, replace


@breaks("features")
def a_feature_is_named_whose_call_is_missing(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        raise ProviderError(ErrorKind.NOT_SUPPORTED, "not here")

    replace(driver, "image_delete", answer)


@breaks("features")
def a_call_is_there_whose_feature_is_not_named(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> x.GetFeaturesResponse:
        return x.GetFeaturesResponse(features=("exec", "image-delete", "transfer-delete"))

    replace(driver, "get_features", answer)


@breaks("exec")
def a_command_that_is_missing_succeeds(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> x.ExecResponse:
        return x.ExecResponse()

    replace(driver, "exec", answer)


@breaks("exec")
def a_command_has_no_code(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> x.ExecResponse:
        response: x.ExecResponse = await original(request)
        return msgspec.structs.replace(response, exit_code=1)

    replace(driver, "exec", answer)


@breaks("exec-off")
def a_command_runs_in_a_machine_that_is_off(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> x.ExecResponse:
        try:
            response: x.ExecResponse = await original(request)
        except ProviderError as error:
            if error.kind is ErrorKind.CONFLICT:
                return x.ExecResponse()
            raise
        return response

    replace(driver, "exec", answer)


@breaks("image-delete")
def an_image_takes_its_machines_along(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        for each in (await driver.list_vms(m.ListVMsRequest())).vms:
            await driver.delete(m.DeleteRequest(id=each.id))
        # The deletions are tasks: they have ended when the image goes.
        await asyncio.sleep(60)
        response: m.TaskResponse = await original(request)
        return response

    replace(driver, "image_delete", answer)


@breaks("transfer-delete")
def an_export_stays(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> m.TaskResponse:
        return m.TaskResponse()

    replace(driver, "transfer_delete", answer)


@breaks("datastores")
def a_pod_has_every_datastore(driver: FakeDriver) -> None:
    async def answer(original: Any, request: Any) -> x.ListDatastoresResponse:
        response: x.ListDatastoresResponse = await original(x.ListDatastoresRequest())
        return response

    replace(driver, "list_datastores", answer)
