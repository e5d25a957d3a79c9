"""Which binding each network card gets: the one that is said, or what takes its place where the backend lacks it (5.6)."""

import msgspec

from paddock.dialects.stakater import effective
from paddock.dialects.stakater.fields import NetworkParameters
from paddock.dialects.stakater.virtualmachine import StakaterVirtualMachine

FALLBACK = "infrastructure.stakater.com/binding-fallback"


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
