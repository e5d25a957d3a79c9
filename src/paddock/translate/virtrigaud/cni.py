"""The CNI documents that we make and read back: a bridge, perhaps with limits on its bandwidth."""

import msgspec


class Vlan(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """VLANs of a trunk: one, or those from minID to maxID."""

    id: int | None = None
    minID: int | None = None
    maxID: int | None = None


class Address(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A static address."""

    address: str
    gateway: str | None = None


class Route(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A route."""

    dst: str
    gw: str | None = None
    priority: int | None = None


class Ipam(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Who gives addresses: nobody, or this document."""

    type: str | None = None
    addresses: list[Address] | None = None
    routes: list[Route] | None = None


class Dns(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Name resolution."""

    nameservers: list[str] | None = None
    search: list[str] | None = None
    options: list[str] | None = None


class Bridge(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, tag="bridge", tag_field="type"):
    """The bridge plugin."""

    bridge: str
    vlan: int | None = None
    vlanTrunk: list[Vlan] | None = None
    mtu: int | None = None
    macspoofchk: bool | None = None
    promiscMode: bool | None = None
    ipam: Ipam | None = None
    dns: Dns | None = None


class Bandwidth(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, tag="bandwidth", tag_field="type"):
    """The bandwidth plugin: bits in a second, and bits at a time."""

    ingressRate: int | None = None
    ingressBurst: int | None = None
    egressRate: int | None = None
    egressBurst: int | None = None


class Config(msgspec.Struct, forbid_unknown_fields=True):
    """A document."""

    cniVersion: str
    name: str
    plugins: list[Bridge | Bandwidth]


VERSION = "1.0.0"


def document(name: str, plugins: list[Bridge | Bandwidth]) -> str:
    """The document as text, the same every time."""
    return msgspec.json.encode(Config(VERSION, name, plugins)).decode()


def read(text: str | None) -> Config | None:
    """A document of ours, or one that says the same in the older form; None for any other."""
    if not text:
        return None
    try:
        config: Config | None = msgspec.json.decode(text, type=Config)
    except msgspec.DecodeError:
        config = _read_single(text)
    if config is None:
        return None
    return msgspec.structs.replace(config, plugins=[_without_empty_ipam(plugin) for plugin in config.plugins])


def _without_empty_ipam(plugin: Bridge | Bandwidth) -> Bridge | Bandwidth:
    """The plugin in our words: an empty `ipam` says what none says, that the network itself gives addresses."""
    if isinstance(plugin, Bridge) and plugin.ipam == Ipam():
        return msgspec.structs.replace(plugin, ipam=None)
    return plugin


def _read_single(text: str) -> Config | None:
    try:
        given = msgspec.json.decode(text)
        if not isinstance(given, dict):
            return None
        version, name = given.pop("cniVersion", VERSION), given.pop("name", "")
        return Config(str(version), str(name), [msgspec.convert(given, Bridge)])
    except (msgspec.DecodeError, RecursionError):
        return None
