"""The parts that a machine's owner turns to. The owner is made with them, and they act on it by its methods."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class OwnerParts:
    """The parts that act on a machine beside its owner, as far as the owner calls it."""

    watcher: MachineWatcher
    followers: tuple[Follower, ...]
    # what is left to do when a QEMU was found after Paddock was away, in this order
    recovery: tuple[Recovery, ...]
    # the config that a start is made with, and its command line
    line: Callable[[], tuple[MachineConfig, Command]]
    # reads the state of a saved machine
    restore: Callable[[Path], Coroutine[Any, Any, None]]
    # whether an end by the guest is half of a reboot
    returns: Callable[[str], bool]
