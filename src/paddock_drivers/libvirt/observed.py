"""A machine in the contract's words. Pure."""

import json
from collections.abc import Mapping
from urllib.parse import urlsplit

from paddock.contract import messages as m
from paddock_drivers.libvirt import machines, marks
from paddock_drivers.libvirt.addresses import GuestAddresses
from paddock_drivers.libvirt.domainview import DiskView, DomainView
from paddock_drivers.libvirt.machines import LibvirtDomain
from paddock_drivers.libvirt.storageport import StoredDisk

_GIB = 1 << 30
_EVERYWHERE = ("0.0.0.0", "[::]")


def disks(view: DomainView) -> tuple[DiskView, ...]:
    """Return the disks of a machine that hold its data: neither its documents for the first boot nor media."""
    seed = view.marks.disk(marks.SEED_DISK) if view.marks is not None else None
    return tuple(each for each in view.disks if each.device in ("disk", "lun") and (seed is None or each.path != seed.path))


def name_of(view: DomainView, disk: DiskView) -> str:
    """Return the id of a disk: the manager's name of it, or its target."""
    marked = view.mark_of(disk)
    return marked.name if marked is not None else disk.target


def size_of(view: DomainView, disk: DiskView, sizes: Mapping[str, StoredDisk]) -> int:
    """Return the bytes of a disk, 0 if nobody knows."""
    marked = view.mark_of(disk)
    if marked is not None and marked.bytes:
        return marked.bytes
    return sizes[disk.path].capacity if disk.path in sizes else 0


def listed(view: DomainView, state: int, sizes: Mapping[str, StoredDisk], guest_addresses: GuestAddresses) -> m.VMInfo:
    """Return a machine as a list has it."""
    raw = {"uuid": view.uuid, "type": view.type, "managed": "true" if view.marks is not None and view.marks.owner else "false"}
    if view.marks is not None and view.marks.owner:
        raw["owner"] = f"{view.marks.namespace}/{view.marks.name}"
        raw[m.OWNER_UID] = view.marks.owner
    cards = tuple(
        m.VMNetworkInfo(
            name=each.alias.removeprefix("ua-") or each.source, mac=each.mac, ip_address=(guest_addresses.by_mac.get(each.mac) or ("",))[0]
        )
        for each in view.interfaces
    )
    return m.VMInfo(
        id=view.uuid,
        name=view.name,
        power_state=machines.power_word(state),
        ips=guest_addresses.every(each.mac for each in view.interfaces),
        cpu=view.cpus,
        memory_mib=view.memory_mib,
        disks=tuple(
            m.VMDiskInfo(id=name_of(view, each), path=each.path, size_gib=-(-size_of(view, each, sizes) // _GIB), format=each.format)
            for each in disks(view)
        ),
        networks=cards,
        provider_raw=raw,
    )


def restart_required(machine: LibvirtDomain) -> str:
    """Return what a machine that runs gets with its next start; empty if nothing."""
    if not machine.live:
        return ""
    now, then = machine.view, machine.inactive
    changes = []
    if now.cpus != then.cpus:
        changes.append(f"{then.cpus} CPUs")
    if now.memory_mib != then.memory_mib:
        changes.append(f"{then.memory_mib} MiB of memory")
    return f"the next start gives it {' and '.join(changes)}" if changes else ""


def details_json(machine: LibvirtDomain, sizes: Mapping[str, StoredDisk], guest_addresses: GuestAddresses) -> str:
    """Return what else is known of a machine: an object of strings."""
    view, known = machine.view, machine.inactive.marks
    waits = restart_required(machine)
    found = {
        "name": view.name,
        "uuid": view.uuid,
        "title": view.title,
        "type": view.type,
        "machine": view.machine,
        "owner": f"{known.namespace}/{known.name}" if known is not None and known.owner else "",
        "tags": known.notes.get("tags", "") if known is not None else "",
        "cpus": str(view.cpus),
        "memoryMiB": str(view.memory_mib),
        "desiredCPUs": str(machine.inactive.cpus),
        "desiredMemoryMiB": str(machine.inactive.memory_mib),
        "restartRequired": "true" if waits else "false",
        "restartReason": waits,
        "addressSource": guest_addresses.source,
        "disks": json.dumps(
            [
                {"name": name_of(view, each), "target": each.target, "bytes": size_of(view, each, sizes), "path": each.path}
                for each in disks(view)
            ]
        ),
        "limitations": json.dumps(list(known.limitations)) if known is not None and known.limitations else "",
        "problem": "the creation of the machine has not ended" if known is not None and not known.complete else "",
    }
    return json.dumps({key: value for key, value in found.items() if value}, sort_keys=True)


def console(view: DomainView, endpoint: str) -> str:
    """Return the address of a machine's screen. One that listens everywhere is reached at the hypervisor's address."""
    for url in view.graphics:
        host = urlsplit(endpoint).hostname or ""
        kind, _, rest = url.partition("://")
        address, _, port = rest.rpartition(":")
        if address in _EVERYWHERE and host:
            return f"{kind}://{f'[{host}]' if ':' in host else host}:{port}"
        return url
    return ""
