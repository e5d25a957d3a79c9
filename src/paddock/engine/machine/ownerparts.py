"""The parts that act on a machine beside its owner, as far as the owner calls them. They act on it by its methods."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from paddock.engine.machine.argv.line import Command
from paddock.engine.machine.config import MachineConfig

# Gets an event's name and data, and ("", {}) when the run is over.
Follower = Callable[[str, Mapping[str, Any]], None]
Recovery = Callable[[], Coroutine[Any, Any, None]]


class MachineWatcher(Protocol):
    """Checks that a QEMU answers."""

    def arm(self) -> None:
        """The guest runs: look regularly from now on."""

    def suspect(self) -> None:
        """QEMU did not answer somebody."""

    def unreachable(self) -> None:
        """There is no connection to QEMU, and none could be made."""


class RunStates(Protocol):
    """Makes of QEMU's run states what others see of the guest."""

    async def look(self) -> None:
        """Ask QEMU for its run state."""

    def take(self, status: str) -> None:
        """This is its run state."""


class OwnerParts(Protocol):
    """A machine around its owner. The owner asks for a part when it needs one, and for none while it is made."""

    @property
    def watcher(self) -> MachineWatcher:
        """What checks that QEMU answers."""

    @property
    def status(self) -> RunStates:
        """What knows how the guest is."""

    @property
    def followers(self) -> Sequence[Follower]:
        """Those that hear of events, in this order."""

    @property
    def recovery(self) -> Sequence[Recovery]:
        """What is left to do when a QEMU was found after Paddock was away, in this order."""

    def line(self) -> tuple[MachineConfig, Command]:
        """Return the config that a start is made with, and its command line."""

    async def restore(self, path: Path) -> None:
        """Read the state of a saved machine."""
