"""The hardware that a description asks for, as Firecracker can have it. Pure.

What Firecracker does not have is refused if the machine would not be what was asked for, and a limitation otherwise.
"""

import hashlib
import re
from collections.abc import Mapping

import msgspec

from paddock.contract import payloads
from paddock.contract.description import MachineDescription
from paddock.contract.payloads import ClassPayload, DiskPayload, ImagePayload, NetworkPayload, PlacementPayload
from paddock_drivers.firecracker import apifacts
from paddock_drivers.firecracker.records import ROOT_DISK, ImageOrigin, MicroVmDisk, MicroVmNic, MicroVmSpec
from paddock_drivers.firecracker.settings import FirecrackerSettings
from paddock_drivers.kit import refusals

_GIB = 1 << 30
_MOST_MIB, _MOST_GIB, _MOST_DISKS, _MOST_NICS = 1 << 24, 65536, 20, 8
_PREFIX = "firecracker."
_KERNEL, _INITRD, _ARGUMENTS, _VSOCK, _METRICS, _MMDS, _BANDWIDTH, _OPERATIONS = (
    *(f"{_PREFIX}{each}" for each in ("kernel", "initrd", "bootArgs", "vsock", "metrics", "mmds")),
    *(f"{_PREFIX}{each}" for each in ("diskBandwidth", "diskOperations")),
)
_KEYS = (_KERNEL, _INITRD, _ARGUMENTS, _VSOCK, _METRICS, _MMDS, _BANDWIDTH, _OPERATIONS)
_WORDS = {"true": True, "false": False}
_LONGEST_ARGUMENTS = 1500
_PRINTABLE = re.compile(r"[\x20-\x7e]*\Z")
_MAC = re.compile(r"([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}\Z")
_DEVICE = re.compile(r"[A-Za-z0-9_.-]{1,15}\Z")
_THICK = ("thick", "eagerzeroedthick")
_PLAIN_TYPES = ("", "thin", *_THICK)


class AskedMicroVm(msgspec.Struct, frozen=True, kw_only=True):
    """The wishes of a description. Sizes of disks are 0 where the image decides."""

    spec: MicroVmSpec
    origin: ImageOrigin
    url: str = ""
    checksum: str = ""
    limitations: tuple[str, ...] = ()

    def __repr__(self) -> str:
        # The address of an image may hold a password.
        return f"AskedMicroVm({self.spec!r})"


def asked(description: MachineDescription, settings: FirecrackerSettings, token: str) -> AskedMicroVm:
    """Return what a description asks for; raises InvalidSpec and NotSupported."""
    hardware = description.hardware
    _check(description)
    extra = _extra(hardware.extra_config or {})
    spec = MicroVmSpec(
        cpu=hardware.cpu,
        memory_mib=hardware.memory_mib,
        boot_args=extra.get(_ARGUMENTS, settings.boot_args),
        disks=(_root(hardware), *(_disk(each) for each in description.disks)),
        nics=tuple(_nic(index, each, settings, token) for index, each in enumerate(description.networks)),
        initrd=bool(extra.get(_INITRD)),
        seed=True,
        mmds=bool(description.networks) and _flag(extra, _MMDS, default=True),
        vsock=cid_of(token) if _flag(extra, _VSOCK) else 0,
        metrics=_flag(extra, _METRICS),
        disk_bandwidth=_number(extra, _BANDWIDTH),
        disk_operations=_number(extra, _OPERATIONS) or _operations(hardware),
    )
    origin = _origin(description.image, settings)
    origin = msgspec.structs.replace(origin, kernel=extra.get(_KERNEL, ""), initrd=extra.get(_INITRD, ""))
    checksum = f"{description.image.checksum_type or 'sha256'}:{description.image.checksum}" if description.image.checksum else ""
    url = "" if origin.image or origin.imported or origin.file else description.image.url
    return AskedMicroVm(spec=spec, origin=origin, url=url, checksum=checksum, limitations=limitations(description))


def mac_of(token: str, index: int) -> str:
    """Return the address of an interface that was given none: the same one always, and nobody else's."""
    digest = hashlib.sha256(f"{token}/{index}".encode()).digest()
    return ":".join(f"{each:02x}" for each in (0x06, *digest[:5]))


def tap_of(token: str, index: int) -> str:
    """Return the name of an interface's tap, which has 15 characters at most."""
    return f"fc{token[:10]}n{index}"


def identifier(name: str) -> str:
    """Return what the API calls a disk or an interface: letters, digits and underscores."""
    return name.replace("-", "_")


def cid_of(token: str) -> int:
    """Return the number by which the host reaches a guest over vsock."""
    return 3 + int(token[:7], 16)


