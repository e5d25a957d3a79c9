"""The provider under test: each call has its deadline, and no error may hold a secret of the suite."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract.conformance.results import ConformanceFailure
from paddock.contract.driver import Driver, extensions
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.methods import EXTENSIONS, METHODS
from paddock.contract.payloads import InvalidPayload

R = TypeVar("R")
_DEADLINES = {method.name: method.deadline for method in (*METHODS, *EXTENSIONS)}
# Over the wire the client gives up first; its error says more than ours.
_SLACK = 1.0


class JudgedProvider:
    """A driver whose calls are watched."""

    def __init__(self, driver: Driver, call_seconds: float) -> None:
        self._driver = driver
        self._extensions = extensions(driver)
        self._call_seconds = call_seconds
        # texts that no error may hold
        self.secrets: set[str] = set()

    async def _watched(self, rpc: str, call: Awaitable[R]) -> R:
        deadline = min(_DEADLINES[rpc] + _SLACK, self._call_seconds)
        try:
            async with asyncio.timeout(deadline) as limit:
                return await call
        except TimeoutError as error:
            if not limit.expired():
                raise ConformanceFailure(f"{rpc} raised TimeoutError, which is no ProviderError") from error
            raise ConformanceFailure(f"{rpc} does not answer", why=f"its deadline is {deadline:g} s") from error
        except ProviderError as error:
            self.check_text(f"the error of {rpc}", str(error))
            raise
        except InvalidPayload as error:
            # The server of the contract answers so, too.
            self.check_text(f"the error of {rpc}", str(error))
            raise ProviderError(ErrorKind.INVALID_SPEC, error.what, why=error.why) from error
        except Exception as error:
            # A driver in this process may raise anything.
            raise ConformanceFailure(f"{rpc} raised {type(error).__name__}, which is no ProviderError", why=str(error)) from error

    def check_text(self, what: str, text: str) -> None:
        """Raise `ConformanceFailure` for a text that holds a secret."""
        if any(secret in text for secret in self.secrets):
            raise ConformanceFailure(f"{what} holds a secret of the request")

    async def validate(self, request: m.ValidateRequest) -> m.ValidateResponse:
        return await self._watched("Validate", self._driver.validate(request))

    async def get_capabilities(self, request: m.GetCapabilitiesRequest) -> m.GetCapabilitiesResponse:
        return await self._watched("GetCapabilities", self._driver.get_capabilities(request))

    async def create(self, request: m.CreateRequest) -> m.CreateResponse:
        return await self._watched("Create", self._driver.create(request))

    async def delete(self, request: m.DeleteRequest) -> m.TaskResponse:
        return await self._watched("Delete", self._driver.delete(request))

    async def power(self, request: m.PowerRequest) -> m.TaskResponse:
        return await self._watched("Power", self._driver.power(request))

    async def reconfigure(self, request: m.ReconfigureRequest) -> m.TaskResponse:
        return await self._watched("Reconfigure", self._driver.reconfigure(request))

    async def describe(self, request: m.DescribeRequest) -> m.DescribeResponse:
        return await self._watched("Describe", self._driver.describe(request))

    async def list_vms(self, request: m.ListVMsRequest) -> m.ListVMsResponse:
        return await self._watched("ListVMs", self._driver.list_vms(request))

    async def task_status(self, request: m.TaskStatusRequest) -> m.TaskStatusResponse:
        return await self._watched("TaskStatus", self._driver.task_status(request))

    async def snapshot_create(self, request: m.SnapshotCreateRequest) -> m.SnapshotCreateResponse:
        return await self._watched("SnapshotCreate", self._driver.snapshot_create(request))

    async def snapshot_delete(self, request: m.SnapshotDeleteRequest) -> m.TaskResponse:
        return await self._watched("SnapshotDelete", self._driver.snapshot_delete(request))

    async def snapshot_revert(self, request: m.SnapshotRevertRequest) -> m.TaskResponse:
        return await self._watched("SnapshotRevert", self._driver.snapshot_revert(request))

    async def clone(self, request: m.CloneRequest) -> m.CloneResponse:
        return await self._watched("Clone", self._driver.clone(request))

    async def image_prepare(self, request: m.ImagePrepareRequest) -> m.ImagePrepareResponse:
        return await self._watched("ImagePrepare", self._driver.image_prepare(request))

    async def export_disk(self, request: m.ExportDiskRequest) -> m.ExportDiskResponse:
        return await self._watched("ExportDisk", self._driver.export_disk(request))

    async def import_disk(self, request: m.ImportDiskRequest) -> m.ImportDiskResponse:
        return await self._watched("ImportDisk", self._driver.import_disk(request))

    async def get_disk_info(self, request: m.GetDiskInfoRequest) -> m.GetDiskInfoResponse:
        return await self._watched("GetDiskInfo", self._driver.get_disk_info(request))

    async def get_features(self, request: x.GetFeaturesRequest) -> x.GetFeaturesResponse:
        return await self._watched("GetFeatures", self._extensions.get_features(request))

    async def exec(self, request: x.ExecRequest) -> x.ExecResponse:
        return await self._watched("Exec", self._extensions.exec(request))

    async def image_delete(self, request: x.ImageDeleteRequest) -> m.TaskResponse:
        return await self._watched("ImageDelete", self._extensions.image_delete(request))

    async def transfer_delete(self, request: x.TransferDeleteRequest) -> m.TaskResponse:
        return await self._watched("TransferDelete", self._extensions.transfer_delete(request))

    async def list_datastores(self, request: x.ListDatastoresRequest) -> x.ListDatastoresResponse:
        return await self._watched("ListDatastores", self._extensions.list_datastores(request))
