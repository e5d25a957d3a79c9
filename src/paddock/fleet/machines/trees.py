"""The tree of a machine: what the user wrote, what was made of it, and what leads to it."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from paddock.base.jsondata import Data
from paddock.base.lines import Colour
from paddock.fleet.diagnosis.scene import at, entries, texts
from paddock.fleet.kinds import VMI
from paddock.fleet.machines import facts, parts
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.options import Selection
from paddock.kubernetes.client.target import Target
from paddock.kubernetes.targets import kind_target

_CLAIMS = kind_target("", "PersistentVolumeClaim")
_VOLUMES = kind_target("cdi.kubevirt.io", "DataVolume")
_SERVICES = kind_target("", "Service")


class TreeNode(msgspec.Struct, frozen=True, kw_only=True):
    """An object of a tree, or a thing that is no object: a disk, an interface."""

    kind: str
    name: str
    state: str = ""
    colour: Colour = ""
    children: tuple["TreeNode", ...] = ()


Named = Mapping[str, Data]


async def surroundings(client: Client, namespace: str) -> tuple[Named, Named, Named]:
    """Return the claims, DataVolumes and Services of a namespace by name."""
    claims, volumes, services = await asyncio.gather(*(_list(client, each, namespace) for each in (_CLAIMS, _VOLUMES, _SERVICES)))
    return claims, volumes, services


async def _list(client: Client, target: Target[Data], namespace: str) -> Named:
    try:
        found = (await client.list(target, Selection(namespace=namespace))).items
    except (NotFound, Forbidden):
        return {}
    return {each["metadata"]["name"]: each for each in found}


def of(machine: MachineView, claims: Named, volumes: Named, services: Named) -> TreeNode:
    """Return the tree of a machine."""
    found = facts.of(machine)
    parts_of_it = (
        *(_disk(each, claims, volumes) for each in parts.disks(machine)),
        *_directories(machine, claims),
        *(_nic(each) for each in parts.nics(machine)),
        *(_service(each) for each in services_of(machine, services.values())),
    )
    node = parts_of_it
    if machine.vmi is not None and machine.kind is not VMI:
        where = " ".join(
            filter(None, (texts(machine.vmi, "status", "phase"), texts(machine.vmi, "status", "nodeName") and f"on {found.node}"))
        )
        node = (TreeNode(kind="VirtualMachineInstance", name=texts(machine.vmi, "metadata", "name"), state=where), *node)
    if machine.kind.front and machine.vm is not None:
        status = texts(machine.vm, "status", "printableStatus")
        node = (TreeNode(kind="VirtualMachine", name=texts(machine.vm, "metadata", "name"), state=status, children=node),)
    kind = machine.kind.kind if machine.dialect == "kubevirt" else f"{machine.dialect} {machine.kind.kind}"
    return TreeNode(kind=kind, name=machine.name, state=found.status, colour=found.colour, children=node)


def _disk(disk: parts.DiskPart, claims: Named, volumes: Named) -> TreeNode:
    if not disk.claim:
        return TreeNode(kind="disk", name=disk.name, state=" ".join(filter(None, (disk.source, disk.size))))
    claim = claims.get(disk.claim)
    below = TreeNode(
        kind="PersistentVolumeClaim",
        name=disk.claim,
        state=texts(claim, "status", "phase") if claim else "missing",
        colour="" if claim else "red",
    )
    if disk.claim in volumes:
        volume = volumes[disk.claim]
        state = " ".join(filter(None, (texts(volume, "status", "phase"), texts(volume, "status", "progress"))))
        below = TreeNode(kind="DataVolume", name=disk.claim, state=state, children=(below,))
    return TreeNode(kind="disk", name=disk.name, state=disk.size, children=(below,))


def _directories(machine: MachineView, claims: Named) -> Iterator[TreeNode]:
    """Yield the claims that the guest mounts as directories, with the volumes that they are bound to."""
    for name, claim, _ in parts.directories(machine):
        found = claims.get(claim)
        bound = texts(found, "spec", "volumeName")
        below = (TreeNode(kind="PersistentVolume", name=bound),) if bound else ()
        state = texts(found, "status", "phase") if found else "missing"
        made = TreeNode(kind="PersistentVolumeClaim", name=claim, state=state, colour="" if found else "red", children=below)
        yield TreeNode(kind="directory", name=name, state="by virtiofs", children=(made,))


def _nic(nic: parts.NicPart) -> TreeNode:
    return TreeNode(kind="interface", name=nic.name, state=", ".join(filter(None, (nic.network, " ".join(nic.ips)))))


def services_of(machine: MachineView, services: Iterable[Data]) -> Iterator[Data]:
    """Yield the Services whose selector fits the labels of the guest."""
    vm = machine.vm_key.name if machine.vm_key is not None else machine.name
    labels: dict[str, Any] = {
        "kubevirt.io": "virt-launcher",
        "vm.kubevirt.io/name": vm,
        **(at(machine.vm, "spec", "template", "metadata", "labels") or {}),
        **(at(machine.vmi, "metadata", "labels") or {}),
    }
    for each in services:
        chosen = at(each, "spec", "selector")
        if chosen and all(labels.get(key) == value for key, value in chosen.items()):
            yield each


def service_state(service: Data) -> str:
    """Return the address and the ports of a Service."""
    ports = " ".join(f"{port.get('port')}/{port.get('protocol', 'TCP')}" for port in entries(service, "spec", "ports"))
    addresses = [texts(ingress, "ip") for ingress in entries(service, "status", "loadBalancer", "ingress")]
    address = next(filter(None, addresses), texts(service, "spec", "clusterIP"))
    return f"{address} {ports}".strip()


def _service(service: Data) -> TreeNode:
    return TreeNode(kind="Service", name=texts(service, "metadata", "name"), state=service_state(service))


def as_data(node: TreeNode) -> dict[str, Any]:
    """Return a tree for programs."""
    data: dict[str, Any] = {"kind": node.kind, "name": node.name}
    if node.state:
        data["state"] = node.state
    if node.children:
        data["children"] = [as_data(each) for each in node.children]
    return data
