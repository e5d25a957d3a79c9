"""Limits on the size of an input.

The limits stand well above what an API server takes (an object has to fit into etcd's 1.5 MiB, a request into 3 MiB) and low
enough that an input made to do harm is refused within a second or two and in little memory.
"""

import msgspec


class ManifestLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of one input."""

    size: int = 16 * 1024 * 1024
    documents: int = 20_000
    # of one object; an alias counts as often as it is used
    values: int = 50_000
    depth: int = 100


DEFAULT = ManifestLimits()
