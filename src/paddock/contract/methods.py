"""The RPCs of `provider.v1` (docs/spec/virtrigaud.md section 3.1)."""

import re

import msgspec

from paddock.contract import messages as m

SERVICE = "provider.v1.Provider"


class RpcMethod(msgspec.Struct, frozen=True):
    """An RPC: its name, its messages, and the seconds that a caller waits for it."""

    name: str
    request: type[m.WireMessage]
    response: type[m.WireMessage]
    deadline: float

    @property
    def path(self) -> str:
        """The path of the HTTP/2 request."""
        return f"/{SERVICE}/{self.name}"

    @property
    def attribute(self) -> str:
        """The name of the coroutine of `driver.Driver`."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower()


METHODS: tuple[RpcMethod, ...] = (
    RpcMethod("Validate", m.ValidateRequest, m.ValidateResponse, 30),
    RpcMethod("GetCapabilities", m.GetCapabilitiesRequest, m.GetCapabilitiesResponse, 30),
    RpcMethod("Describe", m.DescribeRequest, m.DescribeResponse, 30),
    RpcMethod("TaskStatus", m.TaskStatusRequest, m.TaskStatusResponse, 10),
    RpcMethod("Create", m.CreateRequest, m.CreateResponse, 300),
    RpcMethod("Delete", m.DeleteRequest, m.TaskResponse, 120),
    RpcMethod("Power", m.PowerRequest, m.TaskResponse, 120),
    RpcMethod("Reconfigure", m.ReconfigureRequest, m.TaskResponse, 300),
    RpcMethod("HardwareUpgrade", m.HardwareUpgradeRequest, m.TaskResponse, 300),
    RpcMethod("SnapshotCreate", m.SnapshotCreateRequest, m.SnapshotCreateResponse, 300),
    RpcMethod("SnapshotDelete", m.SnapshotDeleteRequest, m.TaskResponse, 120),
    RpcMethod("SnapshotRevert", m.SnapshotRevertRequest, m.TaskResponse, 300),
    RpcMethod("Clone", m.CloneRequest, m.CloneResponse, 300),
    RpcMethod("ImagePrepare", m.ImagePrepareRequest, m.ImagePrepareResponse, 300),
    RpcMethod("ExportDisk", m.ExportDiskRequest, m.ExportDiskResponse, 1800),
    RpcMethod("ImportDisk", m.ImportDiskRequest, m.ImportDiskResponse, 1800),
    RpcMethod("GetDiskInfo", m.GetDiskInfoRequest, m.GetDiskInfoResponse, 120),
    RpcMethod("ListVMs", m.ListVMsRequest, m.ListVMsResponse, 120),
    RpcMethod("ListHosts", m.ListHostsRequest, m.ListHostsResponse, 120),
    RpcMethod("GetHostInfo", m.GetHostInfoRequest, m.HostInfo, 30),
)

BY_PATH: dict[str, RpcMethod] = {method.path: method for method in METHODS}
BY_ATTRIBUTE: dict[str, RpcMethod] = {method.attribute: method for method in METHODS}
