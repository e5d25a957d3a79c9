"""From the JSON inside requests to hardware, disks and interfaces. What makes no sense is `InvalidSpec`, with the member's name."""

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec

from paddock.base.errors import Terminal
from paddock.contract import payloads
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake.machines import FakeHardware, FakeNic

T = TypeVar("T")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
_MOST_CPU = 1024
_MOST_MEMORY_MIB = 1 << 30
_MOST_DISK_GIB = 65536
_MOST_DISKS = 256
_MOST_BYTES = 1 << 20


class FakeDiskSpec(msgspec.Struct, frozen=True):
    """A disk beside the first one."""

    name: str
    size_gib: int
    type: str
    storage_class: str = ""
    scsi: str = ""
    # of an imported disk that becomes this one
    path: str = ""


class FakeSpec(msgspec.Struct, frozen=True):
    """A machine as a request wants it."""

    hardware: FakeHardware
    root_type: str
    image: payloads.ImagePayload
    disks: tuple[FakeDiskSpec, ...]
    nics: tuple[payloads.NetworkPayload, ...]
    resource_pool: str = ""
    datastore: str = ""


def invalid(member: str, why: str) -> ProviderError:
    """The error of a request that makes no sense."""
    return ProviderError(ErrorKind.INVALID_SPEC, f"{member} is invalid", why=why)


def decoded(member: str, read: Callable[[], T]) -> T:
    """What a payload holds. The error has the payload's problem, never its text."""
    try:
        return read()
    except Terminal as error:
        raise invalid(member, error.why or error.what) from None


def check_name(member: str, name: str) -> None:
    """Raise `ProviderError` for a name that no machine can have."""
    if not _NAME.fullmatch(name):
        raise invalid(
            member, "a name has at most 253 letters, digits, dots, hyphens and underscores, and begins and ends with one of the first two"
        )


def check_bytes(member: str, data: bytes) -> None:
    """Raise `ProviderError` for more data than a guest's seed can hold."""
    if len(data) > _MOST_BYTES:
        raise invalid(member, "it is larger than 1 MiB")


def of_create(class_json: str, image_json: str, networks_json: str, disks_json: str, placement_json: str) -> FakeSpec:
    """Read the members of a create."""
    machine_class = decoded("class_json", lambda: payloads.decode(class_json, payloads.ClassPayload))
    image = decoded("image_json", lambda: payloads.decode(image_json, payloads.ImagePayload))
    nics = decoded("networks_json", lambda: payloads.decode_list(networks_json, payloads.NetworkPayload))
    disks = decoded("disks_json", lambda: payloads.decode_list(disks_json, payloads.DiskPayload))
    place = decoded("placement_json", lambda: payloads.decode(placement_json, payloads.PlacementPayload))
    return msgspec.structs.replace(
        _spec(machine_class, image, nics, disks), resource_pool=place.resource_pool or "", datastore=place.datastore
    )


def of_desired(desired_json: str) -> FakeSpec:
    """Read the desired state of a reconfigure."""
    desired = decoded("desired_json", lambda: payloads.decode_optional(desired_json, payloads.DesiredPayload))
    if desired is None:
        raise invalid("desired_json", "it is empty")
    return _spec(desired.machine_class, desired.image, desired.networks or (), desired.disks or ())


def _spec(
    machine_class: payloads.ClassPayload,
    image: payloads.ImagePayload,
    nics: tuple[payloads.NetworkPayload, ...],
    disks: tuple[payloads.DiskPayload, ...],
) -> FakeSpec:
    profile = machine_class.performance_profile or payloads.PerformancePayload()
    defaults = machine_class.disk_defaults or payloads.DiskDefaultsPayload()
    hardware = FakeHardware(
        cpu=bounded("Class.CPU", machine_class.cpu, 1, _MOST_CPU),
        memory_mib=bounded("Class.MemoryMiB", machine_class.memory_mib, 1, _MOST_MEMORY_MIB),
        hot_add_cpu=profile.cpu_hot_add_enabled,
        hot_add_memory=profile.memory_hot_add_enabled,
        root_gib=bounded("Class.DiskDefaults.SizeGiB", defaults.size_gib, 0, _MOST_DISK_GIB),
    )
    return FakeSpec(hardware, defaults.type or "thin", image, _disks(disks), nics)


def _disks(disks: tuple[payloads.DiskPayload, ...]) -> tuple[FakeDiskSpec, ...]:
    if len(disks) > _MOST_DISKS:
        raise invalid("Disks", f"there are more than {_MOST_DISKS}")
    made = []
    for index, each in enumerate(disks):
        place = f"Disks[{index}]"
        made.append(
            FakeDiskSpec(
                each.name or f"disk-{index + 1}",
                bounded(f"{place}.SizeGiB", each.size_gib, 1, _MOST_DISK_GIB),
                each.type or "thin",
                each.storage_class or "",
                payloads.encode(each.scsi) if each.scsi else "",
                each.path or "",
            )
        )
    if len({each.name for each in made}) != len(made):
        raise invalid("Disks", "two have the same name")
    return tuple(made)


def bounded(member: str, value: int, least: int, most: int) -> int:
    """The value, if it lies between the bounds."""
    if not least <= value <= most:
        raise invalid(member, f"it must be from {least} to {most}")
    return value


def interfaces(specs: tuple[payloads.NetworkPayload, ...], number: int) -> tuple[FakeNic, ...]:
    """The interfaces of a machine. MAC addresses derive from the machine's number, so the same calls give the same ones."""
    return tuple(
        FakeNic(
            name=each.name or each.network_name or each.bridge or f"nic-{index}",
            mac=each.mac_address or f"02:fa:{number >> 16 & 255:02x}:{number >> 8 & 255:02x}:{number & 255:02x}:{index & 255:02x}",
            static_ip=each.static_ip,
        )
        for index, each in enumerate(specs)
    )
