"""Rules of networks and cards: V86, V87, V90 to V93 and V97 to V103 (docs/spec/kubevirt.md section 2.11)."""

from collections.abc import Iterator

from paddock.base import addresses
from paddock.kubernetes.schema import finding, formats
from paddock.kubernetes.schema.finding import CauseType, Finding, Path
from paddock.kubernetes.schema.kind import Cel
from paddock.kubevirt.kinds import macs
from paddock.kubevirt.kinds.networks import DHCPOptions, Interface, Network, PortRange
from paddock.kubevirt.rules.place import HardwareContext, check, once, standing

# What the engine does for a binding by name.
PLUGINS = ("l2bridge", "managedtap", "passt")
BINDINGS = ("masquerade", "bridge", "sriov", "passtBinding", "binding")
_DISCONTINUED = ("slirp", "passt", "macvtap")
_TYPES = ("pod", "multus", "resourceClaim")
# The hardware address of the gateway under masquerade.
_GATEWAY = "020000000000"
_MOST_RANGES = 10


@once
def interfaces(hardware: HardwareContext) -> Iterator[tuple[Interface, Path]]:
    """The cards with their places."""
    for index, interface in enumerate(hardware.spec.domain.devices.interfaces or ()):
        yield interface, hardware.at("domain", "devices", "interfaces", index)


def _networks(hardware: HardwareContext) -> dict[str, Network]:
    return {network.name: network for network in hardware.spec.networks or ()}


@check("kubevirt/V86", given=("spec.networks",))
def networks_have_cards(hardware: HardwareContext) -> Iterator[Finding]:
    """Every network has a card of its name."""
    cards = {interface.name for interface, _ in interfaces(hardware)}
    for index, network in enumerate(hardware.spec.networks or ()):
        if network.name and network.name not in cards:
            why = f"'{network.name}' not found: no interface of this name"
            yield finding.invalid(hardware.at("networks", index, "name"), network.name, why, "kubevirt/V86")


@check("kubevirt/V87", given=("spec.domain.devices.interfaces",))
def cards_have_networks(hardware: HardwareContext) -> Iterator[Finding]:
    """Every card has a network of its name."""
    networks = _networks(hardware)
    for interface, path in interfaces(hardware):
        if interface.name and interface.name not in networks:
            why = f"'{interface.name}' not found: no network of this name"
            yield finding.invalid((*path, "name"), interface.name, why, "kubevirt/V87")


@check(
    "kubevirt/V90",
    Cel(
        "domain.devices.interfaces[]",
        f"[{', '.join(f'has(self.{name})' for name in BINDINGS)}].filter(given, given).size() <= 1",
        "needs exactly one binding",
    ),
    given=("spec.domain.devices.interfaces",),
)
def cards_have_one_binding(hardware: HardwareContext) -> Iterator[Finding]:
    """A card has one binding; a preference may give it one."""
    for interface, path in interfaces(hardware):
        given = [name for name in BINDINGS if getattr(interface, name) is not None]
        if len(given) > 1:
            why = f"needs exactly one binding, got {len(given)}"
            yield finding.invalid(path, given, why, "kubevirt/V90")
        elif not given and not any(getattr(interface, name) is not None for name in _DISCONTINUED):
            if hardware.preferred:
                continue
            why = "needs exactly one binding, got 0; masquerade is what most machines want"
            yield finding.invalid(path, given, why, "kubevirt/V90")


@check("kubevirt/V91", given=("spec.domain.devices.interfaces[].masquerade", "spec.domain.devices.interfaces[].passtBinding"))
def masquerade_is_for_pods(hardware: HardwareContext) -> Iterator[Finding]:
    """Masquerade and passt work on the pod network only."""
    networks = _networks(hardware)
    for interface, path in interfaces(hardware):
        network = networks.get(interface.name)
        if network is None or network.pod is not None:
            continue
        for name, title in (("masquerade", "Masquerade"), ("passtBinding", "Passt")):
            if getattr(interface, name) is not None:
                why = f"{title} interface only implemented with pod network"
                found = finding.invalid((*path, "name"), interface.name, why, "kubevirt/V91")
                yield standing(found, (*path, name))


@check("kubevirt/V92", given=("spec.domain.devices.interfaces[].macAddress",))
def the_gateways_address_is_taken(hardware: HardwareContext) -> Iterator[Finding]:
    """Under masquerade, the gateway's hardware address is not the guest's."""
    for interface, path in interfaces(hardware):
        address = interface.macAddress
        if interface.masquerade is not None and address and address.replace(":", "").replace("-", "") == _GATEWAY:
            why = "reserved for the gateway; choose another one"
            yield finding.invalid((*path, "macAddress"), address, why, "kubevirt/V92")


@check(
    "kubevirt/V93",
    given=("spec.domain.devices.interfaces[].slirp", "spec.domain.devices.interfaces[].passt", "spec.domain.devices.interfaces[].macvtap"),
)
def old_bindings_are_gone(hardware: HardwareContext) -> Iterator[Finding]:
    """Bindings that KubeVirt has given up are refused."""
    for interface, path in interfaces(hardware):
        for name in _DISCONTINUED:
            if getattr(interface, name) is not None:
                message = f"Invalid value: {name} has been discontinued since v1.3; use masquerade, bridge or passtBinding"
                yield Finding(path=(*path, name), message=message, rule="kubevirt/V93")


