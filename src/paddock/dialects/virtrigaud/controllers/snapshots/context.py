"""One pass over a snapshot: what is read at its beginning, what it comes to, and how its status is written."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from paddock.base.backoff import Backoff
from paddock.contract.driver import Driver
from paddock.contract.errors import ProviderError
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.context import HeldMemory, RetryHold, VirtrigaudParts
from paddock.dialects.virtrigaud.controllers.reader import State
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmsnapshot import VMSnapshot, VMSnapshotStatus
from paddock.dialects.virtrigaud.plan import retries
from paddock.dialects.virtrigaud.plan.conditions import AspectValue
from paddock.dialects.virtrigaud.plan.retries import RetryRule
from paddock.dialects.virtrigaud.plan.snapshots import records
from paddock.dialects.virtrigaud.plan.snapshots.records import SnapshotPlace
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.reference import InvolvedObject, reference
from paddock.kubernetes.runtime.statuses import StatusWriter


class SnapshotMemory(HeldMemory, msgspec.Struct):
    """The memory of a snapshot. Refusals are of a repeated request; tasks that failed count apart."""

    failed_tasks: int = 0


@dataclass
class SnapshotPass:
    """One snapshot, and what the pass has come to so far."""

    seen: CachedObject
    snapshot: VMSnapshot
    memory: SnapshotMemory
    vm: VirtrigaudVirtualMachine | None
    phase: str = ""
    # conditions to report, by type
    values: dict[str, AspectValue] = field(default_factory=dict)
    status: VMSnapshotStatus = field(init=False)

    def __post_init__(self) -> None:
        self.status = records.of(self.snapshot)
        self.phase = self.status.phase or records.PENDING

    @property
    def key(self) -> Key:
        """The place of the snapshot."""
        return self.seen.key

    @property
    def about(self) -> InvolvedObject:
        return reference(targets.SNAPSHOTS, self.seen.meta)

    @property
    def machine(self) -> Key:
        """The place of the machine's object."""
        return Key(self.key.namespace, self.snapshot.spec.vmRef.name)

    @property
    def place(self) -> SnapshotPlace | None:
        """The machine of which the snapshot was requested."""
        return records.place(msgspec.structs.replace(self.snapshot, status=self.status))

    @property
    def inputs(self) -> State:
        """The inputs of a request: while they are the same, a request that failed waits its time."""
        meta, vm = self.snapshot.metadata, self.vm
        return (meta.generation, meta.deletionTimestamp, meta.annotations, vm.status.id if vm is not None and vm.status else None)

    def say(self, *values: AspectValue) -> None:
        """Report conditions at the end of the pass."""
        for each in values:
            self.values[each.type] = each

    def change(self, **members: Any) -> None:
        """Change members of the status."""
        self.status = msgspec.structs.replace(self.status, **members)


class SnapshotAccess:
    """Finds the Provider of a snapshot, and writes its status."""

    def __init__(self, parts: VirtrigaudParts) -> None:
        self.parts = parts
        self._statuses = StatusWriter(parts.client, targets.SNAPSHOTS, parts.caches.snapshots.expectations)

    async def write(self, snapshot_pass: SnapshotPass) -> None:
        """Write what the pass reports so far."""
        now = self.parts.timestamp()
        snapshot_pass.status = records.settle(
            snapshot_pass.snapshot, snapshot_pass.status, snapshot_pass.values.values(), now, snapshot_pass.phase
        )
        snapshot_pass.values = {name: msgspec.structs.replace(each, anew=False) for name, each in snapshot_pass.values.items()}
        snapshot_pass.seen = await self._statuses.write_surely(snapshot_pass.seen, snapshot_pass.status) or snapshot_pass.seen

    def driver(self, snapshot_place: SnapshotPlace) -> tuple[Driver | None, str]:
        """The driver of a Provider; without one, why."""
        key = Key(snapshot_place.provider_namespace, snapshot_place.provider_name)
        seen = self.parts.caches.providers.cache.get(key)
        if seen is None:
            return None, f"{snapshot_place} does not exist; create it again"
        connection = self.parts.providers.find(key, seen.read(targets.PROVIDERS).spec.type)
        return connection.driver, "" if connection.driver is not None else f"{snapshot_place}: {connection.runtime.message}"

    def hold(self, snapshot_pass: SnapshotPass, error: ProviderError, rule: RetryRule | None = None) -> RetryHold:
        """The pause after an error."""
        chosen = rule or retries.rule(error.kind)
        snapshot_pass.memory.failures += 1
        backoff = Backoff(first=chosen.first, longest=chosen.longest, jitter=0.1)
        pause = backoff.pause(snapshot_pass.memory.failures, self.parts.machinery.chance)
        if error.retry_after is not None:
            pause = max(pause, min(error.retry_after, chosen.longest))
        return RetryHold(
            self.parts.now() + pause, snapshot_pass.inputs, chosen.reason, f"{snapshot_pass.place}: {error.reported}", retries.reason(error)
        )

    def tell(self, snapshot_pass: SnapshotPass, reason: str, note: str, *, warning: bool = False) -> None:
        self.parts.recorder.tell(snapshot_pass.about, "Warning" if warning else "Normal", reason, note)
