"""The interface of a provider: one coroutine for each RPC, which raises `errors.ProviderError` if it cannot.

What a driver has to keep is in docs/spec/virtrigaud.md section 3.3. In short: a create finds the machine of its owner before it
makes one; an answer without a task means that all is done; a machine that positively does not exist is described with `exists`
false, and trouble with the hypervisor is an error; deleting what is gone succeeds; a reconfigure holds the whole desired state.
"""

from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Protocol, TypeVar, cast

from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract import methods
from paddock.contract.errors import ErrorKind, ProviderError


class Driver(Protocol):
    """A provider, in this process or at an address."""

    async def validate(self, request: m.ValidateRequest, /) -> m.ValidateResponse:
        """Say whether the hypervisor can be reached with the provider's credentials."""

    async def create(self, request: m.CreateRequest, /) -> m.CreateResponse:
        """Create the owner's machine, or answer with the one it has. The machine may be left off."""

    async def delete(self, request: m.DeleteRequest, /) -> m.TaskResponse:
        """Stop a machine and delete it with its disks."""

    async def power(self, request: m.PowerRequest, /) -> m.TaskResponse:
        """Change a machine's power. A state that it already has is success."""

    async def reconfigure(self, request: m.ReconfigureRequest, /) -> m.TaskResponse:
        """Bring a machine to the desired state."""

    async def hardware_upgrade(self, request: m.HardwareUpgradeRequest, /) -> m.TaskResponse:
        """Give a machine a newer version of virtual hardware."""

    async def describe(self, request: m.DescribeRequest, /) -> m.DescribeResponse: ...

    async def task_status(self, request: m.TaskStatusRequest, /) -> m.TaskStatusResponse:
        """Return a task's state. An unknown task has failed: nobody may wait for it."""

    async def snapshot_create(self, request: m.SnapshotCreateRequest, /) -> m.SnapshotCreateResponse: ...

    async def snapshot_delete(self, request: m.SnapshotDeleteRequest, /) -> m.TaskResponse: ...

    async def snapshot_revert(self, request: m.SnapshotRevertRequest, /) -> m.TaskResponse:
        """Bring a machine back to a snapshot."""

    async def clone(self, request: m.CloneRequest, /) -> m.CloneResponse: ...

    async def image_prepare(self, request: m.ImagePrepareRequest, /) -> m.ImagePrepareResponse:
        """Make an image ready for machines to be created from."""

    async def get_capabilities(self, request: m.GetCapabilitiesRequest, /) -> m.GetCapabilitiesResponse:
        """Return what the provider can do."""

    async def export_disk(self, request: m.ExportDiskRequest, /) -> m.ExportDiskResponse:
        """Copy a disk to a staging backend."""

    async def import_disk(self, request: m.ImportDiskRequest, /) -> m.ImportDiskResponse:
        """Copy a disk from a staging backend."""

    async def get_disk_info(self, request: m.GetDiskInfoRequest, /) -> m.GetDiskInfoResponse:
        """Return a disk's size and format."""

    async def list_vms(self, request: m.ListVMsRequest, /) -> m.ListVMsResponse:
        """Return every machine that the provider can see."""

    async def list_hosts(self, request: m.ListHostsRequest, /) -> m.ListHostsResponse:
        """Return the hosts of a clustered provider."""

    async def get_host_info(self, request: m.GetHostInfoRequest, /) -> m.HostInfo:
        """Return one host of a clustered provider."""


class DriverExtensions(Protocol):
    """The calls of the extension service. A provider that lacks one answers with `NotSupported`."""

    async def get_features(self, request: x.GetFeaturesRequest, /) -> x.GetFeaturesResponse:
        """Return the features that the provider has (see `features`)."""

    async def exec(self, request: x.ExecRequest, /) -> x.ExecResponse:
        """Run a command in a guest and wait for its end."""

    async def image_delete(self, request: x.ImageDeleteRequest, /) -> m.TaskResponse:
        """Delete a prepared image. Machines that were made from it stay whole."""

    async def transfer_delete(self, request: x.TransferDeleteRequest, /) -> m.TaskResponse:
        """Delete an exported disk from a staging backend."""

    async def list_datastores(self, request: x.ListDatastoresRequest, /) -> x.ListDatastoresResponse:
        """Return the datastores, or those of a storage pod."""


