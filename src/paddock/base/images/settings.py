"""The operator's settings for images."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from paddock.base.backoff import Backoff


class RangeRules(msgspec.Struct, frozen=True):
    """The number of connections, the size of their ranges, and the downloads that are worth them."""

    connections: int = 4
    size: int = 16 << 20
    # A download that has taken this long, and will take at least twice as long again, gets more connections.
    seconds: float = 1.0

    def pay(self, seconds: float, done: int, left: int) -> bool:
        """Return whether more connections pay for a download that made so many bytes in so many seconds."""
        return self.connections > 1 and left > self.size and seconds >= self.seconds and left * seconds >= 2 * self.seconds * max(done, 1)


class ImageSettings(msgspec.Struct, frozen=True):
    """All have values that are safe."""

    # networks, addresses, `host` or `host:port` of this host that images may come from
    allow: tuple[str, ...] = ()
    # registry (`docker.io`, `registry:5000`, or with a path: `registry:5000/kubevirt`) -> what is asked in its place, in this order
    mirrors: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    # beginning of a URL -> what stands in its place when the file is downloaded; the longest one counts
    url_mirrors: Mapping[str, str] = msgspec.field(default_factory=dict)
    # registries that are asked without TLS
    insecure_registries: frozenset[str] = frozenset()
    # where the files of oci-archive: references may be
    archives: tuple[Path, ...] = ()
    # scheme -> proxy; None takes those of the environment
    proxies: Mapping[str, str] | None = None
    # the largest file and the largest disk
    max_bytes: int = 4 << 40
    # an image that nothing uses stays so long after it was last asked for
    keep_seconds: float = 7 * 86400.0
    # what stays free on the host's disk
    reserve_bytes: int = 256 << 20
    # imports at a time; others wait. Many, since a slow server should keep nobody else's image waiting
    workers: int = 16
    # of them so many unpack or convert at a time
    converters: int = 2
    # the connections of one download
    ranges: RangeRules = msgspec.field(default_factory=RangeRules)
    attempts: int = 5
    backoff: Backoff = msgspec.field(default_factory=lambda: Backoff(first=1.0, longest=20.0))
    connect_seconds: float = 15.0
    stall_seconds: float = 60.0
    # the user that qemu-img is, when we are root
    user: int = 65534
