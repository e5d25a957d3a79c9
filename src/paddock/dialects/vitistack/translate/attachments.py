"""A NetworkConfiguration as the NetworkAttachmentDefinition that connects machines to it, and back."""

import msgspec

from paddock.dialects.vitistack.kinds.marks import MANAGED_BY, NETWORK_CONFIGURATION, OPERATOR
from paddock.dialects.vitistack.kinds.networkconfiguration import NetworkConfiguration
from paddock.kubernetes.core.networkattachment import NetworkAttachmentDefinition, NetworkAttachmentDefinitionSpec
from paddock.kubernetes.meta.objects import ObjectMeta, owned_by

API_VERSION = "k8s.cni.cncf.io/v1"


class _Ipam(msgspec.Struct, forbid_unknown_fields=True):
    """Left empty: addresses come from the network itself."""


class Plugin(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The bridge plugin; members in the order in which they are written."""

    type: str
    bridge: str
    vlan: int | None = None
    mtu: int | None = None
    # Without it, addresses come from the network itself, too.
    ipam: _Ipam = msgspec.field(default_factory=_Ipam)


class BridgePluginConfig(msgspec.Struct, forbid_unknown_fields=True):
    """A CNI document that says what a NetworkConfiguration says, and nothing else."""

    cniVersion: str
    name: str
    plugins: tuple[Plugin]


def to_definition(network: NetworkConfiguration) -> NetworkAttachmentDefinition:
    """The definition of a network."""
    spec, name = network.spec, network.metadata.name
    plugin = Plugin(type="bridge", bridge=spec.bridge, vlan=spec.vlan or None, mtu=spec.mtu, ipam=_Ipam())
    config = BridgePluginConfig("1.0.0", name, (plugin,))
    return NetworkAttachmentDefinition(
        apiVersion=API_VERSION,
        kind="NetworkAttachmentDefinition",
        metadata=ObjectMeta(
            name=name,
            namespace=network.metadata.namespace,
            labels={MANAGED_BY: OPERATOR, NETWORK_CONFIGURATION: name},
            ownerReferences=owned_by(network),
        ),
        spec=NetworkAttachmentDefinitionSpec(config=msgspec.json.encode(config).decode()),
    )


def is_managed(definition: NetworkAttachmentDefinition) -> bool:
    """Return whether the definition was made from a NetworkConfiguration; others are used as they are and left alone."""
    return (definition.metadata.labels or {}).get(MANAGED_BY) == OPERATOR


def read_plugin(definition: NetworkAttachmentDefinition) -> Plugin | None:
    """The wiring, when it is one that a NetworkConfiguration can say whole."""
    text = definition.spec.config if definition.spec else None
    try:
        config = msgspec.json.decode(text or "", type=BridgePluginConfig)
    except msgspec.DecodeError:
        return None
    plugin = config.plugins[0]
    return plugin if plugin.type == "bridge" and (plugin.vlan is None or 0 <= plugin.vlan <= 4094) else None
