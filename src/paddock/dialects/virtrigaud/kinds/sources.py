"""The block of an image or of a network that counts for a provider (docs/spec/virtrigaud.md rulings 0.18 and 0.19).

A block belongs to one type of provider, and blocks are never mixed. A provider without a block of its own takes `http` or
`registry`, which every provider understands. A Provider of type qemu, which has no block, downloads the file of the URL in libvirt's block:
both run it with QEMU.
"""

from paddock.dialects.virtrigaud.kinds.vmimage import ImageSource
from paddock.dialects.virtrigaud.kinds.vmnetworkattachment import NetworkConfig

# For everybody, in order of preference.
_COMMON = ("http", "registry", "dataVolume")
# Of providers that share the kind of host with those that have no block of their own come first.
_OWNED = ("libvirt", "proxmox", "vsphere")
_QEMU = "qemu"
PROVIDER_BLOCKS = _OWNED
# The members of `source` that name a Secret with credentials.
CREDENTIALS = ("http.authentication.basicAuth", "http.authentication.bearer", "http.authentication.clientCert", "registry.pullSecretRef")


def image_blocks(source: ImageSource, provider_type: str) -> tuple[str, ...]:
    """The blocks that are given, the provider's own first, then those for everybody, then those of other providers."""
    order = [name for name in (provider_type,) if name in _OWNED]
    order += [*_COMMON, *(name for name in _OWNED if name != provider_type)]
    return tuple(name for name in order if getattr(source, name) is not None)


def image_block(source: ImageSource, provider_type: str) -> str | None:
    """The block that counts for a provider; None when no block is for it."""
    blocks = image_blocks(source, provider_type)
    found = next((name for name in blocks if name == provider_type or name in _COMMON), None)
    if found is None and provider_type == _QEMU and source.libvirt is not None and (source.libvirt.url or "").startswith("http"):
        return "libvirt"
    return found


def network_blocks(network: NetworkConfig, provider_type: str) -> tuple[str, ...]:
    """The blocks that are given, the provider's own first, then those of other providers."""
    order = [name for name in (provider_type,) if name in _OWNED]
    order += [name for name in _OWNED if name != provider_type]
    return tuple(name for name in order if getattr(network, name) is not None)


def network_block(network: NetworkConfig, provider_type: str) -> str | None:
    """The block that counts for a provider; a type that has no blocks takes the first there is."""
    blocks = network_blocks(network, provider_type)
    if provider_type in _OWNED:
        return provider_type if provider_type in blocks else None
    return blocks[0] if blocks else None
