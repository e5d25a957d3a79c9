"""Processors, memory and the other sizes of `paddock set`, as each dialect writes them. Pure."""

from collections.abc import Callable, Mapping

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at
from paddock.fleet.kinds import STAKATER, VIRTRIGAUD, VITISTACK, VM, VMI, MachineKind, is_own_form
from paddock.fleet.machines.edits import ChangeRefused, copy, place
from paddock.fleet.machines.finding import MachineView
from paddock.fleet.machines.sizekeys import Wishes, amount

_MIB = 2**20


def resized(machine: MachineView, wishes: Wishes) -> Data:
    """Return the object that the user wrote with other sizes. Raises `ChangeRefused`."""
    if machine.kind is VMI:
        raise ChangeRefused(
            f"cannot change {machine}",
            why="the spec of an instance without a VirtualMachine does not change",
            fix="make a VirtualMachine of it: `paddock get`, change the kind, apply",
        )
    data = copy(machine.data)
    for key, value in wishes.items():
        writer = _WRITERS[machine.kind].get(key)
        if writer is None:
            able = ", ".join(_WRITERS[machine.kind])
            raise ChangeRefused(f"cannot set {key} of {machine}", why=f"{machine.dialect} has no field for it", fix=f"its keys are {able}")
        writer(machine, data, value)
    return data


# --- KubeVirt ---------------------------------------------------------------------------------------------------------------


def _domain(machine: MachineView, data: Data, what: str) -> Data:
    """Return the hardware of a KubeVirt machine. An instancetype leaves no room for sizes of the machine's own."""
    name = at(data, "spec", "instancetype", "name")
    if name:
        raise ChangeRefused(
            f"cannot set {what} of {machine}",
            why=f"its sizes come from the instancetype {name}",
            fix=f"take another one: paddock set {machine.name} instancetype=NAME",
        )
    return place(data, "spec", "template", "spec", "domain")


def _kubevirt_cpu(machine: MachineView, data: Data, value: str) -> None:
    _spread(place(_domain(machine, data, "cpu"), "cpu"), machine, int(value))


def _kubevirt_memory(machine: MachineView, data: Data, value: str) -> None:
    domain = _domain(machine, data, "mem")
    resources = at(domain, "resources") or {}
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    if "guest" in (domain.get("memory") or {}) or "memory" not in {**requests, **limits}:
        place(domain, "memory")["guest"] = value
    # A request or limit that stays behind would contradict the guest's memory.
    for amounts in (requests, limits):
        if "memory" in amounts:
            amounts["memory"] = value


def _reference(member: str) -> "Writer":
    def write(machine: MachineView, data: Data, value: str) -> None:
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


def _run_strategy(*path: str) -> "Writer":
    def write(_: MachineView, data: Data, value: str) -> None:
        spec = place(data, *path)
        # `running` is the older spelling, and the two exclude each other.
        spec.pop("running", None)
        spec["runStrategy"] = value

    return write


def _grace(*path: str) -> "Writer":
    def write(_: MachineView, data: Data, value: str) -> None:
        place(data, *path)["terminationGracePeriodSeconds"] = int(value)

    return write


# --- the others -------------------------------------------------------------------------------------------------------------


def _front_cpu(*path: str) -> "Writer":
    def write(machine: MachineView, data: Data, value: str) -> None:
        _spread(place(data, *path), machine, int(value))

    return write


def _member(*path: str) -> "Writer":
    def write(_: MachineView, data: Data, value: str) -> None:
        place(data, *path[:-1])[path[-1]] = value

    return write


def _virtrigaud_cpu(_: MachineView, data: Data, value: str) -> None:
    place(data, "spec", "resources")["cpu"] = int(value)


def _virtrigaud_memory(machine: MachineView, data: Data, value: str) -> None:
    size, rest = divmod(amount(value, "mem=4Gi"), _MIB)
    if rest:
        raise ChangeRefused(
            f"cannot set mem={value} of {machine}", why="VirtRigaud counts memory in whole MiB", fix=f"write mem={max(size, 1)}Mi or more"
        )
    place(data, "spec", "resources")["memoryMiB"] = size


def _virtrigaud_class(_: MachineView, data: Data, value: str) -> None:
    place(data, "spec", "classRef")["name"] = value


def _vitistack_cpu(machine: MachineView, data: Data, value: str) -> None:
    if not is_own_form(data):
        _spread(place(data, "spec", "resources", "cpu"), machine, int(value))
        return
    cpu = place(data, "spec", "cpu")
    spread = {name: cpu[member] for name, member in _OWN_CPU.items() if member in cpu}
    _spread(spread, machine, int(value))
    cpu.update({_OWN_CPU[name]: count for name, count in spread.items()})


def _vitistack_memory(_: MachineView, data: Data, value: str) -> None:
    if is_own_form(data):
        place(data, "spec")["memory"] = amount(value, "mem=4Gi")
    else:
        place(data, "spec", "resources", "memory")["size"] = value


def _vitistack_template(machine: MachineView, data: Data, value: str) -> None:
    if is_own_form(data):
        raise ChangeRefused(f"cannot set template={value} of {machine}", why="Vitistack's own form has classes", fix=f"write class={value}")
    place(data, "spec")["template"] = value


def _vitistack_class(machine: MachineView, data: Data, value: str) -> None:
    if not is_own_form(data):
        raise ChangeRefused(
            f"cannot set class={value} of {machine}", why="the document's form has templates", fix=f"write template={value}"
        )
    place(data, "spec")["machineClass"] = value


def _spread(cpu: Data, machine: MachineView, count: int) -> None:
    """Write a number of processors as sockets, which can grow while the guest runs; cores and threads stay where the number allows it.

    What the user left out comes from a template or a default: the VirtualMachine below knows it.
    """
    known = at(machine.vm, "spec", "template", "spec", "domain", "cpu") or {}
    each = (cpu.get("cores") or known.get("cores") or 1) * (cpu.get("threads") or known.get("threads") or 1)
    if count % each == 0:
        cpu["sockets"] = count // each
    else:
        cpu.update(sockets=count, cores=1, threads=1)
    limit = cpu.get("maxSockets")
    if limit and cpu["sockets"] > limit:
        cpu["maxSockets"] = cpu["sockets"]


# How Vitistack's own form calls the parts of the processors.
_OWN_CPU = {"cores": "cores", "threads": "threadsPerCore", "sockets": "sockets"}
Writer = Callable[[MachineView, Data, str], None]
_WRITERS: Mapping[MachineKind, Mapping[str, Writer]] = {
    VM: {
        "cpu": _kubevirt_cpu,
        "mem": _kubevirt_memory,
        "instancetype": _reference("instancetype"),
        "preference": _reference("preference"),
        "run": _run_strategy("spec"),
        "grace": _grace("spec", "template", "spec"),
    },
    STAKATER: {
        "cpu": _front_cpu("spec", "parameters", "cpu"),
        "mem": _member("spec", "parameters", "memory", "guest"),
        "run": _run_strategy("spec", "parameters"),
        "grace": _grace("spec", "parameters"),
    },
    VIRTRIGAUD: {"cpu": _virtrigaud_cpu, "mem": _virtrigaud_memory, "class": _virtrigaud_class},
    VITISTACK: {"cpu": _vitistack_cpu, "mem": _vitistack_memory, "template": _vitistack_template, "class": _vitistack_class},
}
