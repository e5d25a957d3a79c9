"""The messages of `provider.v1` (docs/spec/virtrigaud.md section 3.2). Each field carries its number on the wire.

All fields have protobuf's zero values as defaults, so a message that leaves one out reads as one that sent the zero. Values of
fields that may hold credentials or a guest's data never appear in a representation.
"""

import enum
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, dataclass_transform, get_type_hints

import msgspec

_HIDDEN = "<hidden>"


class WireField(msgspec.Struct, frozen=True):
    """The number of a field, and what its Python type does not say."""

    number: int
    # of integers
    bits: int = 64
    # the value appears in no representation
    secret: bool = False


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class _MessageMeta(msgspec.StructMeta):
    """Makes every message frozen and keyword-only, without each class having to say so."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> "_MessageMeta":
        return super().__new__(mcls, name, bases, namespace, frozen=True, kw_only=True, **options)


class WireMessage(msgspec.Struct, metaclass=_MessageMeta):
    _fields: ClassVar[Mapping[str, WireField] | None] = None

    @classmethod
    def wire_fields(cls) -> Mapping[str, WireField]:
        """The fields by name, in the order of their declaration."""
        if (known := cls.__dict__.get("_fields")) is not None:
            return dict(known)
        hints = get_type_hints(cls, include_extras=True)
        found = {name: _wire_field(hints[name]) for name in cls.__struct_fields__}
        cls._fields = found
        return found

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        found = ((name, field, getattr(self, name)) for name, field in self.wire_fields().items())
        return [(name, _HIDDEN if field.secret else value) for name, field, value in found if value]

    def __repr__(self) -> str:
        shown = (f"{name}={value if value is _HIDDEN else repr(value)}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({', '.join(shown)})"


def _wire_field(hint: Any) -> WireField:
    for extra in getattr(hint, "__metadata__", ()):
        if isinstance(extra, WireField):
            return extra
    raise TypeError(f"a field of a message has no number: {hint!r}")


class PowerOp(enum.IntEnum):
    UNSPECIFIED = 0
    ON = 1
    OFF = 2
    REBOOT = 3
    SHUTDOWN_GRACEFUL = 4


class HostHealth(enum.IntEnum):
    """The health of a host in a clustered provider's inventory."""

    UNSPECIFIED = 0
    READY = 1
    NOT_READY = 2


class TaskRef(WireMessage):
    """A task that goes on after its call has returned. The id means something to the provider only."""

    id: Annotated[str, WireField(1)] = ""


class ObjectIdentity(WireMessage):
    """A Kubernetes object. Only the uid identifies it; namespace and name are for naming and for people."""

    uid: Annotated[str, WireField(1)] = ""
    namespace: Annotated[str, WireField(2)] = ""
    name: Annotated[str, WireField(3)] = ""


class TaskResponse(WireMessage):
    """The answer to a call that may go on as a task; without one, all is done."""

    task: Annotated[TaskRef | None, WireField(1)] = None


class ValidateRequest(WireMessage):
    """Asks whether the hypervisor can be reached with the provider's credentials."""


class ValidateResponse(WireMessage):
    """`message` says what is wrong if `ok` is false, and `reason` is its reason code (base/reasons.py)."""

    ok: Annotated[bool, WireField(1)] = False
    message: Annotated[str, WireField(2)] = ""
    reason: Annotated[str, WireField(3)] = ""


class CreateRequest(WireMessage):
    """A machine to create. The `_json` members hold what `payloads` describes."""

    name: Annotated[str, WireField(1)] = ""
    user_data: Annotated[bytes, WireField(2, secret=True)] = b""
    class_json: Annotated[str, WireField(3, secret=True)] = ""
    image_json: Annotated[str, WireField(4, secret=True)] = ""
    networks_json: Annotated[str, WireField(5)] = ""
    disks_json: Annotated[str, WireField(6)] = ""
    placement_json: Annotated[str, WireField(7)] = ""
    tags: Annotated[tuple[str, ...], WireField(8)] = ()
    meta_data: Annotated[bytes, WireField(9, secret=True)] = b""
    # of clustered providers only: the host that the machine must be created on
    target_host_id: Annotated[str, WireField(10)] = ""
    # the VirtualMachine; a machine of this name with another owner is a conflict
    owner: Annotated[ObjectIdentity | None, WireField(11)] = None


class CreateResponse(WireMessage):
    """The machine's id with this provider, and the task that still works on it."""

    id: Annotated[str, WireField(1)] = ""
    task: Annotated[TaskRef | None, WireField(2)] = None


