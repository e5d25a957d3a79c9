"""The effect of a change of sizes on a running machine, before anything runs: by the rule that its controller goes by, for a provider that
can do everything online."""

from paddock.dialects.virtrigaud.kinds.provider import ReportedCapabilities
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmclass import VMClass
from paddock.dialects.virtrigaud.plan import resizing
from paddock.dialects.virtrigaud.plan.resizing import ResizePlan
from paddock.kubernetes.meta.world import ObjectSet, namespace_of
from paddock.kubernetes.schema.field import Object
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.plan.changes.differences import FieldDifference, ValueChange
from paddock.kubevirt.plan.changes.effects import Effect

_EVERYTHING = ReportedCapabilities(supportsReconfigureOnline=True, supportsDiskExpansionOnline=True)
_ONLINE = "at once, if the Provider reports that it can; else when the machine is off"
_SIZES_LATER = "when the machine is off: what grows is changed while it runs if performanceProfile of its VMClass has {flag}"
_DISK_LATER = "when the machine is off: with expandPolicy Online, a disk grows while it runs"
_FLAGS = {"cpu ": "cpuHotAddEnabled", "memory ": "memoryHotAddEnabled"}
_SAME = "both classes have the same processors and memory; the rest of a class counts when a machine is made"


class MachineForm:
    """One form of a machine, with its class."""

    __slots__ = ("machine", "vmclass")

    def __init__(self, machine: VirtrigaudVirtualMachine, vmclass: VMClass) -> None:
        self.machine = machine
        self.vmclass = vmclass


def prediction(
    old: Object | None, new: Object | None, worlds: tuple[ObjectSet, ObjectSet], difference: FieldDifference
) -> tuple[Effect, str] | None:
    """Return what a change of a machine or a class does, and why; None if it is not about sizes, or the class is unknown."""
    if isinstance(old, VMClass) and isinstance(new, VMClass):
        return predict_class(old, new, difference.named)
    if difference.how is ValueChange.DOWN and difference.path[1] == "disks":
        return None
    forms = [_form(machine, object_set) for machine, object_set in zip((old, new), worlds, strict=True)]
    return predict(forms[0], forms[1], difference.named) if forms[0] is not None and forms[1] is not None else None


def _form(machine: Object | None, object_set: ObjectSet) -> MachineForm | None:
    """Return a machine with its class, if that is among the objects."""
    if not isinstance(machine, VirtrigaudVirtualMachine):
        return None
    ref = machine.spec.classRef
    vmclass = object_set.get(VMClass, ref.namespace or namespace_of(machine), ref.name)
    return MachineForm(machine, vmclass) if vmclass is not None else None


def predict(old: MachineForm, new: MachineForm, named: Path) -> tuple[Effect, str] | None:
    """Return what a change at a path does, and why; None if it is not about sizes."""
    about = _about(named)
    if about is None:
        return None
    current = resizing.wanted(old.machine, old.vmclass)
    found = resizing.decide(current, new.machine, new.vmclass, _EVERYTHING, running=True)
    if named[:2] == ("spec", "classRef") and not _differs(current, found):
        return Effect.NONE, _SAME
    waits = any(each.startswith(about) for each in found.pending)
    return (Effect.RESTART, _later(about)) if waits else (Effect.LIVE, _ONLINE)


def predict_class(old: VMClass, new: VMClass, named: Path) -> tuple[Effect, str] | None:
    """The same for a change of a class, at the machines that have it and no sizes of their own."""
    if named not in (("spec", "cpu"), ("spec", "memory")):
        return None
    machine = VirtrigaudVirtualMachine()
    return predict(MachineForm(machine, old), MachineForm(machine, new), ("spec", "resources", "cpu" if named[1] == "cpu" else "memoryMiB"))


def _about(named: Path) -> tuple[str, ...] | None:
    """The beginnings of what `resizing` says of a field."""
    match named:
        case ("spec", "resources", "cpu"):
            return ("cpu ",)
        case ("spec", "resources", "memoryMiB"):
            return ("memory ",)
        case ("spec", "classRef", *_):
            return ("cpu ", "memory ")
        case ("spec", "disks", name):
            return (f"attach disk {name}", f"detach disk {name}")
        case ("spec", "disks", name, "sizeGiB"):
            return (f"disk {name} ",)
    return None


def _later(about: tuple[str, ...]) -> str:
    flags = [_FLAGS[each] for each in about if each in _FLAGS]
    return _SIZES_LATER.format(flag=" and ".join(flags)) if flags else _DISK_LATER


def _differs(current: resizing.MachineSizes, resize_plan: ResizePlan) -> bool:
    sizes = (current.cpu, current.memory_mib)
    changed = resize_plan.request is not None and (resize_plan.request.cpu, resize_plan.request.memory_mib) != sizes
    return changed or any(each.startswith(("cpu ", "memory ")) for each in resize_plan.pending)
