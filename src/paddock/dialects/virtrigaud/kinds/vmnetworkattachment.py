"""VirtRigaud's VMNetworkAttachment: what a card is connected to (docs/spec/virtrigaud.md section 1.4)."""

from typing import Annotated

from paddock.contract.specs import FirewallConfig, LocalObjectReference, NetworkIsolation, Tags
from paddock.dialects.virtrigaud.kinds.shared import GROUP, VERSIONS, Conditions, Environment, ObservedGeneration, ProviderPart
from paddock.dialects.virtrigaud.rules import vmnetworkattachment as rules
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Object, Time
from paddock.kubernetes.schema.kind import AGE, Column, Kind

NETWORK_TYPES = ("bridged", "nat", "isolated", "host-only", "external")


class DistributedSwitch(Object):
    """A distributed switch of vSphere."""

    name: Annotated[str, Field("Name of the switch.", required=True, max_length=255)] = ""
    uuid: Annotated[str | None, Field("UUID of the switch.")] = None
    portgroupType: Annotated[str | None, Field("Kind of portgroup.", enum=("ephemeral", "distributed"))] = None


class VLANConfig(Object):
    """The VLAN of a portgroup."""

    type: Annotated[str, Field("Kind of VLAN.", enum=("none", "vlan", "pvlan", "trunk"))] = "none"
    vlanID: Annotated[int | None, Field("Number, for type vlan.", ge=1, le=4094)] = None
    trunkVlanIDs: Annotated[list[Annotated[int, Field(ge=1, le=4094)]] | None, Field("Numbers, for type trunk.", max_items=100)] = None
    primaryVlanID: Annotated[int | None, Field("Primary number, for type pvlan.", ge=1, le=4094)] = None
    secondaryVlanID: Annotated[int | None, Field("Secondary number, for type pvlan.", ge=1, le=4094)] = None


class PortgroupSecurity(Object):
    """The permissions of a card on a portgroup."""

    allowPromiscuous: Annotated[bool, Field("See traffic of others.")] = False
    allowMACChanges: Annotated[bool, Field("Change its MAC address.")] = True
    allowForgedTransmits: Annotated[bool, Field("Send from another MAC address.")] = True


class TrafficShaping(Object):
    """Traffic shaping of a portgroup."""

    enabled: Annotated[bool, Field("Whether traffic is shaped.")] = False
    averageBandwidth: Annotated[int | None, Field("Average bits in a second.", ge=1000)] = None
    peakBandwidth: Annotated[int | None, Field("Most bits in a second.", ge=1000)] = None
    burstSize: Annotated[int | None, Field("Bytes of a burst.", ge=1024)] = None


class VSphereNetwork(Object):
    """The network for providers of type vsphere."""

    STRANGERS = {"distributed": "write distributedSwitch"}

    portgroup: Annotated[str | None, Field("Name of the portgroup.", max_length=255)] = None
    distributedSwitch: Annotated[DistributedSwitch | None, Field("Distributed switch.")] = None
    vlan: Annotated[VLANConfig | None, Field("VLAN.")] = None
    security: Annotated[PortgroupSecurity | None, Field("What a card may do.")] = None
    trafficShaping: Annotated[TrafficShaping | None, Field("Traffic shaping.")] = None
    pciSlotNumber: Annotated[int | None, Field("PCI slot of the card, for a stable name in the guest.", ge=32, le=1024)] = None
    adapterType: Annotated[str, Field("Model of the card.", enum=("vmxnet3", "e1000", "e1000e"))] = "vmxnet3"


class BridgeConfig(Object):
    """A bridge of the host."""

    name: Annotated[str, Field("Name of the bridge.", required=True, max_length=15)] = ""
    stp: Annotated[bool, Field("Whether it speaks the spanning tree protocol.")] = False
    delay: Annotated[int | None, Field("Forwarding delay in seconds.", ge=0, le=30)] = None


class NetworkDriver(Object):
    """The driver behind a card."""

    name: Annotated[str | None, Field("Name of the driver.", enum=("kvm", "vfio", "uio"))] = None
    queues: Annotated[int | None, Field("Number of queues.", ge=1, le=16)] = None
    txMode: Annotated[str | None, Field("How packets are sent.", enum=("iothread", "timer"))] = None
    ioEventFD: Annotated[bool | None, Field("Whether events go through a file descriptor.")] = None
    eventIDX: Annotated[bool | None, Field("Whether events carry an index.")] = None


class NetworkFilter(Object):
    """A packet filter of libvirt."""

    filter: Annotated[str, Field("Name of the filter.", required=True, max_length=255)] = ""
    parameters: Annotated[dict[str, str] | None, Field("Its parameters.", max_items=20)] = None