class DeleteRequest(WireMessage):
    """A machine to delete, running or not."""

    id: Annotated[str, WireField(1)] = ""
    target_host_id: Annotated[str, WireField(2)] = ""
    owner: Annotated[ObjectIdentity | None, WireField(3)] = None


class PowerRequest(WireMessage):
    """A change of power. A graceful shutdown becomes a forced one after the timeout; zero and less mean 60 seconds."""

    id: Annotated[str, WireField(1)] = ""
    op: Annotated[PowerOp, WireField(2)] = PowerOp.UNSPECIFIED
    graceful_timeout_seconds: Annotated[int, WireField(3, bits=32)] = 0
    target_host_id: Annotated[str, WireField(4)] = ""
    owner: Annotated[ObjectIdentity | None, WireField(5)] = None


class ReconfigureRequest(WireMessage):
    """The whole desired state of a machine (`payloads.DesiredPayload`), not a difference."""

    id: Annotated[str, WireField(1)] = ""
    desired_json: Annotated[str, WireField(2, secret=True)] = ""
    target_host_id: Annotated[str, WireField(3)] = ""
    owner: Annotated[ObjectIdentity | None, WireField(4)] = None


class HardwareUpgradeRequest(WireMessage):
    """A newer version of virtual hardware, as vSphere counts them."""

    id: Annotated[str, WireField(1)] = ""
    target_version: Annotated[int, WireField(2, bits=32)] = 0
    target_host_id: Annotated[str, WireField(3)] = ""


class DescribeRequest(WireMessage):
    """A machine whose state is wanted."""

    id: Annotated[str, WireField(1)] = ""
    target_host_id: Annotated[str, WireField(2)] = ""
    owner: Annotated[ObjectIdentity | None, WireField(3)] = None


class DescribeResponse(WireMessage):
    """The state of a machine. `exists` is false only if the hypervisor positively does not have it."""

    exists: Annotated[bool, WireField(1)] = False
    # On, Off, Suspended or Unknown
    power_state: Annotated[str, WireField(2)] = ""
    ips: Annotated[tuple[str, ...], WireField(3)] = ()
    # may carry a ticket
    console_url: Annotated[str, WireField(4, secret=True)] = ""
    # an object of strings
    provider_raw_json: Annotated[str, WireField(5)] = ""


class TaskStatusRequest(WireMessage):
    """A task whose state is wanted."""

    task: Annotated[TaskRef | None, WireField(1)] = None


class TaskStatusResponse(WireMessage):
    """An error is the end of a task whatever `done` says."""

    done: Annotated[bool, WireField(1)] = False
    error: Annotated[str, WireField(2)] = ""
    # the reason code of the error, one of base/reasons.py
    reason: Annotated[str, WireField(3)] = ""


class SnapshotCreateRequest(WireMessage):
    vm_id: Annotated[str, WireField(1)] = ""
    name_hint: Annotated[str, WireField(2)] = ""
    include_memory: Annotated[bool, WireField(3)] = False
    description: Annotated[str, WireField(4)] = ""
    target_host_id: Annotated[str, WireField(5)] = ""


class SnapshotCreateResponse(WireMessage):
    """The snapshot's id with this provider."""

    snapshot_id: Annotated[str, WireField(1)] = ""
    task: Annotated[TaskRef | None, WireField(2)] = None


class SnapshotDeleteRequest(WireMessage):
    vm_id: Annotated[str, WireField(1)] = ""
    snapshot_id: Annotated[str, WireField(2)] = ""
    target_host_id: Annotated[str, WireField(3)] = ""


class SnapshotRevertRequest(WireMessage):
    """A snapshot to go back to."""

    vm_id: Annotated[str, WireField(1)] = ""
    snapshot_id: Annotated[str, WireField(2)] = ""
    target_host_id: Annotated[str, WireField(3)] = ""


class CloneRequest(WireMessage):
    source_vm_id: Annotated[str, WireField(1)] = ""
    target_name: Annotated[str, WireField(2)] = ""
    linked: Annotated[bool, WireField(3)] = False
    class_json: Annotated[str, WireField(4, secret=True)] = ""
    placement_json: Annotated[str, WireField(5)] = ""
    customize_json: Annotated[str, WireField(6, secret=True)] = ""
    # of clustered providers only: the host of the source
    source_host_id: Annotated[str, WireField(7)] = ""
    # the VirtualMachine that the clone will belong to; it has no uid yet
    target_vm: Annotated[ObjectIdentity | None, WireField(8)] = None


