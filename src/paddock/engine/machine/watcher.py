"""The interface of a watcher, which checks that a QEMU answers."""


class MachineWatcher:
    """Told by a machine's owner; this one does nothing."""

    def arm(self) -> None:
        """The guest runs: look regularly from now on."""

    def suspect(self) -> None:
        """QEMU did not answer somebody."""

    def unreachable(self) -> None:
        """There is no connection to QEMU, and none could be made."""
