"""Describes machines: one, or all that the account sees, foreign ones too. Pure."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from paddock.contract import messages as m
from paddock_drivers.vsphere import disks, marks, networks
from paddock_drivers.vsphere.disks import VSphereDisk
from paddock_drivers.vsphere.target import SeenMachine, mark_paths

_GIB = 1 << 30
_STATES = {"poweredOn": "On", "poweredOff": "Off", "suspended": "Suspended"}
UNKNOWN = "Unknown"
_CONNECTED = "connected"
_LINK_LOCAL = ("fe80:", "169.254.")
PATHS = (
    "name",
    "runtime.powerState",
    "runtime.connectionState",
    "runtime.host",
    "config.hardware.numCPU",
    "config.hardware.memoryMB",
    "config.hardware.device",
    "guest.net",
    "guest.ipAddress",
    *mark_paths(marks.OWNER_UID, marks.OWNER, marks.LIMITATIONS, marks.DISKS, marks.CARDS, marks.PENDING),
)
# A description of one machine has more.
DETAILED = (*PATHS, "guest.guestFullName", "guest.toolsRunningStatus", "guest.toolsStatus", "runtime.question", "config.version")


def power_state(machine: SeenMachine) -> str:
    """Return the power state in the contract's words; that of a machine whose host is away is not known."""
    if str(machine.get("runtime.connectionState", _CONNECTED)) != _CONNECTED:
        return UNKNOWN
    return _STATES.get(str(machine.get("runtime.powerState")), UNKNOWN)


def addresses(machine: SeenMachine) -> tuple[str, ...]:
    """Return the addresses of the guest, the one that VMware Tools call its first in front."""
    found = [machine.get("guest.ipAddress", "")]
    for nic in machine.get("guest.net", ()):
        found += list(nic.ipAddress or ())
    return tuple(dict.fromkeys(each for each in found if each and not each.startswith(_LINK_LOCAL)))


def machine_disks(machine: SeenMachine) -> tuple[VSphereDisk, ...]:
    """Return the disks, the one that the machine boots from first."""
    places = marks.loaded(machine.marks, marks.DISKS, dict)
    return disks.observed(machine.get("config.hardware.device", ()), places)


def console_url(origin: str, vcenter: str, machine: SeenMachine) -> str:
    """Return the machine's page in vCenter's client, where its console opens. A ticket of a console would be worth a minute."""
    if not vcenter:
        return f"{origin}/ui/#/host/vms/{quote(str(machine.ref._moId))}"
    return f"{origin}/ui/app/vm;nav=h/urn:vmomi:VirtualMachine:{quote(str(machine.ref._moId))}:{quote(vcenter)}/summary"


def details(machine: SeenMachine, hosts: Mapping[Any, str]) -> dict[str, str]:
    """Return what else is known of a machine, all texts."""
    seen, there = machine.marks, machine_disks(machine)
    question = machine.get("runtime.question")
    found = {
        "name": machine.name,
        "moref": str(machine.ref._moId),
        "instanceUuid": machine.id,
        "owner": seen.get(marks.OWNER, ""),
        "host": hosts.get(machine.get("runtime.host"), ""),
        "datastore": there[0].datastore if there else "",
        "cpus": str(machine.get("config.hardware.numCPU", "")),
        "memoryMiB": str(machine.get("config.hardware.memoryMB", "")),
        "hardwareVersion": str(machine.get("config.version", "")),
        "guestOS": str(machine.get("guest.guestFullName", "")),
        "tools": str(machine.get("guest.toolsRunningStatus", "")),
        "connection": str(machine.get("runtime.connectionState", "")),
        "disks": json.dumps([_disk(each) for each in there], sort_keys=True),
        "limitations": _limitations(machine),
        "problem": f"it waits for an answer: {question.text}" if question is not None else "",
    }
    return {key: value for key, value in found.items() if value}


def _limitations(machine: SeenMachine) -> str:
    said = [str(each) for each in marks.loaded(machine.marks, marks.LIMITATIONS, list)]
    return json.dumps(said) if said else ""


def _disk(disk: VSphereDisk) -> dict[str, Any]:
    return {"name": disk.name, "path": disk.path, "size": disk.size, "type": disk.type}


def listed(machine: SeenMachine, hosts: Mapping[Any, str]) -> m.VMInfo:
    """Return a machine as a list has it."""
    owner = machine.marks.get(marks.OWNER_UID, "")
    return m.VMInfo(
        id=machine.id,
        name=machine.name,
        power_state=power_state(machine),
        ips=addresses(machine),
        cpu=int(machine.get("config.hardware.numCPU", 0)),
        memory_mib=int(machine.get("config.hardware.memoryMB", 0)),
        disks=tuple(
            m.VMDiskInfo(id=each.name, path=each.path, size_gib=-(-each.size // _GIB), format="vmdk") for each in machine_disks(machine)
        ),
        networks=_cards(machine),
        provider_raw={**details(machine, hosts), "managed": "true" if owner else "false", m.OWNER_UID: owner},
    )


def _cards(machine: SeenMachine) -> tuple[m.VMNetworkInfo, ...]:
    devices = machine.get("config.hardware.device", ())
    keys = {name: key for name, key in marks.loaded(machine.marks, marks.CARDS, dict).items() if isinstance(key, int)}
    names = {each.key: name for name, each in networks.named(devices, keys).items()}
    seen = {str(each.macAddress).lower(): each for each in machine.get("guest.net", ()) if each.macAddress}
    found = []
    for nic in networks.cards(devices):
        mac = str(nic.macAddress or "").lower()
        guest = seen.get(mac)
        address = next((each for each in (guest.ipAddress or () if guest is not None else ()) if not each.startswith(_LINK_LOCAL)), "")
        info = nic.deviceInfo
        found.append(m.VMNetworkInfo(name=names.get(nic.key) or (str(info.label) if info is not None else ""), mac=mac, ip_address=address))
    return tuple(found)