class CloneResponse(WireMessage):
    """The clone's id with this provider."""

    target_vm_id: Annotated[str, WireField(1)] = ""
    task: Annotated[TaskRef | None, WireField(2)] = None


class ImagePrepareRequest(WireMessage):
    """An image to prepare; `image_json` is the spec of a VMImage as in a manifest."""

    image_json: Annotated[str, WireField(1, secret=True)] = ""
    target_name: Annotated[str, WireField(2)] = ""
    storage_hint: Annotated[str, WireField(3)] = ""


class ImagePrepareResponse(WireMessage):
    """The prepared image: by id or name, or by path."""

    task: Annotated[TaskRef | None, WireField(1)] = None
    prepared_image_id: Annotated[str, WireField(2)] = ""
    prepared_image_path: Annotated[str, WireField(3)] = ""


class ExportDiskRequest(WireMessage):
    """A disk to copy to a staging backend. An empty `disk_id` means the primary disk."""

    vm_id: Annotated[str, WireField(1)] = ""
    disk_id: Annotated[str, WireField(2)] = ""
    snapshot_id: Annotated[str, WireField(3)] = ""
    destination_url: Annotated[str, WireField(4, secret=True)] = ""
    format: Annotated[str, WireField(5)] = ""
    compress: Annotated[bool, WireField(6)] = False
    credentials: Annotated[dict[str, str], WireField(7, secret=True)] = {}
    # pvc, nfs or s3; empty means pvc
    backend_type: Annotated[str, WireField(8)] = ""
    # auto, relay or direct
    transfer_mode: Annotated[str, WireField(9)] = ""
    storage_options_json: Annotated[str, WireField(10, secret=True)] = ""
    target_host_id: Annotated[str, WireField(11)] = ""


class ExportDiskResponse(WireMessage):
    """The export's id, and the SHA-256 of the stored object in hex."""

    export_id: Annotated[str, WireField(1)] = ""
    task: Annotated[TaskRef | None, WireField(2)] = None
    estimated_size_bytes: Annotated[int, WireField(3)] = 0
    checksum: Annotated[str, WireField(4)] = ""


class ImportDiskRequest(WireMessage):
    """A disk to copy from a staging backend."""

    source_url: Annotated[str, WireField(1, secret=True)] = ""
    storage_hint: Annotated[str, WireField(2)] = ""
    format: Annotated[str, WireField(3)] = ""
    target_name: Annotated[str, WireField(4)] = ""
    verify_checksum: Annotated[bool, WireField(5)] = False
    expected_checksum: Annotated[str, WireField(6)] = ""
    credentials: Annotated[dict[str, str], WireField(7, secret=True)] = {}
    backend_type: Annotated[str, WireField(8)] = ""
    transfer_mode: Annotated[str, WireField(9)] = ""
    storage_options_json: Annotated[str, WireField(10, secret=True)] = ""
    # the VirtualMachine that the disk will belong to; it has no uid yet
    target_vm: Annotated[ObjectIdentity | None, WireField(11)] = None


class ImportDiskResponse(WireMessage):
    """The disk's id and path, and its SHA-256 in hex."""

    disk_id: Annotated[str, WireField(1)] = ""
    path: Annotated[str, WireField(2)] = ""
    task: Annotated[TaskRef | None, WireField(3)] = None
    actual_size_bytes: Annotated[int, WireField(4)] = 0
    checksum: Annotated[str, WireField(5)] = ""


class GetDiskInfoRequest(WireMessage):
    """A disk whose size and format are wanted."""

    vm_id: Annotated[str, WireField(1)] = ""
    disk_id: Annotated[str, WireField(2)] = ""
    snapshot_id: Annotated[str, WireField(3)] = ""
    target_host_id: Annotated[str, WireField(4)] = ""


class GetDiskInfoResponse(WireMessage):
    """The size and format of a disk."""

    disk_id: Annotated[str, WireField(1)] = ""
    format: Annotated[str, WireField(2)] = ""
    virtual_size_bytes: Annotated[int, WireField(3)] = 0
    actual_size_bytes: Annotated[int, WireField(4)] = 0
    path: Annotated[str, WireField(5)] = ""
    is_bootable: Annotated[bool, WireField(6)] = False
    snapshots: Annotated[tuple[str, ...], WireField(7)] = ()
    backing_file: Annotated[str, WireField(8)] = ""
    metadata: Annotated[dict[str, str], WireField(9)] = {}


