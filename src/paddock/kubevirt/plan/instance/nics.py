"""The network cards of a machine, as the engine is asked for them, and as they stand in the status."""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import replace

from paddock.base import addresses, reasons
from paddock.engine.machine.config import Tap
from paddock.engine.networks.nics import (
    INNER_NETWORK,
    INNER_NETWORK6,
    NO_LIMIT,
    AttachedNic,
    Binding,
    DhcpOptions,
    HostBridge,
    NicSpec,
    Ports,
    Protocol,
)
from paddock.engine.networks.resolver import DnsPolicy, GuestResolver, ResolverConfig
from paddock.kubevirt.kinds.instance import VirtualMachineInstance, VirtualMachineInstanceSpec
from paddock.kubevirt.kinds.networks import Interface, Network
from paddock.kubevirt.kinds.status import InterfaceStatus
from paddock.kubevirt.plan.instance.identity import owner_of
from paddock.kubevirt.plan.instance.traffic import traffic_of

# Binding plug-ins that are known by name (docs/spec/kubevirt.md 3.5).
_PLUGINS: Mapping[str, Binding] = {"passt": "passt", "l2bridge": "bridge", "managedtap": "bridge"}
_POLICIES: Mapping[str, DnsPolicy] = {"Default": "Default", "None": "None"}
_MOST_QUEUES = 256


class NicRefusal(msgspec.Struct, frozen=True):
    """A card that cannot be had here, and why."""

    name: str
    message: str
    reason: str


def cards_of(instance: VirtualMachineInstance, bridges: Mapping[str, HostBridge | str], domain: str) -> Iterator[NicSpec | NicRefusal]:
    """The cards that are there. `bridges`: for each network by a definition, its bridge, or why there is none."""
    networks = {each.name: each for each in instance.spec.networks or ()}
    for interface in instance.spec.domain.devices.interfaces or ():
        network = networks.get(interface.name)
        if interface.state == "absent" or network is None:
            continue
        if network.multus is not None:
            found = bridges.get(interface.name, f"nothing resolved the definition of the network {interface.name}")
            if isinstance(found, str):
                yield NicRefusal(interface.name, found, getattr(found, "reason", reasons.NETWORK_MISSING))
            else:
                yield _nic(instance, interface, "host-bridge", found, domain)
        else:
            yield _pod_card(instance, interface, network, domain)


def _pod_card(instance: VirtualMachineInstance, interface: Interface, network: Network, domain: str) -> NicSpec | NicRefusal:
    binding = binding_of(interface)
    if interface.sriov is not None:
        text = "SR-IOV needs an IOMMU and free virtual functions, and this host offers none"
        return NicRefusal(interface.name, text, reasons.SRIOV_MISSING)
    if binding is None:
        name = interface.binding.name if interface.binding is not None else ""
        return NicRefusal(interface.name, f"the network binding {name} is not known here", reasons.BINDING_UNKNOWN)
    try:
        traffic = traffic_of(instance.metadata.annotations)
    except ValueError as error:
        return NicRefusal(interface.name, str(error), reasons.NETWORK_MALFORMED)
    return replace(_nic(instance, interface, binding, None, domain, network), traffic=traffic)


def binding_of(interface: Interface) -> Binding | None:
    """Return the binding of a card of the pod network; None when it has no usable one."""
    if interface.binding is not None:
        return _PLUGINS.get(interface.binding.name)
    if interface.passtBinding is not None:
        return "passt"
    return "masquerade" if interface.masquerade is not None else "bridge"


def _nic(
    instance: VirtualMachineInstance,
    interface: Interface,
    binding: Binding,
    bridge: HostBridge | None,
    domain: str,
    network: Network | None = None,
) -> NicSpec:
    pod = network.pod if network is not None else None
    inside = binding == "masquerade"
    namespace = instance.metadata.namespace or "default"
    return NicSpec(
        owner=owner_of(instance),
        name=interface.name,
        binding=binding,
        mac=(interface.macAddress or "").lower().replace("-", ":"),
        network=addresses.without_zeros((pod.vmNetworkCIDR if pod is not None else None) or INNER_NETWORK) if inside else "",
        network6=((pod.vmIPv6NetworkCIDR if pod is not None else None) or INNER_NETWORK6) if inside else "",
        bridge=bridge,
        traffic=bridge.traffic if bridge is not None else NO_LIMIT,
        ports=tuple(_ports(interface)) if inside else (),
        hostname=hostname_of(instance),
        domain=f"{instance.spec.subdomain}.{namespace}.svc.{domain}" if instance.spec.subdomain else "",
        resolver=_resolver(instance.spec),
        dhcp=_dhcp(interface),
        model=interface.model or "virtio",
        queues=queues_of(instance.spec, interface),
        group=namespace,
    )


def _resolver(spec: VirtualMachineInstanceSpec) -> GuestResolver:
    """Return what a guest learns of names. The only network is the pods', so the policy for the host's is that for theirs."""
    config = spec.dnsConfig
    policy = _POLICIES.get(spec.dnsPolicy or "", "ClusterFirst")
    if config is None:
        return GuestResolver(policy)
    servers = tuple(each if ":" in each else addresses.without_zeros(each) for each in config.nameservers or ())
    return GuestResolver(policy, ResolverConfig(servers, tuple(config.searches or ())))


def hostname_of(instance: VirtualMachineInstance) -> str:
    """The guest's host name: its own, else the machine's up to the first dot."""
    return instance.spec.hostname or instance.metadata.name.partition(".")[0][:63].rstrip("-")


def queues_of(spec: VirtualMachineInstanceSpec, interface: Interface) -> int:
    """One queue for each virtual processor where that was asked for; virtio only."""
    if not spec.domain.devices.networkInterfaceMultiqueue or (interface.model or "virtio") != "virtio":
        return 1
    cpu = spec.domain.cpu
    count = (cpu.sockets or 1) * (cpu.cores or 1) * (cpu.threads or 1) if cpu is not None else 1
    return min(count, _MOST_QUEUES)


def _ports(interface: Interface) -> Iterator[Ports]:
    for port in interface.ports or ():
        yield Ports(_protocol(port.protocol), port.port)
    for span in interface.portRanges or ():
        yield Ports(_protocol(span.protocol), span.start, span.end)


def _protocol(name: str | None) -> Protocol:
    return "udp" if name == "UDP" else "tcp"


def _dhcp(interface: Interface) -> DhcpOptions:
    given = interface.dhcpOptions
    if given is None:
        return DhcpOptions()
    return DhcpOptions(
        tftp_server=given.tftpServerName or "",
        boot_file=given.bootFileName or "",
        ntp=tuple(map(addresses.without_zeros, given.ntpServers or ())),
        private=tuple((each.option, each.value) for each in given.privateOptions or ()),
    )


def status_of(interface: Interface, plug: AttachedNic, *, linked: bool, queues: int) -> InterfaceStatus:
    """A card in the status: the address is the one that others use."""
    addresses = [*plug.addresses]
    return InterfaceStatus(
        name=interface.name,
        mac=plug.mac,
        ipAddress=addresses[0] if addresses else None,
        ipAddresses=addresses or None,
        podInterfaceName=plug.backend.device if isinstance(plug.backend, Tap) else None,
        infoSource="domain",
        queueCount=queues,
        linkState="up" if linked else "down",
    )