class LibvirtNetwork(Object):
    """The network for providers of type libvirt."""

    networkName: Annotated[str | None, Field("Name of a libvirt network.", max_length=255)] = None
    bridge: Annotated[BridgeConfig | None, Field("Bridge of the host.")] = None
    model: Annotated[str, Field("Model of the card.", enum=("virtio", "e1000", "e1000e", "rtl8139", "pcnet", "ne2k_pci"))] = "virtio"
    driver: Annotated[NetworkDriver | None, Field("Driver behind the card.")] = None
    filterRef: Annotated[NetworkFilter | None, Field("Packet filter.")] = None


class ProxmoxNetwork(Object):
    """The network for providers of type proxmox."""

    bridge: Annotated[
        str | None, Field("Bridge of the host.", max_length=15, pattern="^vmbr[0-9]+$", message="must be vmbr and a number, such as vmbr0")
    ] = None
    model: Annotated[str, Field("Model of the card.", enum=("virtio", "e1000", "rtl8139", "vmxnet3"))] = "virtio"
    vlanTag: Annotated[int | None, Field("VLAN of the card.", ge=1, le=4094)] = None
    firewall: Annotated[bool, Field("Whether the firewall of Proxmox guards the card.")] = False
    rateLimit: Annotated[int | None, Field("Most megabytes in a second.", ge=1, bits=32)] = None
    mtu: Annotated[int | None, Field("MTU of the card.", ge=68, le=65520)] = None


class NetworkConfig(Object):
    """The network: a block for each type of provider."""

    STRANGERS = {"distributed": "write network.vsphere.distributedSwitch"}

    vsphere: Annotated[VSphereNetwork | None, Field("For providers of type vsphere.")] = None
    libvirt: Annotated[LibvirtNetwork | None, Field("For providers of type libvirt.")] = None
    proxmox: Annotated[ProxmoxNetwork | None, Field("For providers of type proxmox.")] = None
    type: Annotated[
        str,
        Field(
            "Kind of network, for people; without a block it is the own network of a Provider of type qemu or firecracker.",
            enum=NETWORK_TYPES,
        ),
    ] = "bridged"
    mtu: Annotated[int, Field("MTU.", ge=68, le=9000)] = 1500


class StaticRoute(Object):
    """A static route of the guest."""

    destination: Annotated[str, Field("Network it leads to.", required=True, format="cidr4")] = ""
    gateway: Annotated[str, Field("Next hop.", required=True, format="ipv4")] = ""
    metric: Annotated[int | None, Field("Metric.", ge=0, le=65535)] = None


class StaticIPConfig(Object):
    """A static address."""

    address: Annotated[str, Field("Address with prefix length, such as 10.0.0.5/24.", required=True, format="cidr4")] = ""
    gateway: Annotated[str | None, Field("Default gateway.", format="ipv4")] = None
    routes: Annotated[list[StaticRoute] | None, Field("More routes.", max_items=20)] = None


class IPPoolConfig(Object):
    """An address from a pool."""

    poolRef: Annotated[LocalObjectReference, Field("The pool.", required=True)] = LocalObjectReference()
    preferredIP: Annotated[str | None, Field("Address that is taken if it is free.", format="ipv4")] = None


class DHCPConfig(Object):
    """The values that a DHCP client sends."""

    clientID: Annotated[str | None, Field("Client identifier.", max_length=255)] = None
    hostname: Annotated[str | None, Field("Host name.", max_length=255)] = None
    options: Annotated[dict[str, str] | None, Field("DHCP options.", max_items=20)] = None


class GuestDNSConfig(Object):
    """Name resolution of the guest."""

    servers: Annotated[list[str] | None, Field("Name servers.", max_items=10)] = None
    searchDomains: Annotated[list[str] | None, Field("Search domains.", max_items=10)] = None
    options: Annotated[dict[str, str] | None, Field("Resolver options.", max_items=10)] = None


class IPAllocation(Object):
    """The address allocation of a card."""

    type: Annotated[str, Field("Who gives the address.", enum=("DHCP", "Static", "Pool", "None"))] = "DHCP"
    staticConfig: Annotated[StaticIPConfig | None, Field("For type Static.")] = None
    poolConfig: Annotated[IPPoolConfig | None, Field("For type Pool.")] = None
    dhcpConfig: Annotated[DHCPConfig | None, Field("For type DHCP.")] = None
    dnsConfig: Annotated[GuestDNSConfig | None, Field("Name resolution.")] = None


