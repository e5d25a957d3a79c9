"""Networks of a machine and the cards that connect it to them."""

from typing import Annotated

from paddock.kubernetes.schema.field import Empty, Field, Object

MODELS = ("e1000", "e1000e", "igb", "ne2k_pci", "pcnet", "rtl8139", "virtio")
STATES = ("up", "down", "absent", "")
PROTOCOLS = ("TCP", "UDP")
_NAME = Field(
    "Name of the card and of its network.",
    required=True,
    pattern="^[A-Za-z0-9_-]+$",
    message="Network interface name can only contain alphabetical characters, numbers, dashes (-) or underscores (_)",
)


class Port(Object):
    """A port that is forwarded to the guest."""

    port: Annotated[int, Field("The port.", required=True, ge=1, le=65535)] = 0
    protocol: Annotated[str | None, Field("Its protocol; default: TCP.", enum=PROTOCOLS, empty_is_unset=True)] = None
    name: Annotated[str | None, Field("A name for the port.")] = None


class PortRange(Object):
    """Ports that are forwarded to the guest."""

    protocol: Annotated[str, Field("Their protocol.", required=True, enum=PROTOCOLS)] = ""
    start: Annotated[int, Field("First port.", required=True, ge=1, le=65535)] = 0
    end: Annotated[int, Field("Last port.", required=True, ge=1, le=65535)] = 0


class DHCPPrivateOption(Object):
    """An option for private use."""

    option: Annotated[int, Field("Number of the option, 224 to 254.", required=True)] = 0
    value: Annotated[str, Field("Value of the option.", required=True)] = ""


class DHCPOptions(Object):
    """The options that DHCP gives the guest besides its address."""

    bootFileName: Annotated[str | None, Field("Boot file (option 67).")] = None
    tftpServerName: Annotated[str | None, Field("TFTP server (option 66).")] = None
    ntpServers: Annotated[list[str] | None, Field("NTP servers (option 42): IPv4 addresses.")] = None
    privateOptions: Annotated[list[DHCPPrivateOption] | None, Field("Options for private use.")] = None


class PluginBinding(Object):
    """A binding by its name."""

    name: Annotated[str, Field("Name of the binding.", required=True)] = ""


class Interface(Object):
    """A network card; exactly one of its bindings."""

    name: Annotated[str, _NAME] = ""
    model: Annotated[str | None, Field("Model of the card; default: virtio.", enum=MODELS, empty_is_unset=True)] = None
    masquerade: Annotated[Empty | None, Field("Behind the host's address; pod network only.")] = None
    bridge: Annotated[Empty | None, Field("On a bridge of the host.")] = None
    sriov: Annotated[Empty | None, Field("A virtual function of a card of the host.")] = None
    passtBinding: Annotated[Empty | None, Field("User-mode networking by passt; pod network only.")] = None
    binding: Annotated[PluginBinding | None, Field("Another binding, by name.")] = None
    slirp: Annotated[Empty | None, Field("User-mode networking by slirp; refused since v1.3.")] = None
    passt: Annotated[Empty | None, Field("The former passt; refused since v1.3.")] = None
    macvtap: Annotated[Empty | None, Field("Macvtap; refused since v1.3.")] = None
    ports: Annotated[list[Port] | None, Field("Ports that are forwarded; none means all.")] = None
    portRanges: Annotated[list[PortRange] | None, Field("Ranges of ports that are forwarded; masquerade only.")] = None
    macAddress: Annotated[
        str | None, Field("Hardware address; default: one that is made once and kept.", format="mac", empty_is_unset=True)
    ] = None
    bootOrder: Annotated[
        int | None,
        Field(
            "Place in the order of boot devices, 1 first; unique over disks and cards.", ge=1, bits=32, message="must have a boot order > 0"
        ),
    ] = None
    pciAddress: Annotated[
        str | None,
        Field(
            "Where the device sits, such as 0000:81:01.0.",
            pattern=r"^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$",
            message="malformed PCI address, write it as 0000:81:01.0",
            empty_is_unset=True,
        ),
    ] = None
    acpiIndex: Annotated[int | None, Field("Index by which the guest names the card, 1 to 16383.", ge=0, le=16383)] = None
    dhcpOptions: Annotated[DHCPOptions | None, Field("Options that the guest gets by DHCP beside its address.")] = None
    tag: Annotated[str | None, Field("Name of the card in the config drive's metadata.")] = None
    state: Annotated[str | None, Field("Link state, or absent to unplug the card; default: up.", enum=STATES)] = None


Interfaces = Annotated[
    list[Interface] | None,
    Field("Network cards.", max_items=256, keys=("name",), message="only one interface can be connected to one specific network"),
]


class PodNetwork(Object):
    """The default network."""

    vmNetworkCIDR: Annotated[str | None, Field("Network inside the machine under masquerade; default: 10.0.2.0/24.")] = None
    vmIPv6NetworkCIDR: Annotated[str | None, Field("IPv6 network inside the machine; default: fd10:0:2::/120.")] = None


class MultusNetwork(Object):
    """A network of its own, by its NetworkAttachmentDefinition."""

    networkName: Annotated[str, Field("The definition: name or namespace/name.", required=True)] = ""
    default: Annotated[bool | None, Field("Whether it takes the place of the default network.")] = None


class NetworkClaim(Object):
    """A network device by a resource claim."""

    claimName: Annotated[str | None, Field("Name of the entry in resourceClaims.")] = None
    requestName: Annotated[str | None, Field("Name of the request.")] = None


class Network(Object):
    """A network the machine is connected to; exactly one type."""

    name: Annotated[str, Field("Name of the network and of its card.", required=True)] = ""
    pod: Annotated[PodNetwork | None, Field("The default network.")] = None
    multus: Annotated[MultusNetwork | None, Field("A network of its own.")] = None
    resourceClaim: Annotated[NetworkClaim | None, Field("A network device.", not_honoured="resource claims (DRA) are refused")] = None
