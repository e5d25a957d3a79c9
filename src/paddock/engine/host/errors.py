"""The errors of the detection of the host's abilities."""

from paddock.base.errors import Terminal


class HostError(Terminal):
    """Something of the host does not work as it has to."""


class QemuMissing(HostError):
    """There is no QEMU for guests of the host's own architecture."""
