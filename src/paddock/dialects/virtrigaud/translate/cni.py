"""The CNI documents that we make and read back: a bridge, perhaps with limits on its bandwidth."""

import msgspec


class Vlan(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """VLANs of a trunk: one, or those from minID to maxID."""

    id: int | None = None
    minID: int | None = None
    maxID: int | None = None


class StaticAddress(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    address: str
    gateway: str | None = None


class CniRoute(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    dst: str
    gw: str | None = None
    priority: int | None = None


class CniIpam(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The source of addresses: none, or this document."""

    type: str | None = None
    addresses: list[StaticAddress] | None = None
    routes: list[CniRoute] | None = None


class CniDns(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    nameservers: list[str] | None = None
    search: list[str] | None = None
    options: list[str] | None = None


class BridgePlugin(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, tag="bridge", tag_field="type"):
    bridge: str
    vlan: int | None = None
    vlanTrunk: list[Vlan] | None = None
    mtu: int | None = None
    macspoofchk: bool | None = None
    promiscMode: bool | None = None
    ipam: CniIpam | None = None
    dns: CniDns | None = None


class Bandwidth(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, tag="bandwidth", tag_field="type"):
    """The bandwidth plugin: bits in a second, and bits at a time."""

    ingressRate: int | None = None
    ingressBurst: int | None = None
    egressRate: int | None = None
    egressBurst: int | None = None


class CniConfig(msgspec.Struct, forbid_unknown_fields=True):
    cniVersion: str
    name: str
    plugins: list[BridgePlugin | Bandwidth]


VERSION = "1.0.0"


def document(name: str, plugins: list[BridgePlugin | Bandwidth]) -> str:
    """The document as text, the same every time."""
    return msgspec.json.encode(CniConfig(VERSION, name, plugins)).decode()


def read(text: str | None) -> CniConfig | None:
    """A document of ours, or one that says the same in the older form; None for any other."""
    if not text:
        return None
    try:
        config: CniConfig | None = msgspec.json.decode(text, type=CniConfig)
    except msgspec.DecodeError:
        config = _read_single(text)
    if config is None:
        return None
    return msgspec.structs.replace(config, plugins=[_without_empty_ipam(plugin) for plugin in config.plugins])


def _without_empty_ipam(plugin: BridgePlugin | Bandwidth) -> BridgePlugin | Bandwidth:
    """The plugin in our words: an empty `ipam` says what none says, that the network itself gives addresses."""
    if isinstance(plugin, BridgePlugin) and plugin.ipam == CniIpam():
        return msgspec.structs.replace(plugin, ipam=None)
    return plugin


def _read_single(text: str) -> CniConfig | None:
    try:
        given = msgspec.json.decode(text)
        if not isinstance(given, dict):
            return None
        version, name = given.pop("cniVersion", VERSION), given.pop("name", "")
        return CniConfig(str(version), str(name), [msgspec.convert(given, BridgePlugin)])
    except (msgspec.DecodeError, RecursionError):
        return None
