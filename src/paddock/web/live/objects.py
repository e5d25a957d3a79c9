"""The objects that rows are made of, at one moment."""

from collections.abc import Callable, Collection, Mapping
from functools import cached_property

from paddock.base.jsondata import Data
from paddock.fleet.kinds import MACHINES
from paddock.fleet.machines import finding
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.client.target import Key, Target
from paddock.web.live import parts


class LiveObjects:
    """Objects by kind. What several topics need of them is made once."""

    def __init__(self, find: Callable[[Target[Data]], Collection[Data]], now: float) -> None:
        self._find = find
        self.now = now

    def of(self, target: Target[Data]) -> Collection[Data]:
        """Return the objects of a kind; none for one that the server lacks or the user may not see."""
        return self._find(target)

    @cached_property
    def machines(self) -> list[MachineView]:
        """All machines, joined over the dialects, by name."""
        return finding.ordered(finding.join({kind: self.of(kind.target) for kind in MACHINES}))

    @cached_property
    def places(self) -> Mapping[Key, str]:
        """The machine of each VirtualMachine and instance, by its place there."""
        return {key: parts.place(each) for each in self.machines for key in (each.vm_key, each.vmi_key) if key is not None}

    @cached_property
    def claims(self) -> Mapping[Key, list[str]]:
        """The machines that use each PersistentVolumeClaim or DataVolume."""
        found: dict[Key, list[str]] = {}
        for machine in self.machines:
            for key in parts.claims(machine):
                found.setdefault(key, []).append(parts.place(machine))
        return found

    @cached_property
    def networks(self) -> Mapping[Key, list[str]]:
        """The machines that are attached to each NetworkAttachmentDefinition."""
        found: dict[Key, list[str]] = {}
        for machine in self.machines:
            for key in parts.networks(machine):
                found.setdefault(key, []).append(parts.place(machine))
        return found