@check("kubevirt/binding-is-known", warns=True, given=("spec.domain.devices.interfaces[].binding",))
def bindings_have_known_names(hardware: HardwareContext) -> Iterator[Finding]:
    """A binding by name that the engine does not know keeps the machine from starting (a warning); a cluster has a list of its own."""
    if hardware.settings.target != "embedded":
        return
    for interface, path in interfaces(hardware):
        if interface.binding is not None and interface.binding.name and interface.binding.name not in PLUGINS:
            text = f"the machine cannot start here: the bindings by name are {', '.join(PLUGINS)}"
            yield finding.warning((*path, "binding"), text, "kubevirt/binding-is-known")


@check("kubevirt/V97", given=("spec.domain.devices.interfaces[].ports",))
def ports_have_names_of_their_own(hardware: HardwareContext) -> Iterator[Finding]:
    """Names of ports are short and unique for their card."""
    for interface, path in interfaces(hardware):
        seen = set()
        for index, port in enumerate(interface.ports or ()):
            if not port.name:
                continue
            if port.name in seen:
                yield finding.duplicate((*path, "ports", index, "name"), port.name, "kubevirt/V97")
            elif not _is_port_name(port.name):
                why = "must be at most 15 lower-case letters, digits and single '-', with at least one letter"
                yield finding.invalid((*path, "ports", index, "name"), port.name, why, "kubevirt/V97")
            seen.add(port.name)


def _is_port_name(text: str) -> bool:
    plain = text.replace("-", "")
    if not text.isascii() or len(text) > 15 or text[0] == "-" or text[-1] == "-" or "--" in text:
        return False
    return plain.isalnum() and plain == plain.lower() and not plain.isdigit()


@check("kubevirt/V98", given=("spec.domain.devices.interfaces[].portRanges",))
def port_ranges_make_sense(hardware: HardwareContext) -> Iterator[Finding]:
    """Ranges of ports are few, in order, on masquerade, and not beside single ports."""
    for interface, path in interfaces(hardware):
        ranges = interface.portRanges or []
        if not ranges:
            continue
        at = (*path, "portRanges")
        if interface.ports:
            why = "ports and portRanges are mutually exclusive"
            yield standing(finding.invalid((*path, "name"), interface.name, why, "kubevirt/V98"), at)
        if interface.masquerade is None:
            why = "portRanges are possible on a masquerade interface only"
            yield standing(finding.invalid((*path, "name"), interface.name, why, "kubevirt/V98"), at)
        if len(ranges) > _MOST_RANGES:
            yield finding.too_many(at, len(ranges), _MOST_RANGES, "kubevirt/V98")
        for index, each in enumerate(ranges):
            if each.start > each.end > 0:
                yield finding.invalid((*at, index, "end"), each.end, f"must not be less than start ({each.start})", "kubevirt/V98")
            for earlier, other in enumerate(ranges[:index]):
                if _overlap(each, other):
                    found = finding.invalid(at, each.start, f"portRanges[{index}] overlaps portRanges[{earlier}]", "kubevirt/V98")
                    yield standing(found, (*at, index))


def _overlap(one: PortRange, other: PortRange) -> bool:
    same = (one.protocol or "TCP") == (other.protocol or "TCP")
    return same and one.start <= (other.end or other.start) and other.start <= (one.end or one.start)


@check("kubevirt/V99", given=("spec.domain.devices.interfaces[].dhcpOptions",))
def private_dhcp_options_are_private(hardware: HardwareContext) -> Iterator[Finding]:
    """DHCP options for private use have numbers from 224 to 254, each once."""
    for interface, path in interfaces(hardware):
        if interface.dhcpOptions is not None:
            yield from _private_options(hardware, interface.dhcpOptions, (*path, "dhcpOptions", "privateOptions"))


@check("kubevirt/V119", given=("spec.domain.devices.interfaces[].dhcpOptions.ntpServers",))
def time_servers_are_addresses(hardware: HardwareContext) -> Iterator[Finding]:
    """NTP servers are IPv4 addresses. KubeVirt reads leading zeros as decimal digits, and so does the engine."""
    for interface, path in interfaces(hardware):
        servers = (interface.dhcpOptions.ntpServers if interface.dhcpOptions is not None else None) or ()
        for index, server in enumerate(servers):
            if not formats.FORMATS["ipv4"].accepts(addresses.without_zeros(server)):
                at = (*path, "dhcpOptions", "ntpServers", index)
                yield finding.invalid(at, server, "NTP servers must be IPv4 addresses, such as 192.0.2.1", "kubevirt/V119")