Q = TypeVar("Q")
R = TypeVar("R")
Call = Callable[[Q], Coroutine[Any, Any, R]]


async def _lack(request: Any, rpc: str = "this") -> Any:
    raise ProviderError(ErrorKind.NOT_SUPPORTED, f"this provider does not support {rpc}")


async def _no_features(request: x.GetFeaturesRequest) -> x.GetFeaturesResponse:
    return x.GetFeaturesResponse()


@dataclass(frozen=True, kw_only=True, eq=False)
class ExtensionCalls:
    """The coroutine of each call of the extension service. A call without one is answered with `NotSupported`."""

    get_features: Call[x.GetFeaturesRequest, x.GetFeaturesResponse] = _no_features
    exec: Call[x.ExecRequest, x.ExecResponse] = _lack
    image_delete: Call[x.ImageDeleteRequest, m.TaskResponse] = _lack
    transfer_delete: Call[x.TransferDeleteRequest, m.TaskResponse] = _lack
    list_datastores: Call[x.ListDatastoresRequest, x.ListDatastoresResponse] = _lack

    def __post_init__(self) -> None:
        """Have the refusals name their calls."""
        for each in fields(self):
            if getattr(self, each.name) is _lack:
                object.__setattr__(self, each.name, partial(_lack, rpc=methods.BY_ATTRIBUTE[each.name].name))


@dataclass(frozen=True, kw_only=True, eq=False)
class Calls(ExtensionCalls):
    """The coroutine of each call of a driver. It may lack those with a default."""

    validate: Call[m.ValidateRequest, m.ValidateResponse]
    create: Call[m.CreateRequest, m.CreateResponse]
    delete: Call[m.DeleteRequest, m.TaskResponse]
    power: Call[m.PowerRequest, m.TaskResponse]
    reconfigure: Call[m.ReconfigureRequest, m.TaskResponse]
    describe: Call[m.DescribeRequest, m.DescribeResponse]
    task_status: Call[m.TaskStatusRequest, m.TaskStatusResponse]
    get_capabilities: Call[m.GetCapabilitiesRequest, m.GetCapabilitiesResponse]
    list_vms: Call[m.ListVMsRequest, m.ListVMsResponse]
    hardware_upgrade: Call[m.HardwareUpgradeRequest, m.TaskResponse] = _lack
    snapshot_create: Call[m.SnapshotCreateRequest, m.SnapshotCreateResponse] = _lack
    snapshot_delete: Call[m.SnapshotDeleteRequest, m.TaskResponse] = _lack
    snapshot_revert: Call[m.SnapshotRevertRequest, m.TaskResponse] = _lack
    clone: Call[m.CloneRequest, m.CloneResponse] = _lack
    image_prepare: Call[m.ImagePrepareRequest, m.ImagePrepareResponse] = _lack
    export_disk: Call[m.ExportDiskRequest, m.ExportDiskResponse] = _lack
    import_disk: Call[m.ImportDiskRequest, m.ImportDiskResponse] = _lack
    get_disk_info: Call[m.GetDiskInfoRequest, m.GetDiskInfoResponse] = _lack
    list_hosts: Call[m.ListHostsRequest, m.ListHostsResponse] = _lack
    get_host_info: Call[m.GetHostInfoRequest, m.HostInfo] = _lack

    @classmethod
    def of(cls, parts: object) -> "Calls":
        """Return the calls that an object has coroutines for."""
        return cls(**{each.name: getattr(parts, each.name) for each in fields(cls) if hasattr(parts, each.name)})


class ComposedDriver(Calls):
    """A driver whose calls are carried out by its parts."""

    def __init__(self, calls: Calls, mapped: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        """`mapped`: raises what a part raises as a `ProviderError`."""
        super().__init__(**{each.name: _within(mapped, getattr(calls, each.name)) for each in fields(calls)})


def _within(mapped: Callable[[], AbstractContextManager[None]], call: Call[Q, R]) -> Call[Q, R]:
    async def answer(request: Q) -> R:
        with mapped():
            return await call(request)

    return answer


_NO_EXTENSIONS = ExtensionCalls()


def extensions(driver: Driver) -> DriverExtensions:
    """Return the extension service of a driver; one that has none gets one that refuses."""
    return cast("DriverExtensions", driver) if hasattr(driver, "get_features") else _NO_EXTENSIONS