def _check(description: MachineDescription) -> None:
    hardware, name = description.hardware, description.name
    if hardware.cpu > apifacts.MOST_CPUS:
        raise refusals.invalid(f'machine "{name}" has too many CPUs', why=f"Firecracker gives a machine {apifacts.MOST_CPUS} at most")
    if hardware.memory_mib > _MOST_MIB:
        raise refusals.invalid(f'machine "{name}" is too large', why=f"it may have {_MOST_MIB} MiB of memory")
    if len(description.disks) > _MOST_DISKS or any(each.size_gib > _MOST_GIB for each in description.disks):
        raise refusals.invalid(f'machine "{name}" has too many or too large disks', why=f"there may be {_MOST_DISKS} of {_MOST_GIB} GiB")
    if any(each.name in (ROOT_DISK, "seed") for each in description.disks):
        raise refusals.invalid('a disk cannot be called "root" or "seed"', why="the driver names its own disks so")
    if len(description.networks) > _MOST_NICS:
        raise refusals.invalid(f'machine "{name}" has too many network interfaces', why=f"there may be {_MOST_NICS}")
    if hardware.security_profile is not None and hardware.security_profile.require_encryption:
        raise refusals.not_supported("disks cannot be encrypted", why="Firecracker has raw disks alone")
    if isinstance(hardware.gpu, payloads.GpuPayload) and hardware.gpu.count:
        raise refusals.not_supported("a machine cannot have a GPU", why="Firecracker has no such device")


def _extra(given: Mapping[str, str]) -> dict[str, str]:
    """The settings of the class that are for Firecracker."""
    own = {name: value for name, value in given.items() if name.startswith(_PREFIX)}
    strange = next((name for name in own if name not in _KEYS), None)
    if strange is not None:
        raise refusals.invalid(f"extraConfig has an unknown key {strange[:64]!r}", fix=f"the keys are {', '.join(_KEYS)}")
    arguments = own.get(_ARGUMENTS, "")
    if len(arguments) > _LONGEST_ARGUMENTS or _PRINTABLE.match(arguments) is None:
        raise refusals.invalid(f"extraConfig {_ARGUMENTS} is no kernel command line", why=f"{_LONGEST_ARGUMENTS} plain characters at most")
    return own