class VMDiskInfo(WireMessage):
    """A disk of a machine in a list (upstream's DiskInfo)."""

    id: Annotated[str, WireField(1)] = ""
    path: Annotated[str, WireField(2)] = ""
    size_gib: Annotated[int, WireField(3, bits=32)] = 0
    format: Annotated[str, WireField(4)] = ""


class VMNetworkInfo(WireMessage):
    """A network interface of a machine in a list (upstream's NetworkInfo)."""

    name: Annotated[str, WireField(1)] = ""
    mac: Annotated[str, WireField(2)] = ""
    ip_address: Annotated[str, WireField(3)] = ""


# The key of `provider_raw` under which a list names the uid of a machine's owner. Upstream's providers name none.
OWNER_UID = "ownerUID"


class VMInfo(WireMessage):
    """A machine in a list."""

    id: Annotated[str, WireField(1)] = ""
    name: Annotated[str, WireField(2)] = ""
    power_state: Annotated[str, WireField(3)] = ""
    ips: Annotated[tuple[str, ...], WireField(4)] = ()
    cpu: Annotated[int, WireField(5, bits=32)] = 0
    memory_mib: Annotated[int, WireField(6)] = 0
    disks: Annotated[tuple[VMDiskInfo, ...], WireField(7)] = ()
    networks: Annotated[tuple[VMNetworkInfo, ...], WireField(8)] = ()
    provider_raw: Annotated[dict[str, str], WireField(9)] = {}


class ListVMsRequest(WireMessage):
    """Asks for every machine that the provider can see, managed or not."""


class ListVMsResponse(WireMessage):
    """Every machine that the provider can see."""

    vms: Annotated[tuple[VMInfo, ...], WireField(1)] = ()


class ListHostsRequest(WireMessage):
    """Asks a clustered provider for its hosts."""


class HostInfo(WireMessage):
    """A host of a clustered provider."""

    id: Annotated[str, WireField(1)] = ""
    address: Annotated[str, WireField(2)] = ""
    allocatable_cpu: Annotated[int, WireField(3, bits=32)] = 0
    allocatable_mem_mib: Annotated[int, WireField(4)] = 0
    # bytes
    allocatable_storage: Annotated[int, WireField(5)] = 0
    health: Annotated[HostHealth, WireField(6)] = HostHealth.UNSPECIFIED
    labels: Annotated[dict[str, str], WireField(7)] = {}
    cpu_model: Annotated[str, WireField(8)] = ""
    cpu_features: Annotated[tuple[str, ...], WireField(9)] = ()
    machine_types: Annotated[tuple[str, ...], WireField(10)] = ()
    emulator_version: Annotated[str, WireField(11)] = ""


class ListHostsResponse(WireMessage):
    """The hosts of a clustered provider."""

    hosts: Annotated[tuple[HostInfo, ...], WireField(1)] = ()


class GetHostInfoRequest(WireMessage):
    """A host whose state is wanted."""

    host_id: Annotated[str, WireField(1)] = ""


class GetCapabilitiesRequest(WireMessage):
    """Asks what the provider can do."""


class GetCapabilitiesResponse(WireMessage):
    """What the provider can do. An empty list of backends means pvc only, of transfer modes relay only."""

    supports_reconfigure_online: Annotated[bool, WireField(1)] = False
    supports_disk_expansion_online: Annotated[bool, WireField(2)] = False
    supports_snapshots: Annotated[bool, WireField(3)] = False
    supports_memory_snapshots: Annotated[bool, WireField(4)] = False
    supports_linked_clones: Annotated[bool, WireField(5)] = False
    supports_image_import: Annotated[bool, WireField(6)] = False
    supported_disk_types: Annotated[tuple[str, ...], WireField(7)] = ()
    supported_network_types: Annotated[tuple[str, ...], WireField(8)] = ()
    supports_disk_export: Annotated[bool, WireField(9)] = False
    supports_disk_import: Annotated[bool, WireField(10)] = False
    supported_export_formats: Annotated[tuple[str, ...], WireField(11)] = ()
    supported_import_formats: Annotated[tuple[str, ...], WireField(12)] = ()
    supports_export_compression: Annotated[bool, WireField(13)] = False
    supported_export_backends: Annotated[tuple[str, ...], WireField(14)] = ()
    supported_import_backends: Annotated[tuple[str, ...], WireField(15)] = ()
    supported_transfer_modes: Annotated[tuple[str, ...], WireField(16)] = ()
    # the provider has several hosts, lists them, and takes `target_host_id`
    supports_clustering: Annotated[bool, WireField(17)] = False
