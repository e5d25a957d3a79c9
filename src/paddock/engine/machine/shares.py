"""Processor time of tenants: the QEMUs of a namespace share a control group, and busy namespaces share the processors by weight.

The group of a machine lies in that of its namespace, beside those of other namespaces and directories. Within a namespace, machines share
by their processors. A weight bounds nothing: what others leave is there for anybody.
"""

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from paddock.engine.machine import limits
from paddock.engine.machine.config import MachineConfig

DEFAULT_WEIGHT = 100
_DIGITS = 8


class NamespaceShares:
    """The control groups of the machines below a directory."""

    def __init__(self, groups: limits.Hierarchies, root: Path) -> None:
        self._groups = groups
        # Another directory on this host may have a namespace of the same name.
        self._suffix = hashlib.sha256(os.fsencode(os.path.abspath(root))).hexdigest()[:_DIGITS]
        self._weights: Mapping[str, int] = {}

    @property
    def are_kept(self) -> bool:
        """True if this host lets us share its processors."""
        return limits.shares_processors(self._groups)

    def namespace_group(self, namespace: str) -> str:
        """Return the group of a namespace. Names of namespaces have no dot."""
        return f"{namespace}.{self._suffix}"

    def group(self, id: str, config: MachineConfig) -> str:
        """Return the group of a machine."""
        return f"{self.namespace_group(_namespace(config))}/{id}"

    def enclose(self, id: str, config: MachineConfig, pids: Iterable[int]) -> bool:
        """Put processes into the machine's group, with limits where the host can keep them. Returns False where no group can be made."""
        done = limits.enclose(self._groups, self.group(id, config), pids, limits.usual(config))
        self._settle(_namespace(config))
        return done

    def apply(self, id: str, config: MachineConfig, pid: int) -> list[str]:
        """Put a process below the limits of the machine's own. Returns a sentence for each that could not be set."""
        return limits.apply(self._groups, self.group(id, config), pid, config.limits)

    def holds(self, id: str, config: MachineConfig, pid: int) -> bool:
        """Return whether a process is in the machine's group."""
        return limits.holds(self.group(id, config), pid)

    def weigh(self, weights: Mapping[str, int]) -> None:
        """Take the weights of namespaces; those of others are the default. Groups that are there get theirs at once."""
        changed = {name for name in self._weights.keys() | weights.keys() if self._weights.get(name) != weights.get(name)}
        self._weights = dict(weights)
        for namespace in sorted(changed):
            if limits.exists(self._groups, self.namespace_group(namespace)):
                self._settle(namespace)

    def remove(self, id: str, config: MachineConfig) -> None:
        """Remove the group of a machine that has ended, and that of its namespace with the last one."""
        limits.remove(self._groups, self.group(id, config))

    def remove_former(self, id: str) -> None:
        """Remove the group of a machine that an earlier version made: those of all machines lay side by side."""
        limits.remove(self._groups, id)

    def sweep(self) -> None:
        """Remove the groups that a crash has left: the kernel keeps those with a process."""
        limits.sweep(self._groups, f".{self._suffix}")

    def _settle(self, namespace: str) -> None:
        limits.weigh(self._groups, self.namespace_group(namespace), self._weights.get(namespace, DEFAULT_WEIGHT))


def _namespace(config: MachineConfig) -> str:
    return config.label.partition("_")[0]
