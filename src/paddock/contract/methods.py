"""The RPCs of `provider.v1` (docs/spec/virtrigaud.md section 3.1), and those of Paddock's extension service beside it."""

import re
from typing import Any, Generic, TypeVar

import msgspec

from paddock.contract import extensionmessages as x
from paddock.contract import messages as m

SERVICE = "provider.v1.Provider"
EXTENSION_SERVICE = "paddock.provider.v1.Extensions"
Q = TypeVar("Q", bound=m.WireMessage)
R = TypeVar("R", bound=m.WireMessage)


class RpcMethod(msgspec.Struct, Generic[Q, R], frozen=True):
    """An RPC: its name, its messages, and the seconds that a caller waits for it."""

    name: str
    request: type[Q]
    response: type[R]
    deadline: float
    service: str = SERVICE

    @property
    def path(self) -> str:
        """The path of the HTTP/2 request."""
        return f"/{self.service}/{self.name}"

    @property
    def attribute(self) -> str:
        """The name of the coroutine of `driver.Driver`."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name).lower()


VALIDATE = RpcMethod("Validate", m.ValidateRequest, m.ValidateResponse, 30)
GET_CAPABILITIES = RpcMethod("GetCapabilities", m.GetCapabilitiesRequest, m.GetCapabilitiesResponse, 30)
DESCRIBE = RpcMethod("Describe", m.DescribeRequest, m.DescribeResponse, 30)
TASK_STATUS = RpcMethod("TaskStatus", m.TaskStatusRequest, m.TaskStatusResponse, 10)
CREATE = RpcMethod("Create", m.CreateRequest, m.CreateResponse, 300)
DELETE = RpcMethod("Delete", m.DeleteRequest, m.TaskResponse, 120)
POWER = RpcMethod("Power", m.PowerRequest, m.TaskResponse, 120)
RECONFIGURE = RpcMethod("Reconfigure", m.ReconfigureRequest, m.TaskResponse, 300)
HARDWARE_UPGRADE = RpcMethod("HardwareUpgrade", m.HardwareUpgradeRequest, m.TaskResponse, 300)
SNAPSHOT_CREATE = RpcMethod("SnapshotCreate", m.SnapshotCreateRequest, m.SnapshotCreateResponse, 300)
SNAPSHOT_DELETE = RpcMethod("SnapshotDelete", m.SnapshotDeleteRequest, m.TaskResponse, 120)
SNAPSHOT_REVERT = RpcMethod("SnapshotRevert", m.SnapshotRevertRequest, m.TaskResponse, 300)
CLONE = RpcMethod("Clone", m.CloneRequest, m.CloneResponse, 300)
IMAGE_PREPARE = RpcMethod("ImagePrepare", m.ImagePrepareRequest, m.ImagePrepareResponse, 300)
EXPORT_DISK = RpcMethod("ExportDisk", m.ExportDiskRequest, m.ExportDiskResponse, 1800)
IMPORT_DISK = RpcMethod("ImportDisk", m.ImportDiskRequest, m.ImportDiskResponse, 1800)
GET_DISK_INFO = RpcMethod("GetDiskInfo", m.GetDiskInfoRequest, m.GetDiskInfoResponse, 120)
LIST_VMS = RpcMethod("ListVMs", m.ListVMsRequest, m.ListVMsResponse, 120)
LIST_HOSTS = RpcMethod("ListHosts", m.ListHostsRequest, m.ListHostsResponse, 120)
GET_HOST_INFO = RpcMethod("GetHostInfo", m.GetHostInfoRequest, m.HostInfo, 30)

METHODS: tuple[RpcMethod[Any, Any], ...] = (
    VALIDATE,
    GET_CAPABILITIES,
    DESCRIBE,
    TASK_STATUS,
    CREATE,
    DELETE,
    POWER,
    RECONFIGURE,
    HARDWARE_UPGRADE,
    SNAPSHOT_CREATE,
    SNAPSHOT_DELETE,
    SNAPSHOT_REVERT,
    CLONE,
    IMAGE_PREPARE,
    EXPORT_DISK,
    IMPORT_DISK,
    GET_DISK_INFO,
    LIST_VMS,
    LIST_HOSTS,
    GET_HOST_INFO,
)

GET_FEATURES = RpcMethod("GetFeatures", x.GetFeaturesRequest, x.GetFeaturesResponse, 30, EXTENSION_SERVICE)
EXEC = RpcMethod("Exec", x.ExecRequest, x.ExecResponse, 330, EXTENSION_SERVICE)
IMAGE_DELETE = RpcMethod("ImageDelete", x.ImageDeleteRequest, m.TaskResponse, 120, EXTENSION_SERVICE)
TRANSFER_DELETE = RpcMethod("TransferDelete", x.TransferDeleteRequest, m.TaskResponse, 300, EXTENSION_SERVICE)
LIST_DATASTORES = RpcMethod("ListDatastores", x.ListDatastoresRequest, x.ListDatastoresResponse, 120, EXTENSION_SERVICE)

EXTENSIONS: tuple[RpcMethod[Any, Any], ...] = (GET_FEATURES, EXEC, IMAGE_DELETE, TRANSFER_DELETE, LIST_DATASTORES)

BY_PATH: dict[str, RpcMethod[Any, Any]] = {method.path: method for method in (*METHODS, *EXTENSIONS)}
BY_ATTRIBUTE: dict[str, RpcMethod[Any, Any]] = {method.attribute: method for method in (*METHODS, *EXTENSIONS)}
