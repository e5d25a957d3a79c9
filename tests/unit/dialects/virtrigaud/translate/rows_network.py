"""The rows of images and networks."""

from typing import Any

from tests.unit.dialects.virtrigaud.translate.rows import DEVICES, IMAGE, NETWORK, PLUGIN, PROVIDER, ROOT, SPEC, VM, Row

GONE: Any = None
SHA = "a" * 64
HTTP = f"{ROOT}.source.http"
INTERFACE, CONNECTED = f"{DEVICES}.interfaces.0", f"{SPEC}.networks.0"
VSPHERE, PROXMOX, LIBVIRT = ({PROVIDER: {".type": kind}} for kind in ("vsphere", "proxmox", "libvirt"))


def image(what: str, source: dict[str, Any], machine: dict[str, Any], *lost: str, **others: Any) -> Row:
    changes: dict[str, Any] = {IMAGE: {".source": source, **others.get("also", {})}, **others.get("others", {})}
    return Row(what, changes, machine, lost=tuple(each if "/" in each else f"VMImage/debian spec{each}" for each in lost))


def network(what: str, config: dict[str, Any], plugin: dict[str, Any], *lost: str, **others: Any) -> Row:
    changes: dict[str, Any] = {NETWORK: {".network": config, **others.get("also", {})}, **others.get("others", {})}
    wanted = {f"{PLUGIN}.{name}": value for name, value in plugin.items()}
    told = tuple(each if "/" in each else f"VMNetworkAttachment/lan spec{each}" for each in lost)
    return Row(what, changes, others.get("machine", {}), wanted, told)


BR0 = {"bridge": {"name": "br0"}}
URL = "https://images.example.com/a.img"
OTHERS = ("Provider/local spec.endpoint",)

