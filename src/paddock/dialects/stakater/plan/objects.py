"""The objects of a machine: the bindings of its networks (5.6), their form in the API, and the order in which they go (4.4).

Service -> virtual machine -> (it and its instance gone) -> disks -> (disks gone) -> Secrets -> the machine itself
"""

import base64
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto

import msgspec

from paddock.base.jsondata import Data
from paddock.dialects.stakater.kinds import effective
from paddock.dialects.stakater.kinds.fields import NetworkParameters
from paddock.dialects.stakater.kinds.virtualmachine import StakaterVirtualMachine
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.wire import to_data
from paddock.kubevirt.kinds import virtualmachine as kubevirt

FALLBACK = "infrastructure.stakater.com/binding-fallback"
# A clean end takes its grace and a little more; a longer one gets an event.
_PATIENCE_SECONDS = 120


class BoundMachine(msgspec.Struct, frozen=True):
    """A machine whose bindings can be had."""

    vm: StakaterVirtualMachine
    # network and the binding it got instead, for those that did not get their own
    instead: tuple[tuple[str, str], ...] = ()
    # network and the plug-in it wants, where nothing may take its place
    missing: tuple[tuple[str, str], ...] = ()

    @property
    def note(self) -> str:
        """The text of the annotation."""
        return ",".join(f"{network}={binding}" for network, binding in self.instead)


def bound(vm: StakaterVirtualMachine, registered: frozenset[str], policy: str) -> BoundMachine:
    """Look at every card; a machine whose plug-ins are all there stays as it is."""
    networks, instead, missing = [], [], []
    for network in effective.networks(vm.spec.parameters.networks):
        wanted = network.bindingName
        if wanted not in effective.CORE_BINDINGS and wanted not in registered:
            if policy == "fail":
                missing.append((network.name, wanted))
            else:
                # Masquerade works on the pod network alone.
                binding = "masquerade" if effective.network_type(network) == "pod" else "bridge"
                instead.append((network.name, binding))
                network = msgspec.structs.replace(network, bindingName=binding)
        networks.append(network)
    return BoundMachine(_with(vm, networks) if instead else vm, tuple(instead), tuple(missing))


def _with(vm: StakaterVirtualMachine, networks: list[NetworkParameters]) -> StakaterVirtualMachine:
    parameters = msgspec.structs.replace(vm.spec.parameters, networks=networks)
    return msgspec.structs.replace(vm, spec=msgspec.structs.replace(vm.spec, parameters=parameters))


# --- in the form of the API -------------------------------------------------------------------------------------------------


def machine_of(resources: Iterable[Resource]) -> kubevirt.VirtualMachine:
    """The generated machine among everything that was made."""
    return next(each for each in resources if isinstance(each, kubevirt.VirtualMachine))


def noted(machine: kubevirt.VirtualMachine, bound: BoundMachine) -> kubevirt.VirtualMachine:
    """The machine that says which bindings took the place of others."""
    if not bound.instead:
        return machine
    notes = {**(machine.metadata.annotations or {}), FALLBACK: bound.note}
    return msgspec.structs.replace(machine, metadata=msgspec.structs.replace(machine.metadata, annotations=notes))


def data_of(resource: Resource) -> Data:
    """As it is applied. The values of a Secret stand in `data`: `stringData` is not kept, so nobody could own it."""
    data = to_data(resource)
    if isinstance(resource, Secret):
        values = {name: base64.b64encode(text.encode()).decode() for name, text in (data.pop("stringData", None) or {}).items()}
        data["data"] = {**(data.get("data") or {}), **values}
    return data


# --- the order in which they go ---------------------------------------------------------------------------------------------


class ClearStep(Enum):
    """The next step of a deletion."""

    DELETE_SERVICE = auto()
    DELETE_MACHINE = auto()
    DELETE_DISKS = auto()
    DELETE_SECRETS = auto()
    WAIT = auto()
    LET_GO = auto()


class RemainingKinds(msgspec.Struct, frozen=True, kw_only=True):
    """The remaining objects by kind: names, and those of them that are not being deleted yet."""

    services: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    instances: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    # kinds of which something has not been deleted yet
    standing: frozenset[str] = frozenset()

    def named(self) -> str:
        words = (
            ("Service", self.services),
            ("VirtualMachine", self.machines),
            ("VirtualMachineInstance", self.instances),
            ("DataVolume", self.volumes),
            ("PersistentVolumeClaim", self.claims),
            ("Secret", self.secrets),
        )
        return ", ".join(f"{kind} {name}" for kind, names in words for name in names)


# In order: whether a row holds, what is done where something of it still stands, and which kind that is asked of.
_ROWS: Sequence[tuple[Callable[[RemainingKinds], bool], ClearStep, str]] = (
    (lambda left: bool(left.services), ClearStep.DELETE_SERVICE, "services"),
    (lambda left: bool(left.machines or left.instances), ClearStep.DELETE_MACHINE, "machines"),
    (lambda left: bool(left.volumes or left.claims), ClearStep.DELETE_DISKS, "volumes"),
    (lambda left: bool(left.secrets), ClearStep.DELETE_SECRETS, "secrets"),
)


def cleanup_step(left: RemainingKinds) -> ClearStep:
    for holds, act, kind in _ROWS:
        if holds(left):
            return act if kind in left.standing else ClearStep.WAIT
    return ClearStep.LET_GO


def cleanup_stalls_at(deleted: float, grace_seconds: int) -> float:
    """Return the time at which a deletion has taken too long."""
    return deleted + grace_seconds + _PATIENCE_SECONDS
