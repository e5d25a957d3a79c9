"""One pass over a VMClone: what it has come to, and how it is written."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from paddock.contract.driver import Driver
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.context import VirtrigaudParts
from paddock.dialects.virtrigaud.kinds.vmclone import VMClone, VMCloneStatus
from paddock.dialects.virtrigaud.plan.clones import progress
from paddock.dialects.virtrigaud.plan.conditions import AspectValue, settled
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.reference import InvolvedObject, reference
from paddock.kubernetes.runtime.statuses import StatusWriter


class CloneMemory(msgspec.Struct):
    """The memory of a clone between passes; a new process begins without."""

    uid: str
    generation: int | None = None
    # failed requests in a row, and until when nothing is tried again
    failures: int = 0
    # refusals in a row of a repeated request whose outcome is not known
    refusals: int = 0
    until: float = 0.0
    # when the task under way is polled next
    task_due: float = 0.0


@dataclass
class ClonePass:
    """One clone, and what the pass has come to so far."""

    seen: CachedObject
    clone: VMClone
    memory: CloneMemory
    values: dict[str, AspectValue] = field(default_factory=dict)
    driver: Driver | None = None
    status: VMCloneStatus = field(init=False)

    def __post_init__(self) -> None:
        self.status = progress.of(self.clone)

    @property
    def key(self) -> Key:
        """The place of the clone."""
        return self.seen.key

    @property
    def about(self) -> InvolvedObject:
        return reference(targets.CLONES, self.seen.meta)

    @property
    def provider(self) -> Driver:
        """The driver; a pass without one ends before it is needed."""
        assert self.driver is not None
        return self.driver

    def say(self, *values: AspectValue) -> None:
        """Report conditions at the end of the pass."""
        self.values.update((each.type, each) for each in values)

    def change(self, **members: Any) -> None:
        """Change members of the status."""
        self.status = msgspec.structs.replace(self.status, **members)

    def apply(self, now: str) -> None:
        """Take the reported conditions over into the status at once, because something depends on them."""
        self.change(conditions=settled(self.status.conditions, self.values.values(), now, self.clone.metadata.generation))
        self.values = {name: msgspec.structs.replace(each, anew=False) for name, each in self.values.items()}


class CloneWriter:
    """Writes VMClones. Nobody else writes their status, so a conflict is settled with what is there by now."""

    def __init__(self, parts: VirtrigaudParts, informer: Informer) -> None:
        self._parts = parts
        self._statuses = StatusWriter(parts.client, targets.CLONES, informer.expectations)

    async def write(self, clone_pass: ClonePass) -> None:
        """Write what the pass reports so far."""
        clone_pass.status = progress.settle(clone_pass.clone, clone_pass.status, clone_pass.values.values(), self._parts.timestamp())
        clone_pass.values = {name: msgspec.structs.replace(each, anew=False) for name, each in clone_pass.values.items()}
        clone_pass.seen = await self._statuses.write_surely(clone_pass.seen, clone_pass.status) or clone_pass.seen
