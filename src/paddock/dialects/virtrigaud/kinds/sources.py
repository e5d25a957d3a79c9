"""The block of a network that counts for a provider (docs/spec/virtrigaud.md ruling 0.18), and the credentials that images name.

A block belongs to one type of provider, and blocks are never mixed. `contract.specs` has the rule for images.
"""

from paddock.contract.specs import PROVIDER_BLOCKS
from paddock.dialects.virtrigaud.kinds.vmnetworkattachment import NetworkConfig

# The members of `source` that name a Secret with credentials.
CREDENTIALS = ("http.authentication.basicAuth", "http.authentication.bearer", "http.authentication.clientCert", "registry.pullSecretRef")


def network_blocks(network: NetworkConfig, provider_type: str) -> tuple[str, ...]:
    """The blocks that are given, the provider's own first, then those of other providers."""
    order = [name for name in (provider_type,) if name in PROVIDER_BLOCKS]
    order += [name for name in PROVIDER_BLOCKS if name != provider_type]
    return tuple(name for name in order if getattr(network, name) is not None)


def network_block(network: NetworkConfig, provider_type: str) -> str | None:
    """The block that counts for a provider; a type that has no blocks takes the first there is."""
    blocks = network_blocks(network, provider_type)
    if provider_type in PROVIDER_BLOCKS:
        return provider_type if provider_type in blocks else None
    return blocks[0] if blocks else None
