"""The interface of a provider: one coroutine for each RPC, which raises `errors.ProviderError` if it cannot.

What a driver has to keep is in docs/spec/virtrigaud.md section 3.3. In short: a create finds the machine of its owner before it
makes one; an answer without a task means that all is done; a machine that positively does not exist is described with `exists`
false, and trouble with the hypervisor is an error; deleting what is gone succeeds; a reconfigure holds the whole desired state.
"""

from typing import Protocol, cast

from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError


class Driver(Protocol):
    """A provider, in this process or at an address."""

    async def validate(self, request: m.ValidateRequest) -> m.ValidateResponse:
        """Say whether the hypervisor can be reached with the provider's credentials."""

    async def create(self, request: m.CreateRequest) -> m.CreateResponse:
        """Create the owner's machine, or answer with the one it has. The machine may be left off."""

    async def delete(self, request: m.DeleteRequest) -> m.TaskResponse:
        """Stop a machine and delete it with its disks."""

    async def power(self, request: m.PowerRequest) -> m.TaskResponse:
        """Change a machine's power. A state that it already has is success."""

    async def reconfigure(self, request: m.ReconfigureRequest) -> m.TaskResponse:
        """Bring a machine to the desired state."""

    async def hardware_upgrade(self, request: m.HardwareUpgradeRequest) -> m.TaskResponse:
        """Give a machine a newer version of virtual hardware."""

    async def describe(self, request: m.DescribeRequest) -> m.DescribeResponse:
        """Return a machine's state."""

    async def task_status(self, request: m.TaskStatusRequest) -> m.TaskStatusResponse:
        """Return a task's state. An unknown task has failed: nobody may wait for it."""

    async def snapshot_create(self, request: m.SnapshotCreateRequest) -> m.SnapshotCreateResponse:
        """Take a snapshot."""

    async def snapshot_delete(self, request: m.SnapshotDeleteRequest) -> m.TaskResponse:
        """Delete a snapshot."""

    async def snapshot_revert(self, request: m.SnapshotRevertRequest) -> m.TaskResponse:
        """Bring a machine back to a snapshot."""

    async def clone(self, request: m.CloneRequest) -> m.CloneResponse:
        """Clone a machine."""

    async def image_prepare(self, request: m.ImagePrepareRequest) -> m.ImagePrepareResponse:
        """Make an image ready for machines to be created from."""

    async def get_capabilities(self, request: m.GetCapabilitiesRequest) -> m.GetCapabilitiesResponse:
        """Return what the provider can do."""

    async def export_disk(self, request: m.ExportDiskRequest) -> m.ExportDiskResponse:
        """Copy a disk to a staging backend."""

    async def import_disk(self, request: m.ImportDiskRequest) -> m.ImportDiskResponse:
        """Copy a disk from a staging backend."""

    async def get_disk_info(self, request: m.GetDiskInfoRequest) -> m.GetDiskInfoResponse:
        """Return a disk's size and format."""

    async def list_vms(self, request: m.ListVMsRequest) -> m.ListVMsResponse:
        """Return every machine that the provider can see."""

    async def list_hosts(self, request: m.ListHostsRequest) -> m.ListHostsResponse:
        """Return the hosts of a clustered provider."""

    async def get_host_info(self, request: m.GetHostInfoRequest) -> m.HostInfo:
        """Return one host of a clustered provider."""


class DriverExtensions(Protocol):
    """The calls of the extension service. A provider that lacks one answers with `NotSupported`."""

    async def get_features(self, request: x.GetFeaturesRequest) -> x.GetFeaturesResponse:
        """Return the features that the provider has (see `features`)."""

    async def exec(self, request: x.ExecRequest) -> x.ExecResponse:
        """Run a command in a guest and wait for its end."""

    async def image_delete(self, request: x.ImageDeleteRequest) -> m.TaskResponse:
        """Delete a prepared image. Machines that were made from it stay whole."""

    async def transfer_delete(self, request: x.TransferDeleteRequest) -> m.TaskResponse:
        """Delete an exported disk from a staging backend."""

    async def list_datastores(self, request: x.ListDatastoresRequest) -> x.ListDatastoresResponse:
        """Return the datastores, or those of a storage pod."""


class OptionalExtensions:
    """The extension service of a provider without extensions."""

    async def get_features(self, request: x.GetFeaturesRequest) -> x.GetFeaturesResponse:
        """Have none."""
        return x.GetFeaturesResponse()

    async def exec(self, request: x.ExecRequest) -> x.ExecResponse:
        """Refuse."""
        raise _not_supported("Exec")

    async def image_delete(self, request: x.ImageDeleteRequest) -> m.TaskResponse:
        """Refuse."""
        raise _not_supported("ImageDelete")

    async def transfer_delete(self, request: x.TransferDeleteRequest) -> m.TaskResponse:
        """Refuse."""
        raise _not_supported("TransferDelete")

    async def list_datastores(self, request: x.ListDatastoresRequest) -> x.ListDatastoresResponse:
        """Refuse."""
        raise _not_supported("ListDatastores")


_NONE = OptionalExtensions()


def extensions(driver: Driver) -> DriverExtensions:
    """Return the extension service of a driver; one that has none gets one that refuses."""
    return cast("DriverExtensions", driver) if hasattr(driver, "get_features") else _NONE


class OptionalRpcs(OptionalExtensions):
    """The RPCs that a provider may lack: each is answered with `NotSupported` until a driver that inherits them overrides it."""

    async def hardware_upgrade(self, request: m.HardwareUpgradeRequest) -> m.TaskResponse:
        """Refuse."""
        raise _not_supported("HardwareUpgrade")

    async def snapshot_create(self, request: m.SnapshotCreateRequest) -> m.SnapshotCreateResponse:
        """Refuse."""
        raise _not_supported("SnapshotCreate")

    async def snapshot_delete(self, request: m.SnapshotDeleteRequest) -> m.TaskResponse:
        """Refuse."""
        raise _not_supported("SnapshotDelete")

    async def snapshot_revert(self, request: m.SnapshotRevertRequest) -> m.TaskResponse:
        """Refuse."""
        raise _not_supported("SnapshotRevert")

    async def clone(self, request: m.CloneRequest) -> m.CloneResponse:
        """Refuse."""
        raise _not_supported("Clone")

    async def image_prepare(self, request: m.ImagePrepareRequest) -> m.ImagePrepareResponse:
        """Refuse."""
        raise _not_supported("ImagePrepare")

    async def export_disk(self, request: m.ExportDiskRequest) -> m.ExportDiskResponse:
        """Refuse."""
        raise _not_supported("ExportDisk")

    async def import_disk(self, request: m.ImportDiskRequest) -> m.ImportDiskResponse:
        """Refuse."""
        raise _not_supported("ImportDisk")

    async def get_disk_info(self, request: m.GetDiskInfoRequest) -> m.GetDiskInfoResponse:
        """Refuse."""
        raise _not_supported("GetDiskInfo")

    async def list_hosts(self, request: m.ListHostsRequest) -> m.ListHostsResponse:
        """Refuse."""
        raise _not_supported("ListHosts")

    async def get_host_info(self, request: m.GetHostInfoRequest) -> m.HostInfo:
        """Refuse."""
        raise _not_supported("GetHostInfo")


def _not_supported(rpc: str) -> ProviderError:
    return ProviderError(ErrorKind.NOT_SUPPORTED, f"this provider does not support {rpc}")