class NetworkEncryption(Object):
    """Encryption of the traffic."""

    enabled: Annotated[bool, Field("Whether traffic is encrypted.")] = False
    protocol: Annotated[str | None, Field("How.", enum=("ipsec", "wireguard", "openvpn"))] = None
    keyRef: Annotated[LocalObjectReference | None, Field("Secret with the keys.")] = None


class NetworkSecurity(Object):
    """The protection of the network."""

    firewall: Annotated[FirewallConfig | None, Field("Firewall.")] = None
    isolation: Annotated[NetworkIsolation | None, Field("Isolation.")] = None
    encryption: Annotated[NetworkEncryption | None, Field("Encryption.")] = None


class NetworkQoS(Object):
    """The limits and the priority of traffic."""

    ingressLimit: Annotated[int | None, Field("Most bits in a second to the guest.", ge=1000)] = None
    egressLimit: Annotated[int | None, Field("Most bits in a second from the guest.", ge=1000)] = None
    priority: Annotated[int | None, Field("Priority of the traffic.", ge=0, le=7)] = None
    dscp: Annotated[int | None, Field("DSCP mark of the traffic.", ge=0, le=63)] = None


class NetworkMetadata(Object):
    """Information about the network for people and programs."""

    displayName: Annotated[str | None, Field("Name for people.", max_length=255)] = None
    description: Annotated[str | None, Field("What it is.", max_length=1024)] = None
    environment: Environment = None
    tags: Tags = None


class VMNetworkAttachmentSpec(Object):
    """The connection of a card."""

    STRANGERS = {
        "vsphere": "write network.vsphere",
        "libvirt": "write network.libvirt",
        "proxmox": "write network.proxmox",
        "config": "write network",
        "networks": "write network; each VMNetworkAttachment is one",
        "networkRef": "write network, with a block of the provider",
        "ipPolicy": "write ipAllocation.type",
    }

    network: Annotated[NetworkConfig, Field("The network.", required=True)] = NetworkConfig()
    ipAllocation: Annotated[IPAllocation | None, Field("How a card gets its address.")] = None
    security: Annotated[NetworkSecurity | None, Field("What protects it.")] = None
    qos: Annotated[NetworkQoS | None, Field("How much traffic.")] = None
    metadata: Annotated[NetworkMetadata | None, Field("About the network, for people: it changes no machine.")] = None


class GivenAddress(Object):
    """An address that a machine has."""

    vm: Annotated[str, Field("The machine.", required=True)] = ""
    ip: Annotated[str, Field("The address.", required=True)] = ""
    mac: Annotated[str | None, Field("MAC address of the card.")] = None
    allocatedAt: Annotated[Time | None, Field("Since when.")] = None
    leaseExpiry: Annotated[Time | None, Field("Until when, with DHCP.")] = None


class ProviderNetwork(ProviderPart):
    """The state of the network at one provider."""

    state: Annotated[str | None, Field("Its state there.")] = None


class VMNetworkAttachmentStatus(Object):
    """The observed state of a network."""

    ready: Annotated[bool | None, Field("Whether it can be used.")] = None
    phase: Annotated[str | None, Field("Where it is in its life.", enum=("Pending", "Configuring", "Ready", "Failed"))] = None
    message: Annotated[str | None, Field("More about the phase.")] = None
    availableOn: Annotated[list[str] | None, Field("Providers that have the network.")] = None
    conditions: Conditions = None
    observedGeneration: ObservedGeneration = None
    connectedVMs: Annotated[int | None, Field("Number of machines on it.", ge=0, bits=32)] = None
    ipAllocations: Annotated[list[GivenAddress] | None, Field("Addresses that are taken.")] = None
    providerStatus: Annotated[dict[str, ProviderNetwork] | None, Field("How it stands at each provider.")] = None


class VMNetworkAttachment(Resource):
    """A network that cards of machines are connected to."""

    spec: Annotated[VMNetworkAttachmentSpec, Field("The network.", required=True)] = VMNetworkAttachmentSpec()
    status: Annotated[VMNetworkAttachmentStatus | None, Field("What was observed.")] = None


KINDS = (
    Kind(
        group=GROUP,
        kind="VMNetworkAttachment",
        plural="vmnetworkattachments",
        singular="vmnetworkattachment",
        short_names=("vmnet",),
        cls=VMNetworkAttachment,
        dialect="virtrigaud",
        versions=VERSIONS,
        columns=(
            Column("Ready", ".status.ready", "boolean"),
            Column("Type", ".spec.network.type"),
            Column("Connected VMs", ".status.connectedVMs", "integer"),
            Column("Providers", ".status.availableOn[*]"),
            AGE,
        ),
        rules=rules.RULES,
    ),
)