IMAGES = (
    image(
        "http",
        {"http": {"url": URL, "headers": {"X-Team": "a"}, "checksum": SHA}},
        {HTTP: {"url": URL, "extraHeaders": ["X-Team: a"], "checksum": f"sha256:{SHA}"}},
    ),
    image("another sum", {"http": {"url": URL, "checksum": "b" * 32, "checksumType": "md5"}}, {f"{HTTP}.checksum": "md5:" + "b" * 32}),
    image("a sum with its kind", {"http": {"url": URL, "checksum": f"sha256:{SHA}"}}, {f"{HTTP}.checksum": f"sha256:{SHA}"}),
    image("a sum that is none", {"http": {"url": URL, "checksum": "abc"}}, {f"{HTTP}.checksum": None}, ".source.http.checksum"),
    image(
        "a sum that is not to be compared",
        {"http": {"url": URL, "checksum": SHA}},
        {f"{HTTP}.checksum": None},
        ".source.http.checksum",
        ".prepare",
        also={".prepare.validateChecksum": False},
    ),
    image("a time limit", {"http": {"url": URL, "timeout": "1h"}}, {}, ".source.http.timeout"),
    image("registry", {"registry": {"image": "quay.io/a/b:c"}}, {f"{ROOT}.source": {"registry": {"url": "docker://quay.io/a/b:c"}}}),
    image(
        "a short name with a digest",
        {"registry": {"image": f"b@sha256:{SHA}"}},
        {f"{ROOT}.source.registry.url": f"docker://docker.io/library/b@sha256:{SHA}"},
    ),
    image("a format in a registry", {"registry": {"image": "quay.io/a/b:c", "format": "raw"}}, {}, ".source.registry.format"),
    image(
        "dataVolume",
        {"dataVolume": {"name": "golden"}},
        {f"{ROOT}.source": {"pvc": {"name": "golden", "namespace": "default"}}, f"{ROOT}.storage": {}},
    ),
    image("dataVolume elsewhere", {"dataVolume": {"name": "golden", "namespace": "images"}}, {f"{ROOT}.source.pvc.namespace": "images"}),
    image(
        "libvirt's URL",
        {"libvirt": {"url": URL, "checksum": SHA, "path": "/x", "storagePool": "p", "format": "raw"}},
        {HTTP: {"url": URL, "checksum": f"sha256:{SHA}"}},
        ".source.libvirt.path",
        ".source.libvirt.storagePool",
        ".source.libvirt.format",
    ),
    image(
        "the provider's own block",
        {"libvirt": {"url": URL}, "http": {"url": "https://other.example.com/b"}},
        {f"{HTTP}.url": URL},
        ".source.http",
        *OTHERS,
        others=LIBVIRT,
    ),
    image(
        "the block for everybody",
        {"libvirt": {"url": URL}, "http": {"url": "https://other.example.com/b"}},
        {f"{HTTP}.url": "https://other.example.com/b"},
        ".source.libvirt",
        *OTHERS,
        others=VSPHERE,
    ),
    image("the registry after http", {"registry": {"image": "a/b:c"}, "http": {"url": URL}}, {f"{HTTP}.url": URL}, ".source.registry"),
    image(
        "an own block out of reach",
        {"vsphere": {"templateName": "t"}, "registry": {"image": "a/b:c"}},
        {f"{ROOT}.source.registry.url": "docker://a/b:c"},
        ".source.vsphere",
        *OTHERS,
        others=VSPHERE,
    ),
    image(
        "another provider's URL as the last",
        {"vsphere": {"templateName": "t"}, "libvirt": {"url": URL}},
        {f"{HTTP}.url": URL},
        ".source.vsphere",
        *OTHERS,
        others=VSPHERE,
    ),
    *(
        image(
            f"nothing but {next(iter(source))}",
            source,
            {f"{ROOT}.source": None, f"{ROOT}.sourceRef": {"kind": "DataSource", "name": "debian"}, f"{ROOT}.storage": {}},
            f".source.{next(iter(source))}",
        )
        for source in (
            {"vsphere": {"templateName": "t"}},
            {"vsphere": {"contentLibrary": {"library": "l", "item": "i"}}},
            {"vsphere": {"ovaURL": "https://x/a.ova"}},
            {"proxmox": {"templateID": 9000, "node": "pve1"}},
            {"libvirt": {"path": "/x"}},
            {"libvirt": {"url": "ftp://x/a.img"}},
        )
    ),
    image("no source", {}, {f"{ROOT}.sourceRef.name": "debian"}, ".source"),
    *(
        image(f"prepare.{member}", {"http": {"url": URL}}, {}, ".prepare", also={f".prepare.{member}": value})
        for member, value in (
            ("onMissing", "Fail"),
            ("timeout", "1h"),
            ("retries", 5),
            ("force", True),
            ("storage", {"preferredFormat": "raw"}),
            ("optimization", {"removeUnusedSpace": True}),
        )
    ),
    image("the architecture", {"http": {"url": URL}}, {f"{SPEC}.architecture": "arm64"}, also={".metadata": {"architecture": "arm64"}}),
    image("x86_64", {"http": {"url": URL}}, {f"{SPEC}.architecture": "amd64"}, also={".metadata": {"architecture": "x86_64"}}),
    image("no architecture", {"http": {"url": URL}}, {f"{SPEC}.architecture": None}),
)
NETWORKS = (
    network(
        "a bridge",
        {"libvirt": BR0},
        {"type": "bridge", "bridge": "br0", "mtu": None, "vlan": None},
        machine={
            INTERFACE: {"name": "eth0", "model": "virtio", "bridge": {}},
            CONNECTED: {"name": "eth0", "multus": {"networkName": "lan-libvirt"}},
        },
    ),
    network("the MTU", {"libvirt": BR0, "mtu": 9000}, {"mtu": 9000}),
    network("the card's model", {"libvirt": {**BR0, "model": "e1000"}}, {}, machine={f"{INTERFACE}.model": "e1000"}),
    network(
        "the driver",
        {"libvirt": {**BR0, "driver": {"name": "kvm", "queues": 4, "txMode": "timer", "ioEventFD": True, "eventIDX": True}}},
        {},
        ".network.libvirt.driver",
        machine={f"{DEVICES}.networkInterfaceMultiqueue": True},
    ),
    network(
        "the spanning tree",
        {"libvirt": {"bridge": {"name": "br0", "stp": True, "delay": 2}}},
        {},
        ".network.libvirt.bridge.stp",
        ".network.libvirt.bridge.delay",
    ),
    network("a filter", {"libvirt": {**BR0, "filterRef": {"filter": "clean-traffic"}}}, {}, ".network.libvirt.filterRef"),
    network(
        "the bridge before the network", {"libvirt": {**BR0, "networkName": "default"}}, {"bridge": "br0"}, ".network.libvirt.networkName"
    ),
    network(
        "a bridge that cannot be one", {"libvirt": {"bridge": {"name": "a b"}}}, {"bridge": "br-c8687a08"}, ".network.libvirt.bridge.name"
    ),
    Row(
        "an existing network",
        {NETWORK: {".network": {"libvirt": {"networkName": "lab"}, "mtu": 9000}}},
        {CONNECTED: {"name": "eth0", "multus": {"networkName": "lab"}}},
        lost=("VMNetworkAttachment/lan spec.network.mtu",),
    ),
    network(
        "a network that cannot be a name", {"libvirt": {"networkName": "A Lab"}}, {"bridge": "br-9751a112"}, ".network.libvirt.networkName"
    ),
    network(
        "Proxmox's block",
        {"proxmox": {"bridge": "vmbr1", "vlanTag": 100, "mtu": 1400, "model": "e1000"}, "libvirt": BR0},
        {"bridge": "vmbr1", "vlan": 100, "mtu": 1400},
        ".network.libvirt",
        *OTHERS,
        others=PROXMOX,
        machine={f"{INTERFACE}.model": "e1000", f"{CONNECTED}.multus.networkName": "lan-proxmox"},
    ),
    network("two MTUs", {"proxmox": {"bridge": "vmbr1", "mtu": 1400}, "mtu": 9000}, {"mtu": 1400}, ".network.mtu"),
    network(
        "a card that KubeVirt does not have",
        {"proxmox": {"bridge": "vmbr1", "model": "vmxnet3"}},
        {},
        ".network.proxmox.model",
        machine={f"{INTERFACE}.model": "virtio"},
    ),
    network(
        "Proxmox's firewall and limit",
        {"proxmox": {"bridge": "vmbr1", "firewall": True, "rateLimit": 10}},
        {},
        ".network.proxmox.firewall",
        ".network.proxmox.rateLimit",
    ),
    network(
        "vSphere's block",
        {"vsphere": {"portgroup": "br7", "vlan": {"type": "vlan", "vlanID": 7}, "adapterType": "e1000e"}, "proxmox": {"bridge": "vmbr0"}},
        {"bridge": "br7", "vlan": 7},
        ".network.proxmox",
        *OTHERS,
        others=VSPHERE,
        machine={f"{INTERFACE}.model": "e1000e", f"{CONNECTED}.multus.networkName": "lan-vsphere"},
    ),
    network(
        "a portgroup with a long name",
        {"vsphere": {"portgroup": "PG-App-VLAN100-Production"}},
        {"bridge": "br-1324b77a"},
        ".network.vsphere.portgroup",
        machine={f"{INTERFACE}.model": "virtio"},
    ),
    network(
        "a trunk",
        {"vsphere": {"portgroup": "br7", "vlan": {"type": "trunk", "trunkVlanIDs": [5, 6]}}},
        {"vlanTrunk": [{"id": 5}, {"id": 6}], "vlan": None},
    ),
    network(
        "a private VLAN",
        {"vsphere": {"portgroup": "br7", "vlan": {"type": "pvlan", "primaryVlanID": 5, "secondaryVlanID": 6}}},
        {"vlan": None},
        ".network.vsphere.vlan",
    ),
    network(
        "forged transmits",
        {"vsphere": {"portgroup": "br7", "security": {"allowForgedTransmits": False}}},
        {"macspoofchk": True, "promiscMode": None},
    ),
    network(
        "promiscuous cards",
        {"vsphere": {"portgroup": "br7", "security": {"allowPromiscuous": True}}},
        {"promiscMode": True, "macspoofchk": None},
    ),
    network(
        "changed addresses",
        {"vsphere": {"portgroup": "br7", "security": {"allowMACChanges": False}}},
        {"macspoofchk": None},
        ".network.vsphere.security.allowMACChanges",
    ),
    network(
        "the rest of vSphere's",
        {"vsphere": {"portgroup": "br7", "distributedSwitch": {"name": "d"}, "trafficShaping": {"enabled": True}, "pciSlotNumber": 192}},
        {},
        ".network.vsphere.distributedSwitch",
        ".network.vsphere.trafficShaping",
        ".network.vsphere.pciSlotNumber",
    ),
    network("no block", {}, {"bridge": "br-e1714d09"}, ".network.type", machine={f"{CONNECTED}.multus.networkName": "lan"}),
    network("isolated", {"type": "isolated"}, {"bridge": "br-e1714d09"}),
    network("host-only", {"type": "host-only"}, {"bridge": "br-e1714d09"}, ".network.type"),
    network("external", {"type": "external", "libvirt": BR0}, {"bridge": "br0"}),
    Row(
        "nat",
        {NETWORK: {".network": {"type": "nat", "libvirt": {"model": "e1000"}}}},
        {INTERFACE: {"name": "eth0", "model": "e1000", "masquerade": {}}, CONNECTED: {"name": "eth0", "pod": {}}},
    ),
    Row(
        "nat with what a document would say",
        {NETWORK: {".network": {"type": "nat", "mtu": 9000, "libvirt": BR0}, ".metadata.displayName": "x", ".qos.ingressLimit": 1000}},
        {CONNECTED: {"name": "eth0", "pod": {}}},
        lost=tuple(f"VMNetworkAttachment/lan spec.{each}" for each in ("network.libvirt.bridge", "network.mtu", "metadata", "qos")),
    ),
    network(
        "nat for two cards",
        {"type": "nat"},
        {"bridge": "br-e1714d09"},
        ".network.type",
        others={VM: {".networks": [{"name": "eth0", "networkRef": {"name": "lan"}}, {"name": "eth1", "networkRef": {"name": "lan"}}]}},
        machine={f"{CONNECTED}.pod": {}, f"{SPEC}.networks.1.multus.networkName": "lan"},
    ),
    network(
        "a static address of the network",
        {"libvirt": BR0},
        {
            "ipam": {
                "type": "static",
                "addresses": [{"address": "10.0.0.9/24", "gateway": "10.0.0.1"}],
                "routes": [{"dst": "10.1.0.0/16", "gw": "10.0.0.254", "priority": 7}],
            }
        },
        also={
            ".ipAllocation": {
                "type": "Static",
                "staticConfig": {
                    "address": "10.0.0.9/24",
                    "gateway": "10.0.0.1",
                    "routes": [{"destination": "10.1.0.0/16", "gateway": "10.0.0.254", "metric": 7}],
                },
            }
        },
    ),
    network(
        "name resolution",
        {"libvirt": BR0},
        {"dns": {"nameservers": ["10.0.0.2"], "search": ["example.com"], "options": ["ndots:2", "rotate"]}},
        also={
            ".ipAllocation.dnsConfig": {"servers": ["10.0.0.2"], "searchDomains": ["example.com"], "options": {"ndots": "2", "rotate": ""}}
        },
    ),
    network(
        "an option with a colon",
        {"libvirt": BR0},
        {"dns": {}},
        ".ipAllocation.dnsConfig.options.a:b",
        also={".ipAllocation.dnsConfig.options": {"a:b": "c"}},
    ),
    network(
        "a pool",
        {"libvirt": BR0},
        {"ipam": None},
        ".ipAllocation",
        also={".ipAllocation": {"type": "Pool", "poolConfig": {"poolRef": {"name": "p"}}}},
    ),
    network("no addresses", {"libvirt": BR0}, {"ipam": None}, ".ipAllocation", also={".ipAllocation.type": "None"}),
    network("what DHCP is told", {"libvirt": BR0}, {}, ".ipAllocation", also={".ipAllocation.dhcpConfig.hostname": "a"}),
    Row(
        "limits",
        {NETWORK: {".qos": {"ingressLimit": 2000, "egressLimit": 1000, "priority": 5, "dscp": 46}}},
        config={"plugins.1": {"type": "bandwidth", "ingressRate": 2000, "ingressBurst": 2000, "egressRate": 1000, "egressBurst": 1000}},
        lost=("VMNetworkAttachment/lan spec.qos.priority", "VMNetworkAttachment/lan spec.qos.dscp"),
    ),
    *(
        network(f"security.{member}", {"libvirt": BR0}, {}, ".security", also={f".security.{member}": value})
        for member, value in (
            ("firewall", {"enabled": True}),
            ("isolation", {"mode": "strict"}),
            ("encryption", {"enabled": True, "protocol": "wireguard"}),
        )
    ),
    network("about the network", {"libvirt": BR0}, {}, also={".metadata": {"displayName": "x", "environment": "qa"}}),
)
ROWS = (*IMAGES, *NETWORKS)
