"""The network cards of a KubeVirt machine as a Machine says them, and the networks that it then refers to."""

import msgspec

from paddock.dialects.vitistack.kinds import macs
from paddock.dialects.vitistack.kinds.fields import MODELS, MOST_NETWORKS, MachineNetwork
from paddock.dialects.vitistack.kinds.networkconfiguration import NetworkConfiguration, NetworkConfigurationSpec
from paddock.dialects.vitistack.translate import attachments
from paddock.kubernetes.core.networkattachment import NetworkAttachmentDefinition
from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubernetes.meta.translated import Loss, LossCollector
from paddock.kubernetes.meta.world import ObjectSet, namespace_of
from paddock.kubevirt.kinds.networks import Interface
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine

_LONGEST_NAME = 63


class NicReading(msgspec.Struct, frozen=True):
    """A card of the original and what a Machine says for it."""

    interface: Interface
    network: MachineNetwork
    # where its definition is
    namespace: str


def read(vm: VirtualMachine, identity: str, mac_set: str) -> list[NicReading]:
    """The cards that are connected to networks of their own; the pod network is what a Machine without cards has."""
    instance = vm.spec.template.spec
    multus = {network.name: network.multus.networkName for network in instance.networks or () if network.multus}
    found: list[NicReading] = []
    taken: set[str] = set()
    for interface in instance.domain.devices.interfaces or ():
        if interface.name not in multus or len(interface.name) > _LONGEST_NAME or len(found) == MOST_NETWORKS:
            continue
        namespace, _, name = multus[interface.name].rpartition("/")
        derived = macs.derived(identity, mac_set, len(found))
        address = _address(interface, taken)
        network = MachineNetwork(
            name=interface.name,
            networkName=name,
            model=next((model for model in MODELS if model == interface.model), MODELS[0]),
            macAddress=None if address == derived else address,
        )
        found.append(NicReading(interface, network, namespace or namespace_of(vm)))
    return found


def _address(interface: Interface, taken: set[str]) -> str | None:
    """The card's address, when a Machine may have it."""
    address = macs.normal(interface.macAddress or "")
    if not macs.is_usable(address) or address in taken:
        return None
    taken.add(address)
    return address


def networks(
    vm: VirtualMachine, wired: list[NicReading], object_set: ObjectSet, ledger: LossCollector
) -> tuple[list[NetworkConfiguration], list[Loss]]:
    """The NetworkConfigurations that the cards need and that are not there yet, and what definitions lose in them."""
    made: dict[str, NetworkConfiguration] = {}
    losses: list[Loss] = []
    for each in wired:
        name = each.network.networkName
        if name in made or object_set.get(NetworkConfiguration, namespace_of(vm), name) is not None:
            continue
        definition = object_set.get(NetworkAttachmentDefinition, each.namespace, name)
        spec = _spec(definition)
        if spec is None:
            losses.extend(_unread(vm, each, definition, ledger))
        metadata = ObjectMeta(name=name, namespace=vm.metadata.namespace)
        made[name] = NetworkConfiguration(
            apiVersion="vitistack.io/v1alpha1", kind="NetworkConfiguration", metadata=metadata, spec=spec or NetworkConfigurationSpec()
        )
    return list(made.values()), losses


def _spec(definition: NetworkAttachmentDefinition | None) -> NetworkConfigurationSpec | None:
    plugin = attachments.read_plugin(definition) if definition else None
    return NetworkConfigurationSpec(bridge=plugin.bridge, vlan=plugin.vlan, mtu=plugin.mtu) if plugin else None


def _unread(vm: VirtualMachine, wired: NicReading, definition: NetworkAttachmentDefinition | None, ledger: LossCollector) -> list[Loss]:
    name, bridge = wired.network.networkName, NetworkConfigurationSpec().bridge
    if definition is None:
        index = [network.name for network in vm.spec.template.spec.networks or ()].index(wired.interface.name)
        path = ("spec", "template", "spec", "networks", index, "multus")
        ledger.lose(path, name, "its definition is not in the input", f"NetworkConfiguration {name} has bridge {bridge}; check it")
        return []
    config = definition.spec.config if definition.spec else None
    stays = wired.namespace == namespace_of(vm) and not attachments.is_managed(definition)
    return [
        Loss(
            of=f"NetworkAttachmentDefinition/{name}",
            path=("spec", "config"),
            value=config,
            why="a NetworkConfiguration is a bridge, perhaps with a VLAN and an MTU",
            instead="the definition stays in use as it is" if stays else f"NetworkConfiguration {name} has bridge {bridge}; check it",
        )
    ]
