"""A machine as a create or a reconfigure describes it, read from the payloads and checked."""

import hashlib

from paddock.base import names
from paddock.contract import messages as m
from paddock.contract import payloads
from paddock.contract.description import MachineDescription
from paddock.contract.payloads import ClassPayload, DesiredPayload, DiskPayload, ImagePayload, NetworkPayload, PlacementPayload
from paddock_drivers.kit import refusals

# The most bytes that 63 bits can count, and the most that the name of a host and Kubernetes' labels can hold.
_MOST_MIB = (1 << 43) - 1
_LONGEST_NAME = 63


def of_create(request: m.CreateRequest) -> MachineDescription:
    """Return the machine of a create; raises InvalidSpec."""
    if request.target_host_id:
        raise refusals.not_supported(
            "machines are not created on a given host", why="the provider is not clustered", fix="use Placement.Host"
        )
    return _checked(
        MachineDescription(
            name=request.name,
            hardware=payloads.decode(request.class_json, ClassPayload),
            image=payloads.decode(request.image_json, ImagePayload),
            networks=payloads.decode_list(request.networks_json, NetworkPayload),
            disks=payloads.decode_list(request.disks_json, DiskPayload),
            placement=payloads.decode(request.placement_json, PlacementPayload),
            user_data=request.user_data,
            meta_data=request.meta_data,
            tags=request.tags,
        )
    )


def of_desired(name: str, text: str) -> MachineDescription:
    """Return the machine of a reconfigure. It keeps the name that it has at the target."""
    desired = payloads.decode(text, DesiredPayload)
    return _checked(
        MachineDescription(
            name=name,
            hardware=desired.machine_class,
            image=desired.image,
            networks=desired.networks or (),
            disks=desired.disks or (),
            placement=desired.placement or PlacementPayload(),
            user_data=(desired.user_data.cloud_init_data if desired.user_data is not None else "").encode(),
            meta_data=(desired.meta_data.meta_data_yaml if desired.meta_data is not None else "").encode(),
            tags=desired.tags or (),
        )
    )


def digest(request: m.CreateRequest) -> str:
    """Return a short sum of what a create asks for, apart from documents for the guest."""
    parts = (request.class_json, request.image_json, request.networks_json, request.disks_json, request.placement_json)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _checked(description: MachineDescription) -> MachineDescription:
    if not names.is_subdomain(description.name) or len(description.name) > _LONGEST_NAME:
        why = f"machines are named with at most {_LONGEST_NAME} lower-case letters, digits, '-' and '.'"
        raise refusals.invalid(f'a machine cannot be called "{description.name}"', why=why, fix="rename the VirtualMachine")
    if description.hardware.cpu < 1 or description.hardware.memory_mib < 1:
        raise refusals.invalid(f'machine "{description.name}" has no size', why="the class says no CPU or no MemoryMiB")
    if description.hardware.memory_mib > _MOST_MIB or any(each.size_gib > _MOST_MIB >> 10 for each in description.disks):
        raise refusals.invalid(f'machine "{description.name}" is too large', why="bytes are counted in 63 bits")
    for kind, given in (("network", [each.name for each in description.networks]), ("disk", [each.name for each in description.disks])):
        wrong = next((name for name in given if name and not names.is_label(name)), None)
        if wrong is not None:
            raise refusals.invalid(f'a {kind} cannot be called "{wrong}"', fix="use lower-case letters, digits and '-'")
        if len(set(filter(None, given))) < len([name for name in given if name]):
            raise refusals.invalid(f'two {kind}s of machine "{description.name}" have the same name')
    nameless = next((each for each in description.disks if not each.name or each.size_gib < 1), None)
    if nameless is not None:
        raise refusals.invalid(f'a disk of machine "{description.name}" has no name or no size')
    return description