def _private_options(hardware: HardwareContext, options: DHCPOptions, path: Path) -> Iterator[Finding]:
    seen = set()
    for index, private in enumerate(options.privateOptions or ()):
        number, at = private.option, (*path, index, "option")
        if not 224 <= number <= 254:
            why = f"the DHCP option {number} is not for private use; use 224 to 254"
            yield standing(finding.invalid(hardware.path, number, why, "kubevirt/V99"), at)
        elif number in seen:
            yield standing(finding.duplicate(hardware.path, number, "kubevirt/V99", "DHCP option given twice"), at)
        seen.add(number)


@check("kubevirt/V100", given=("spec.networks[].pod",))
def one_pod_network(hardware: HardwareContext) -> Iterator[Finding]:
    """There is at most one pod network."""
    pods = [index for index, network in enumerate(hardware.spec.networks or ()) if network.pod is not None]
    if len(pods) > 1:
        why = "more than one interface is connected to a pod network; at most one pod network is possible"
        name = (hardware.spec.networks or [])[pods[1]].name
        found = finding.duplicate(hardware.at("interfaces"), name, "kubevirt/V100", why)
        yield standing(found, hardware.at("networks", pods[1]))


@check("kubevirt/V101", given=("spec.networks[].multus.default",))
def one_default_network(hardware: HardwareContext) -> Iterator[Finding]:
    """There is one default network: the pod network, or one of multus."""
    networks = list(enumerate(hardware.spec.networks or ()))
    defaults = [index for index, network in networks if network.multus is not None and network.multus.default]
    if len(defaults) > 1:
        message = f"Invalid value: Multus has at most one default network, got {len(defaults)}"
        found = Finding(path=hardware.at("networks"), message=message, rule="kubevirt/V101")
        yield standing(found, hardware.at("networks", defaults[1]))
    if defaults and any(network.pod is not None for _, network in networks):
        message = "Invalid value: a pod network cannot stand beside a default network of multus"
        found = Finding(path=hardware.at("networks"), message=message, rule="kubevirt/V101")
        yield standing(found, hardware.at("networks", defaults[0]))


@check(
    "kubevirt/V102",
    Cel(
        "networks[]",
        f"[{', '.join(f'has(self.{name})' for name in _TYPES)}].filter(given, given).size() == 1",
        "must have exactly one network type",
    ),
    given=("spec.networks",),
)
def networks_have_one_type(hardware: HardwareContext) -> Iterator[Finding]:
    """A network has exactly one type, and a network of multus has a name."""
    for index, network in enumerate(hardware.spec.networks or ()):
        given, path = [name for name in _TYPES if getattr(network, name) is not None], hardware.at("networks", index)
        if len(given) != 1:
            message = f"must have exactly one network type, {' or '.join(_TYPES)}, got {len(given)}"
            cause = CauseType.INVALID if given else CauseType.REQUIRED
            word = "Invalid" if given else "Required"
            yield Finding(path=path, message=f"{word} value: {message}", rule="kubevirt/V102", cause=cause)
        if network.multus is not None and not network.multus.networkName:
            found = finding.required(path, "kubevirt/V102", "a multus network must have a networkName")
            yield standing(found, (*path, "multus"))


@check("kubevirt/V103", given=("spec.domain.devices.interfaces[].state",))
def states_are_possible(hardware: HardwareContext) -> Iterator[Finding]:
    """Only a card on a bridge that is not the default network can be unplugged, and the link of an SR-IOV card is the network's."""
    networks = _networks(hardware)
    for interface, path in interfaces(hardware):
        if interface.sriov is not None and interface.state in ("up", "down"):
            yield finding.invalid((*path, "state"), interface.state, "is not supported for an SR-IOV card; leave it out", "kubevirt/V103")
        if interface.state != "absent":
            continue
        network = networks.get(interface.name)
        if interface.bridge is None:
            yield finding.invalid((*path, "state"), "absent", "is supported only for the bridge binding", "kubevirt/V103")
        if network is not None and (network.pod is not None or (network.multus is not None and network.multus.default)):
            yield finding.invalid((*path, "state"), "absent", "is not supported on the default network", "kubevirt/V103")


@check(macs.RULE, warns=True, given=("spec.domain.devices.interfaces[].macAddress",))
def addresses_are_different(hardware: HardwareContext) -> Iterator[Finding]:
    """No two cards of a machine have the same hardware address (a warning)."""
    seen: dict[str, str] = {}
    for interface, path in interfaces(hardware):
        address = macs.plain(interface.macAddress or "")
        if address and address in seen:
            text = f"the card {seen[address]} of this machine has the same address; the guest may use one of them only"
            yield finding.warning((*path, "macAddress"), text, macs.RULE)
        seen.setdefault(address, interface.name)


CHECKS = (
    networks_have_cards,
    cards_have_networks,
    cards_have_one_binding,
    masquerade_is_for_pods,
    the_gateways_address_is_taken,
    old_bindings_are_gone,
    bindings_have_known_names,
    ports_have_names_of_their_own,
    port_ranges_make_sense,
    private_dhcp_options_are_private,
    time_servers_are_addresses,
    one_pod_network,
    one_default_network,
    networks_have_one_type,
    states_are_possible,
    addresses_are_different,
)
