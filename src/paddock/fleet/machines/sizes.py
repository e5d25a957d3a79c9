"""Processors, memory and the other sizes of `paddock set`, as each dialect writes them. Pure."""

from collections.abc import Mapping

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at
from paddock.fleet.kinds import VM, VMI
from paddock.fleet.machines.edits import copy
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.sizekeys import Wishes
from paddock.kubevirt.plan.changes.adapters import ChangeRefused, SizeWriter, WrittenMachine, grace_at, place, run_strategy_at, spread


def resized(machine: MachineView, wishes: Wishes) -> Data:
    """Return the object that the user wrote with other sizes. Raises `ChangeRefused`."""
    if machine.kind is VMI:
        raise ChangeRefused(
            f"cannot change {machine}",
            why="the spec of an instance without a VirtualMachine does not change",
            fix="make a VirtualMachine of it: `paddock get`, change the kind, apply",
        )
    data = copy(machine.data)
    writers = _OF_KUBEVIRT if machine.kind is VM else machine.kind.adapter.sizes
    for key, value in wishes.items():
        writer = writers.get(key)
        if writer is None:
            able = ", ".join(writers)
            raise ChangeRefused(f"cannot set {key} of {machine}", why=f"{machine.dialect} has no field for it", fix=f"its keys are {able}")
        writer(machine, data, value)
    return data


# --- KubeVirt ---------------------------------------------------------------------------------------------------------------


def _domain(machine: WrittenMachine, data: Data, what: str) -> Data:
    """Return the hardware of a KubeVirt machine. An instancetype leaves no room for sizes of the machine's own."""
    name = at(data, "spec", "instancetype", "name")
    if name:
        raise ChangeRefused(
            f"cannot set {what} of {machine}",
            why=f"its sizes come from the instancetype {name}",
            fix=f"take another one: paddock set {machine.name} instancetype=NAME",
        )
    return place(data, "spec", "template", "spec", "domain")


def _kubevirt_cpu(machine: WrittenMachine, data: Data, value: str) -> None:
    spread(place(_domain(machine, data, "cpu"), "cpu"), machine, int(value))


def _kubevirt_memory(machine: WrittenMachine, data: Data, value: str) -> None:
    domain = _domain(machine, data, "mem")
    resources = at(domain, "resources") or {}
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    if "guest" in (domain.get("memory") or {}) or "memory" not in {**requests, **limits}:
        place(domain, "memory")["guest"] = value
    # A request or limit that stays behind would contradict the guest's memory.
    for amounts in (requests, limits):
        if "memory" in amounts:
            amounts["memory"] = value


def _reference(member: str) -> SizeWriter:
    def write(machine: WrittenMachine, data: Data, value: str) -> None:
        former = at(data, "spec", member) or {}
        # Whatever else the reference said belongs to the former one: its revision above all.
        made = {"name": value, **({"kind": former["kind"]} if "kind" in former else {})}
        data.setdefault("spec", {})[member] = made
        if member == "instancetype" and not former:
            raise ChangeRefused(
                f"cannot set instancetype of {machine}",
                why="it has sizes of its own, and KubeVirt refuses both",
                fix=f"set the sizes: paddock set {machine.name} cpu=4 mem=8Gi",
            )

    return write


_OF_KUBEVIRT: Mapping[str, SizeWriter] = {
    "cpu": _kubevirt_cpu,
    "mem": _kubevirt_memory,
    "instancetype": _reference("instancetype"),
    "preference": _reference("preference"),
    "run": run_strategy_at("spec"),
    "grace": grace_at("spec", "template", "spec"),
}
