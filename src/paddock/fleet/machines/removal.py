"""What goes with a machine and what stays, decided before anything is deleted (docs/design/0011-hand-over-of-disks.md).

To delete an object deletes what it owns, and a VirtualMachine owns the disks of its `dataVolumeTemplates`. To keep them, the machine is
stopped, and then deleted without its dependents (`Orphan`).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from paddock.base.errors import Terminal
from paddock.fleet.diagnosis.scene import at, entries, texts
from paddock.fleet.machines import facts, parts
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.shares import MachineShare
from paddock.kubernetes.client.target import Key


class ProtectedMachine(Terminal):
    """A machine has the label that forbids its deletion."""


class CannotKeepDisks(Terminal):
    """A dialect deletes the disks of a machine with it."""


class RemovalPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a removal does. With `keeps`, the machine is stopped first and its dependents stay."""

    machine: MachineView
    goes: tuple[str, ...]
    stays: tuple[str, ...]
    keeps: bool = False
    # whose objects go with the machine; the directories stay
    shares: tuple[MachineShare, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the plan for people."""
        yield f"{self.machine}: {', '.join(self.goes)}"
        for each in self.stays:
            yield f"  stays: {each}"


def plan(machine: MachineView, owned: Collection[str], shares: Sequence[MachineShare] = (), *, purge: bool) -> RemovalPlan:
    """Decide on a removal. `owned` are the claims that go with the machine unless they are kept. Raises `Terminal` errors.

    `shares` are the directories of the host that the machine mounts.
    """
    if facts.is_protected(machine.data):
        fix = f"`paddock unprotect {machine} -n {machine.namespace}` takes the protection off"
        raise ProtectedMachine(f"{machine} is protected from deletion", fix=fix)
    if not purge:
        _refuse_loss(machine)
    disks = list(parts.disks(machine))
    own = [each for each in disks if each.claim in owned]
    goes = ["deletes " + _title(machine)]
    if machine.kind.front and machine.vm is not None:
        goes.append(f"VirtualMachine {texts(machine.vm, 'metadata', 'name')}")
    if machine.vmi is not None:
        goes.append("its running guest")
    goes += [f"disk {each.name} with its data ({each.claim})" for each in own if purge]
    goes += [f"what is on {each.name}" for each in disks if not each.claim and "emptyDisk" in each.source]
    stays = [
        f"disk {each.name} ({each.source}{f', {each.size}' if each.size else ''})"
        for each in disks
        if each.claim and not (purge and each in own)
    ]
    stays += [f"directory {each.directory or each.name} of the host with all its files" for each in shares]
    made = tuple(each for each in shares if each.made)
    return RemovalPlan(machine=machine, goes=tuple(goes), stays=tuple(stays), keeps=bool(own) and not purge, shares=made)


def _title(machine: MachineView) -> str:
    owner = "" if machine.dialect == "kubevirt" else f" of {machine.dialect}"
    return f"the {machine.kind.kind} {machine.name}{owner}"


def _refuse_loss(machine: MachineView) -> None:
    """Refuse to delete a machine whose dialect leaves no disks behind."""
    if machine.kind.adapter.disks_go is not None:
        why, fix = machine.kind.adapter.disks_go
        raise CannotKeepDisks(f"cannot delete {machine} and keep its disks", why=why, fix=fix)


def owned_claims(machine: MachineView, claims: Collection[Mapping[str, Any]], volumes: Collection[Mapping[str, Any]]) -> set[str]:
    """Return the names of the claims that go with a machine: owned by it, or by a DataVolume that it owns."""
    uids = {texts(each, "metadata", "uid") for each in (machine.data, machine.vm) if each is not None}
    own_volumes = {texts(each, "metadata", "uid"): texts(each, "metadata", "name") for each in volumes if _owners(each) & uids}
    found = {texts(each, "metadata", "name") for each in claims if _owners(each) & (uids | set(own_volumes))}
    found |= set(own_volumes.values())
    if label := machine.kind.adapter.claim_label:
        found |= {
            texts(each, "metadata", "name")
            for each in claims
            if (at(each, "metadata", "labels") or {}).get(label) == machine.name and _owners(each)
        }
    return found


def _owners(data: Mapping[str, Any]) -> set[str]:
    return {texts(each, "uid") for each in entries(data, "metadata", "ownerReferences")}


def leftovers(machine: MachineView) -> list[tuple[str, Key]]:
    """Return the Secrets and the Service that a dialect may have made for a machine, by plural. They go only if it owns them."""
    return [(plural, Key(machine.namespace, name)) for plural, name in machine.kind.adapter.leftovers(machine)]
