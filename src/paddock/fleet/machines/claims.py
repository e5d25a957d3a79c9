"""The claims of KubeVirt's machines, where a command changes them beside the machine."""

from collections.abc import Sequence

import msgspec

from paddock.base import quantity
from paddock.fleet.diagnosis.scene import at, texts
from paddock.fleet.machines.disks import DiskRow
from paddock.fleet.machines.edits import ObjectEdit, copy
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.options import DeletionOptions
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.plan.changes.adapters import ChangeRefused, place

CLAIMS = kind_target("", "PersistentVolumeClaim")
DATA_VOLUMES = kind_target("cdi.kubevirt.io", "DataVolume")


async def growth(client: Client, machine: MachineView, claim: str, size: str) -> ObjectEdit:
    """Return the change of a claim's size. Raises `ChangeRefused`."""
    key = Key(machine.namespace, claim)
    try:
        data = await client.get(CLAIMS, key)
    except NotFound as error:
        raise ChangeRefused(
            f"the claim {claim} of {machine} cannot grow",
            why="it does not exist yet",
            fix=f"`paddock why {machine}` says what it waits for",
        ) from error
    requested = texts(data, "spec", "resources", "requests", "storage")
    capacity = texts(data, "status", "capacity", "storage")
    there = max((quantity.whole(each) for each in (requested, capacity) if each), default=0)
    if quantity.whole(size) < there:
        raise ChangeRefused(
            f"the claim {claim} of {machine} cannot shrink to {size}",
            why=f"it has {quantity.binary(there)}, and a smaller one would lose data",
            fix="add a smaller disk and copy what you need",
        )
    after = copy(data)
    place(after, "spec", "resources", "requests")["storage"] = size
    return ObjectEdit(target=CLAIMS, key=key, before=data, after=after)


async def sized(client: Client, machine: MachineView, rows: Sequence[DiskRow]) -> list[DiskRow]:
    """Return the disks with the sizes that only their claims have."""
    return [await _sized(client, machine, each) if each.size is None and each.claim else each for each in rows]


async def _sized(client: Client, machine: MachineView, row: DiskRow) -> DiskRow:
    namespace = (machine.vm_key or machine.key).namespace
    try:
        data = await client.get(CLAIMS, Key(namespace, row.claim))
    except (NotFound, Forbidden):
        return row
    text = texts(data, "status", "capacity", "storage") or texts(data, "spec", "resources", "requests", "storage")
    return msgspec.structs.replace(row, size=quantity.whole(text)) if text else row


async def purge(client: Client, machine: MachineView, claim: str) -> None:
    """Delete a claim with its data, and the DataVolume that filled it."""
    key = Key(machine.namespace, claim)
    for target in (DATA_VOLUMES, CLAIMS):
        try:
            await client.delete(target, key, DeletionOptions(propagation="Background"))
        except NotFound:
            continue


def is_in_use(machine: MachineView, claim: str) -> bool:
    """Return True if the running guest has the claim still."""
    volumes = at(machine.vmi, "spec", "volumes") or ()
    return any(claim in (texts(each, "dataVolume", "name"), texts(each, "persistentVolumeClaim", "claimName")) for each in volumes)
