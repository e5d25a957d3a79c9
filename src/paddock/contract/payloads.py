"""The JSON inside messages (docs/spec/virtrigaud.md section 3.4): the contract's structs, under the names that Go gives their fields.

Go writes every field. An absent object, map or list is `null`, never `{}` or `[]`; a text or a number that was not set is its zero.
Reading is as lenient as Go's: `null` is the zero of any field, unknown keys are skipped, and a key whose case differs counts if no
key has the exact name.

Members that only Paddock has are `UNSET`, and not written, unless they say something: so what upstream's providers get from us without them
is byte for byte what upstream's manager sends, and with them they skip keys that they do not know.
"""

from typing import Any, ClassVar, TypeVar, dataclass_transform

import msgspec
from msgspec import UNSET, UnsetType

from paddock.base.errors import Terminal

_ENCODER = msgspec.json.Encoder(order="deterministic")
_HIDDEN = "<hidden>"


class InvalidPayload(Terminal):
    """A JSON member of a message that does not fit its contract."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class _PayloadMeta(msgspec.StructMeta):
    """Makes every payload frozen and keyword-only, with names in CamelCase."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> "_PayloadMeta":
        return super().__new__(mcls, name, bases, namespace, frozen=True, kw_only=True, **options)


class JsonPayload(msgspec.Struct, metaclass=_PayloadMeta):
    # fields that may hold credentials or a guest's data, and appear in no representation
    SECRET: ClassVar[frozenset[str]] = frozenset()

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        pairs = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [(name, _HIDDEN if value and name in self.SECRET else value) for name, value in pairs]

    def __repr__(self) -> str:
        shown = (f"{name}={value if value is _HIDDEN else repr(value)}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({', '.join(shown)})"


class DiskDefaultsPayload(JsonPayload, rename={"type": "Type", "size_gib": "SizeGiB", "iops": "IOPS", "storage_class": "StorageClass"}):
    """The disk settings of a class. The last two are Paddock's own: each disk's most operations a second, the place of the root disk."""

    type: str = ""
    size_gib: int = 0
    iops: int | UnsetType = UNSET
    storage_class: str | UnsetType = UNSET


class PerformancePayload(
    JsonPayload,
    rename={
        "latency_sensitivity": "LatencySensitivity",
        "cpu_hot_add_enabled": "CPUHotAddEnabled",
        "memory_hot_add_enabled": "MemoryHotAddEnabled",
        "virtualization_based_security": "VirtualizationBasedSecurity",
        "nested_virtualization": "NestedVirtualization",
        "hyper_threading_policy": "HyperThreadingPolicy",
    },
):
    """The performance profile of a class."""

    latency_sensitivity: str = ""
    cpu_hot_add_enabled: bool = False
    memory_hot_add_enabled: bool = False
    virtualization_based_security: bool = False
    nested_virtualization: bool = False
    hyper_threading_policy: str = ""


class SecurityPayload(
    JsonPayload,
    rename={
        "secure_boot": "SecureBoot",
        "tpm_enabled": "TPMEnabled",
        "tpm_version": "TPMVersion",
        "vtd_enabled": "VTDEnabled",
        "encryption_enabled": "EncryptionEnabled",
        "key_provider": "KeyProvider",
        "require_encryption": "RequireEncryption",
    },
):
    """The security profile of a class."""

    secure_boot: bool = False
    tpm_enabled: bool = False
    tpm_version: str = ""
    vtd_enabled: bool = False
    encryption_enabled: bool = False
    key_provider: str = ""
    require_encryption: bool = False


class LimitsPayload(
    JsonPayload,
    rename={
        "cpu_limit": "CPULimit",
        "cpu_reservation": "CPUReservation",
        "memory_limit_mib": "MemoryLimitMiB",
        "memory_reservation_mib": "MemoryReservationMiB",
        "cpu_shares": "CPUShares",
    },
):
    """The resource limits of a class."""

    cpu_limit: int | None = None
    cpu_reservation: int | None = None
    memory_limit_mib: int | None = None
    memory_reservation_mib: int | None = None
    cpu_shares: int | None = None


class GpuPayload(JsonPayload, rename={"count": "Count", "type": "Type", "memory_mib": "MemoryMiB"}):
    """Graphics processors of a machine; Paddock's own."""

    count: int = 0
    type: str = ""
    memory_mib: int = 0


class ClassPayload(
    JsonPayload,
    rename={
        "cpu": "CPU",
        "memory_mib": "MemoryMiB",
        "firmware": "Firmware",
        "disk_defaults": "DiskDefaults",
        "guest_tools_policy": "GuestToolsPolicy",
        "extra_config": "ExtraConfig",
        "performance_profile": "PerformanceProfile",
        "security_profile": "SecurityProfile",
        "resource_limits": "ResourceLimits",
        "gpu": "GPU",
    },
):
    """`class_json` of a create: the hardware of a machine."""

    SECRET = frozenset({"extra_config"})

    cpu: int = 0
    memory_mib: int = 0
    firmware: str = ""
    disk_defaults: DiskDefaultsPayload | None = None
    guest_tools_policy: str = ""
    extra_config: dict[str, str] | None = None
    performance_profile: PerformancePayload | None = None
    security_profile: SecurityPayload | None = None
    resource_limits: LimitsPayload | None = None
    gpu: GpuPayload | UnsetType = UNSET


class ImagePayload(
    JsonPayload,
    rename={
        "template_name": "TemplateName",
        "path": "Path",
        "url": "URL",
        "format": "Format",
        "checksum": "Checksum",
        "checksum_type": "ChecksumType",
        "full_clone": "FullClone",
        "node": "Node",
    },
):
    """`image_json` of a create: where the machine's first disk comes from. For Proxmox the template's name is its VMID.

    The last two are Paddock's own: whether a template is copied or linked, and the node that has the template.
    """

    SECRET = frozenset({"url"})

    template_name: str = ""
    path: str = ""
    url: str = ""
    format: str = ""
    checksum: str = ""
    checksum_type: str = ""
    full_clone: bool | UnsetType = UNSET
    node: str | UnsetType = UNSET


class QosPayload(
    JsonPayload,
    rename={"ingress_limit": "IngressLimit", "egress_limit": "EgressLimit", "priority": "Priority", "dscp": "DSCP"},
):
    """Bounds of a card's traffic, as the guest sees it, in bits a second; Paddock's own."""

    ingress_limit: int | None = None
    egress_limit: int | None = None
    priority: int | None = None
    dscp: int | None = None


class NetworkSecurityPayload(
    JsonPayload,
    rename={
        "firewall": "Firewall",
        "isolation": "Isolation",
        "encryption": "Encryption",
        "forbid_promiscuous": "ForbidPromiscuous",
        "forbid_mac_changes": "ForbidMACChanges",
        "forbid_forged_transmits": "ForbidForgedTransmits",
    },
):
    """The security of a card's network; Paddock's own. The first three are the members of the manifest's `security`."""

    firewall: dict[str, Any] | None = None
    isolation: dict[str, Any] | None = None
    encryption: dict[str, Any] | None = None
    forbid_promiscuous: bool = False
    forbid_mac_changes: bool = False
    forbid_forged_transmits: bool = False


class NetworkPayload(
    JsonPayload,
    rename={
        "name": "Name",
        "portgroup": "Portgroup",
        "network_name": "NetworkName",
        "bridge": "Bridge",
        "vlan": "VLAN",
        "model": "Model",
        "mac_address": "MacAddress",
        "ip_policy": "IPPolicy",
        "static_ip": "StaticIP",
        "prefix": "Prefix",
        "gateway": "Gateway",
        "dns": "DNS",
        "pci_slot_number": "PCISlotNumber",
        "qos": "QoS",
        "security": "Security",
        "mtu": "MTU",
        "nic_firewall": "Firewall",
        "rate_limit": "RateLimit",
        "driver": "Driver",
        "filter_ref": "FilterRef",
        "switch": "DistributedSwitch",
        "vlans": "VLANs",
        "shaping": "TrafficShaping",
        "routes": "Routes",
        "search_domains": "SearchDomains",
    },
):
    """An entry of `networks_json`. vSphere's portgroup stands in `network_name`, a bridge in `bridge`.

    Those from `qos` on are Paddock's own. Objects have the members of the manifest.
    """

    name: str = ""
    portgroup: str = ""
    network_name: str = ""
    bridge: str = ""
    vlan: int = 0
    model: str = ""
    mac_address: str = ""
    ip_policy: str = ""
    static_ip: str = ""
    prefix: int = 0
    gateway: str = ""
    # the addresses of name servers, separated by commas
    dns: str = ""
    pci_slot_number: int | None = None
    qos: QosPayload | UnsetType = UNSET
    security: NetworkSecurityPayload | UnsetType = UNSET
    mtu: int | UnsetType = UNSET
    nic_firewall: bool | UnsetType = UNSET
    # megabytes a second
    rate_limit: int | UnsetType = UNSET
    driver: dict[str, Any] | UnsetType = UNSET
    filter_ref: dict[str, Any] | UnsetType = UNSET
    switch: dict[str, Any] | UnsetType = UNSET
    # a trunk or a private VLAN
    vlans: dict[str, Any] | UnsetType = UNSET
    shaping: dict[str, Any] | UnsetType = UNSET
    routes: tuple[dict[str, Any], ...] | UnsetType = UNSET
    search_domains: tuple[str, ...] | UnsetType = UNSET


class ScsiPayload(JsonPayload, rename={"controller": "Controller", "shared_bus": "SharedBus", "controller_type": "ControllerType"}):
    """The SCSI controller of a disk; Paddock's own."""

    controller: int | None = None
    shared_bus: str = ""
    controller_type: str = ""


class DiskPayload(
    JsonPayload,
    rename={"size_gib": "SizeGiB", "type": "Type", "name": "Name", "storage_class": "StorageClass", "scsi": "SCSI", "path": "Path"},
):
    """An entry of `disks_json`: a disk beside the image's."""

    size_gib: int = 0
    type: str = ""
    name: str = ""
    storage_class: str | UnsetType = UNSET
    scsi: ScsiPayload | UnsetType = UNSET
    # an imported disk that becomes this one
    path: str | UnsetType = UNSET


class PlacementPayload(
    JsonPayload,
    rename={
        "datastore": "Datastore",
        "storage_pod": "StoragePod",
        "cluster": "Cluster",
        "folder": "Folder",
        "host": "Host",
        "resource_pool": "ResourcePool",
    },
):
    """`placement_json`: hints. The member is the empty text when there are none."""

    datastore: str = ""
    storage_pod: str = ""
    cluster: str = ""
    folder: str = ""
    host: str = ""
    resource_pool: str | UnsetType = UNSET


class UserDataPayload(JsonPayload, rename={"cloud_init_data": "CloudInitData", "type": "Type"}):
    """The user data of a desired state."""

    SECRET = frozenset({"cloud_init_data"})

    cloud_init_data: str = ""
    type: str = ""


class MetaDataPayload(JsonPayload, rename={"meta_data_yaml": "MetaDataYAML"}):
    """The metadata of a desired state."""

    SECRET = frozenset({"meta_data_yaml"})

    meta_data_yaml: str = ""


class DesiredPayload(
    JsonPayload,
    rename={
        "name": "Name",
        "machine_class": "Class",
        "image": "Image",
        "networks": "Networks",
        "disks": "Disks",
        "user_data": "UserData",
        "meta_data": "MetaData",
        "placement": "Placement",
        "tags": "Tags",
    },
):
    """`desired_json` of a reconfigure: the whole machine, with objects where a create has JSON texts."""

    name: str = ""
    machine_class: ClassPayload = ClassPayload()
    image: ImagePayload = ImagePayload()
    networks: tuple[NetworkPayload, ...] | None = None
    disks: tuple[DiskPayload, ...] | None = None
    user_data: UserDataPayload | None = None
    meta_data: MetaDataPayload | None = None
    placement: PlacementPayload | None = None
    tags: tuple[str, ...] | None = None


P = TypeVar("P", bound=JsonPayload)


def encode(payload: JsonPayload | None) -> str:
    """Return the JSON of an object; the empty text for none."""
    return "" if payload is None else _ENCODER.encode(payload).decode()


def encode_list(payloads: tuple[JsonPayload, ...]) -> str:
    """Return the JSON of a list; `null` for an empty one, as Go writes it."""
    return _ENCODER.encode(payloads or None).decode()


def encode_manifest(value: dict[str, Any]) -> str:
    """Return the JSON of an object that has no contract of its own, as the spec of a VMImage."""
    return _ENCODER.encode(value).decode()


def decode(text: str, kind: type[P]) -> P:
    """Return the object of a JSON text, that of nothing for an empty text or `null`; raise `InvalidPayload` if it does not fit."""
    return _convert(_parse(text, kind.__name__), kind) or kind()


def decode_optional(text: str, kind: type[P]) -> P | None:
    """Return the object of a JSON text, None for an empty text or `null`; raise `InvalidPayload` if it does not fit."""
    return _convert(_parse(text, kind.__name__), kind)


def decode_list(text: str, kind: type[P]) -> tuple[P, ...]:
    """Return the objects of a JSON list, none for an empty text or `null`; raise `InvalidPayload` if they do not fit."""
    value = _parse(text, kind.__name__)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidPayload(f"cannot read {kind.__name__}", why="the JSON is not a list")
    return tuple(_convert(each, kind) or kind() for each in value)


def decode_manifest(text: str) -> dict[str, Any]:
    """Return an object that has no contract of its own, an empty one for an empty text or `null`."""
    value = _parse(text, "an object")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidPayload("cannot read an object", why="the JSON is something else")
    return value


def _parse(text: str, name: str) -> Any:
    if not text.strip():
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        # The reason may quote the text, which may hold a guest's data.
        raise InvalidPayload(f"cannot read {name}", why="it is not JSON") from None


def _convert(value: Any, kind: type[P]) -> P | None:
    if value is None:
        return None
    try:
        return msgspec.convert(_normalized(value, kind), kind)
    except msgspec.ValidationError as error:
        raise InvalidPayload(f"cannot read {kind.__name__}", why=str(error)) from None


def _normalized(value: Any, kind: type[JsonPayload]) -> Any:
    """The value without what is null, with the exact names of the contract, here and in nested objects."""
    if not isinstance(value, dict):
        return value
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    folded = {name.lower(): name for name in fields}
    made: dict[str, Any] = {}
    for key, member in value.items():
        name = key if key in fields else folded.get(key.lower())
        if name is None or member is None or (name != key and name in value):
            continue
        made[name] = _normalized_member(member, fields[name].type)
    return made


def _normalized_member(member: Any, hint: Any) -> Any:
    nested = _nested(hint)
    if nested is None:
        return member
    if isinstance(member, list):
        return [_normalized(each, nested) if each is not None else {} for each in member]
    return _normalized(member, nested)


def _nested(hint: Any) -> type[JsonPayload] | None:
    """The payload in a type such as `X`, `X | None` or `tuple[X, ...] | None`."""
    if isinstance(hint, type) and issubclass(hint, JsonPayload):
        return hint
    for part in getattr(hint, "__args__", ()):
        if (found := _nested(part)) is not None:
            return found
    return None
