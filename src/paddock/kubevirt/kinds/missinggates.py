"""The feature gates that a machine needs and a cluster does not have on. KubeVirt's admission would refuse it; this says so before."""

from collections.abc import Iterable, Iterator

from paddock.base.errors import Terminal
from paddock.kubernetes.schema.finding import format_path
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubevirt.kinds.gates import ClusterGates
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine
from paddock.kubevirt.rules import pool as rules_pool
from paddock.kubevirt.rules.gates import GateNeed, needs
from paddock.kubevirt.rules.place import MachinePlace


def missing(machine: VirtualMachine | VirtualMachinePool, gates: ClusterGates) -> Iterator[GateNeed]:
    """Yield what a machine, or the machines of a pool, need and do not get."""
    settings = AdmissionSettings(target="cluster", architecture=gates.architecture)
    if isinstance(machine, VirtualMachinePool):
        place = rules_pool.place_of(machine, settings)
    else:
        place = MachinePlace(spec=machine.spec, path=("spec",), settings=settings)
    yield from (each for each in needs(place.hardware) if not gates.has(each.gate))


class MissingGates(Terminal):
    """KubeVirt would refuse a machine, because gates are off."""

    def __init__(self, gate_needs: Iterable[GateNeed], gates: ClusterGates) -> None:
        by_gate: dict[str, list[str]] = {}
        for each in gate_needs:
            by_gate.setdefault(each.gate, []).append(format_path(each.path))
        names = ", ".join(by_gate)
        used = "; ".join(f"{', '.join(paths)} needs {gate}" for gate, paths in by_gate.items())
        super().__init__(f"feature gates of KubeVirt are off: {used}", fix=gates.remedy(names))


def check(machine: VirtualMachine | VirtualMachinePool, gates: ClusterGates) -> None:
    """Raise `MissingGates` if KubeVirt would refuse a machine for its gates."""
    found = tuple(missing(machine, gates))
    if found:
        raise MissingGates(found, gates)