def _flag(extra: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    text = extra.get(name, "")
    if text and text not in _WORDS:
        raise refusals.invalid(f'extraConfig {name} has to be "true" or "false"')
    return _WORDS.get(text, default)


def _number(extra: Mapping[str, str], name: str) -> int:
    text = extra.get(name, "") or "0"
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise refusals.invalid(f"extraConfig {name} has to be a number")
    return int(text)


def _root(hardware: ClassPayload) -> MicroVmDisk:
    defaults = hardware.disk_defaults
    size = defaults.size_gib if defaults is not None else 0
    if not 0 <= size <= _MOST_GIB:
        raise refusals.invalid("the class has no sensible size of disks", why=f"there may be {_MOST_GIB} GiB")
    return MicroVmDisk(ROOT_DISK, size * _GIB, thick=defaults is not None and defaults.type in _THICK)


def _operations(hardware: ClassPayload) -> int:
    """The most operations of each disk in a second that the class asks for; 0 for no limit."""
    return (hardware.disk_defaults.iops or 0) if hardware.disk_defaults is not None else 0


def _disk(disk: DiskPayload) -> MicroVmDisk:
    imported = disk.path if isinstance(disk.path, str) else ""
    return MicroVmDisk(disk.name, disk.size_gib * _GIB, thick=disk.type in _THICK, imported=imported)


def _nic(index: int, network: NetworkPayload, settings: FirecrackerSettings, token: str) -> MicroVmNic:
    name = network.name or f"nic{index}"
    if network.vlan:
        raise refusals.not_supported(f'network "{name}" names a VLAN', why="taps join plain bridges", fix="name a bridge of the VLAN")
    if network.mac_address and _MAC.match(network.mac_address) is None:
        raise refusals.invalid(f'network "{name}" has a MAC address that is none')
    qos = network.qos if isinstance(network.qos, payloads.QosPayload) else payloads.QosPayload()
    return MicroVmNic(
        name=name,
        mac=network.mac_address.lower().replace("-", ":") or mac_of(token, index),
        bridge=_bridge(name, network, settings),
        tap=tap_of(token, index),
        ingress=qos.ingress_limit or 0,
        egress=qos.egress_limit or 0,
        address=network.static_ip,
    )


def _bridge(name: str, network: NetworkPayload, settings: FirecrackerSettings) -> str:
    wanted = network.bridge or network.network_name or network.portgroup or settings.default_network
    if not wanted:
        raise refusals.invalid(
            f'network "{name}" names no bridge',
            fix="set spec.defaults.network of the Provider, or give the network a VMNetworkAttachment with libvirt.bridge or networkName",
        )
    if settings.networks:
        found = settings.networks.get(wanted) or (wanted if wanted in settings.networks.values() else "")
        if not found:
            known = ", ".join(settings.networks)
            raise refusals.not_supported(f'network "{name}" names {wanted[:32]!r}', why=f"machines here may use {known}")
        return found
    if _DEVICE.match(wanted) is None:
        raise refusals.invalid(f'network "{name}" names {wanted[:32]!r}, which is no bridge')
    return wanted


def _origin(image: ImagePayload, settings: FirecrackerSettings) -> ImageOrigin:
    wanted = image.path or image.template_name
    if wanted.startswith("/"):
        if not any(is_below(wanted, str(each)) for each in settings.files):
            raise refusals.not_supported("the image's path is out of reach", fix="name its directory in PROVIDER_FIRECRACKER_FILES")
        return ImageOrigin(file=wanted, format=image.format or "raw")
    if "/" in wanted or wanted.startswith("."):
        raise refusals.invalid("the image's name is none", fix="name a prepared image, an imported disk or an absolute path")
    if not wanted and not image.url:
        raise refusals.invalid("the machine has no image", fix="name a template, a path or a URL")
    return ImageOrigin(image=wanted, format=image.format or "raw")


def is_below(path: str, directory: str) -> bool:
    """Return whether a path leads below a directory."""
    return ".." not in path.split("/") and path.startswith(f"{directory.rstrip('/')}/")


def limitations(description: MachineDescription) -> tuple[str, ...]:
    """Return a sentence for each member that has no effect here."""
    return (
        *_of_class(description.hardware),
        *_of_disks(description.disks),
        *_of_networks(description.networks),
        *_of_placement(description.placement),
    )


def _of_class(hardware: ClassPayload) -> list[str]:
    texts = []
    if hardware.firmware.upper() in ("UEFI", "EFI"):
        texts.append("class.firmware: Firecracker has no firmware; it starts a kernel itself")
    if hardware.guest_tools_policy in ("upgrade", "uninstall"):
        texts.append("class.guestToolsPolicy: the driver runs nothing in guests; say it in userData")
    texts += [
        f"class.{text}: Firecracker has no such setting"
        for text, is_on in (
            ("resourceLimits", hardware.resource_limits is not None and _says_anything(hardware.resource_limits)),
            ("performanceProfile", hardware.performance_profile is not None and _asks_performance(hardware.performance_profile)),
            ("securityProfile", hardware.security_profile is not None and _says_anything(hardware.security_profile)),
        )
        if is_on
    ]
    foreign = sorted({name.partition(".")[0][:32] for name in hardware.extra_config or {} if not name.startswith(_PREFIX)})
    texts += [f"class.extraConfig: keys of {name} have no effect here" for name in foreign]
    return texts


def _says_anything(profile: payloads.JsonPayload) -> bool:
    return any(getattr(profile, name) for name in profile.__struct_fields__)


def _asks_performance(performance: payloads.PerformancePayload) -> bool:
    hot = performance.cpu_hot_add_enabled or performance.memory_hot_add_enabled
    other = performance.virtualization_based_security or performance.nested_virtualization
    words = (performance.latency_sensitivity not in ("", "normal"), performance.hyper_threading_policy not in ("", "auto"))
    return hot or other or any(words)


def _of_disks(disks: tuple[DiskPayload, ...]) -> list[str]:
    texts = [f"disks[{each.name}].type: {each.type[:32]} is thin here" for each in disks if each.type not in _PLAIN_TYPES]
    texts += [f"disks[{each.name}].storageClass: there is one directory for all disks" for each in disks if _is_set(each.storage_class)]
    texts += [
        f"disks[{each.name}].scsi: Firecracker has virtio disks alone" for each in disks if isinstance(each.scsi, payloads.ScsiPayload)
    ]
    return texts


def _is_set(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _of_networks(networks: tuple[NetworkPayload, ...]) -> list[str]:
    texts = []
    for index, each in enumerate(networks):
        name = each.name or f"nic{index}"
        if each.model not in ("", "virtio"):
            texts.append(f"networks[{name}].model: Firecracker has virtio interfaces alone")
        if each.pci_slot_number is not None:
            texts.append(f"networks[{name}].pciSlotNumber: Firecracker places devices itself")
        if isinstance(each.security, payloads.NetworkSecurityPayload):
            texts.append(f"networks[{name}].security: the driver filters nothing; filter at the bridge")
        if isinstance(each.qos, payloads.QosPayload) and (each.qos.priority is not None or each.qos.dscp is not None):
            texts.append(f"networks[{name}].qos: priority and DSCP are not set; the limits of bandwidth hold")
    return texts


def _of_placement(placement: PlacementPayload) -> list[str]:
    names = [
        name for name in ("datastore", "storage_pod", "cluster", "folder", "host", "resource_pool") if _is_set(getattr(placement, name))
    ]
    return [f"placement.{name}: there is one host with one directory" for name in names]
