"""One pass over a migration: what is read at its beginning, and what it reports at its end."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from paddock.contract import messages as m
from paddock.contract.driver import Driver
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.context import VirtrigaudParts
from paddock.dialects.virtrigaud.controllers.registry import ProviderConnection
from paddock.dialects.virtrigaud.kinds.provider import Provider, ReportedCapabilities
from paddock.dialects.virtrigaud.kinds.shared import ObjectRef
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmmigration import MigratedDisk, VMMigration, VMMigrationStatus
from paddock.dialects.virtrigaud.plan import reasons, references
from paddock.dialects.virtrigaud.plan.conditions import AspectValue, without
from paddock.dialects.virtrigaud.plan.health import AVAILABLE
from paddock.dialects.virtrigaud.plan.migrations import documents, phases, transfer
from paddock.dialects.virtrigaud.plan.migrations.verdicts import TransferEnd
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta.world import namespace_of
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.reference import InvolvedObject, reference
from paddock.kubernetes.runtime.statuses import StatusWriter

POLL_SECONDS, HOLD_SECONDS = 5.0, 30.0
_UNKNOWN_TASK = (ErrorKind.NOT_FOUND, ErrorKind.NOT_SUPPORTED, ErrorKind.INVALID_SPEC)


class MigrationHeld(Exception):
    """A migration that waits in its phase for something that may come."""

    def __init__(self, reason: str, message: str, seconds: float = HOLD_SECONDS) -> None:
        super().__init__(message)
        self.reason, self.message, self.seconds = reason, message, seconds


class MigrationFailure(Exception):
    """An attempt that has failed. One that is `final` is not tried again."""

    def __init__(self, reason: str, message: str, *, final: bool = False, again: MigratedDisk | None = None) -> None:
        super().__init__(message)
        self.reason, self.message, self.final = reason, message, final
        # a disk whose export is of no use any more
        self.again = again


class MigrationSide(msgspec.Struct, frozen=True):
    """One side of a migration: a Provider, how it is named, and its driver."""

    place: str
    provider: Provider
    driver: Driver
    capabilities: ReportedCapabilities
    connection: ProviderConnection

    @property
    def transfer_end(self) -> TransferEnd:
        """The side as verdicts name it."""
        return TransferEnd(f"{self.place} ({self.provider.spec.type})", self.capabilities)


@dataclass
class MigrationPass:
    """One migration, and what the pass has come to so far."""

    parts: VirtrigaudParts
    seen: CachedObject
    migration: VMMigration
    values: dict[str, AspectValue] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)
    status: VMMigrationStatus = field(init=False)

    def __post_init__(self) -> None:
        self.status = transfer.status_of(self.migration)

    @property
    def key(self) -> Key:
        """The place of the migration."""
        return self.seen.key

    @property
    def namespace(self) -> str:
        """The namespace of the migration and of its source."""
        return namespace_of(self.migration)

    @property
    def about(self) -> InvolvedObject:
        return reference(targets.MIGRATIONS, self.seen.meta)

    @property
    def phase(self) -> str:
        """The phase in which the migration is."""
        return self.status.phase or phases.PENDING

    @property
    def disks(self) -> list[MigratedDisk]:
        """The disks and how far each is."""
        return list(self.status.disks or ())

    def say(self, *values: AspectValue) -> None:
        """Report conditions at the end of the pass."""
        for each in values:
            self.values[each.type] = each
            self.dropped.discard(each.type)

    def drop(self, type: str) -> None:
        self.values.pop(type, None)
        self.dropped.add(type)

    def change(self, **members: Any) -> None:
        """Change members of the status."""
        self.status = msgspec.structs.replace(self.status, **members)
        # What a later step reads of the migration has to be what this pass found.
        self.migration = msgspec.structs.replace(self.migration, status=self.status)

    def put(self, disk: MigratedDisk) -> MigratedDisk:
        """Record how far a disk is."""
        self.change(disks=[disk if each.name == disk.name else each for each in self.disks])
        return disk

    def tell(self, reason: str, message: str, kind: str = "Normal") -> None:
        self.parts.recorder.tell(self.about, kind, reason, message)

    async def write(self, statuses: StatusWriter) -> None:
        """Write what the pass reports so far, also when the migration was changed meanwhile: its status is this controller's."""
        self.change(conditions=without(self.status.conditions, *self.dropped))
        wanted = phases.settle(self.migration, self.status, self.values.values(), self.parts.timestamp())
        self.change(**{name: getattr(wanted, name) for name in wanted.__struct_fields__})
        await statuses.write_surely(self.seen, self.status)

    # --- the two sides ------------------------------------------------------------------------------------------------------

    def machine(self, namespace: str, name: str) -> VirtrigaudVirtualMachine | None:
        """A machine, if it exists."""
        seen = self.parts.caches.machines.cache.get(Key(namespace, name))
        return seen.read(targets.MACHINES) if seen is not None else None

    @property
    def source_machine(self) -> VirtrigaudVirtualMachine:
        """The source; raises `MigrationHeld` while there is none."""
        name = self.migration.spec.source.vmRef.name
        found = self.machine(self.namespace, name)
        if found is None:
            raise MigrationHeld(reasons.SOURCE_NOT_FOUND, f"there is no VirtualMachine {self.namespace}/{name}")
        if not (found.status is not None and found.status.id):
            text = f"VirtualMachine {self.namespace}/{name} does not exist at its Provider yet"
            raise MigrationHeld(reasons.SOURCE_NOT_READY, text)
        return found

    @property
    def target_machine(self) -> VirtrigaudVirtualMachine | None:
        """The new machine, if this migration has made it."""
        found = self.machine(documents.target_namespace(self.migration), self.migration.spec.target.name)
        return found if found is not None and documents.is_ours(found.metadata.annotations, self.migration) else None

    def source_end(self, machine: VirtrigaudVirtualMachine) -> MigrationSide:
        """The Provider of the source; raises `MigrationHeld` while it cannot be used."""
        own = references.provider_of(machine)
        given = self.migration.spec.source.providerRef
        if given is not None and (given.namespace or self.namespace, given.name) != (own.namespace, own.name):
            text = f"spec.source.providerRef names Provider {given.namespace or self.namespace}/{given.name}, and the machine is at {own}"
            raise MigrationFailure(reasons.VALIDATION_FAILED, text, final=True)
        return self._end(ObjectRef(name=own.name, namespace=own.namespace), reasons.SOURCE_PROVIDER_NOT_READY)

    def target_end(self) -> MigrationSide:
        """The Provider of the new machine; raises `MigrationHeld` while it cannot be used."""
        return self._end(self.migration.spec.target.providerRef, reasons.TARGET_PROVIDER_NOT_READY)

    def _end(self, ref: ObjectRef, reason: str) -> MigrationSide:
        key = Key(ref.namespace or self.namespace, ref.name)
        place = f"Provider {key}"
        seen = self.parts.caches.providers.cache.get(key)
        if seen is None:
            raise MigrationHeld(reason, f"there is no {place}")
        provider = seen.read(targets.PROVIDERS)
        if not references.may_use(self.namespace, key.namespace, provider.metadata.annotations or {}):
            text = references.refusal([references.MachineReference("Provider", key.namespace, key.name)], self.namespace)
            raise MigrationHeld(reasons.CONSUMER_NOT_ALLOWED, text)
        connection = self.parts.providers.find(key, provider.spec.type)
        if connection.driver is None:
            raise MigrationHeld(reason, f"{place}: {connection.runtime.message}")
        status = provider.status
        available = next((each for each in (status.conditions if status is not None else None) or () if each.type == AVAILABLE), None)
        if available is None or available.status == "False":
            said = available.message if available is not None else "it was not checked yet"
            raise MigrationHeld(reason, f"{place} is not available: {said}")
        if status is None or status.reportedCapabilities is None:
            raise MigrationHeld(reason, f"{place} has not reported what it can do")
        return MigrationSide(place, provider, connection.driver, status.reportedCapabilities, connection)

    @property
    def format(self) -> str:
        """The format on the way, which the validation has chosen."""
        first = next(iter(self.disks), None)
        return (first.format if first is not None else None) or "qcow2"


async def state_of(end: MigrationSide, task: str) -> m.TaskStatusResponse:
    """The state of a task. One that its Provider does not know any more has failed: nobody knows how it ended."""
    try:
        return await end.driver.task_status(m.TaskStatusRequest(task=m.TaskRef(id=task)))
    except ProviderError as error:
        if error.kind not in _UNKNOWN_TASK:
            raise
        return m.TaskStatusResponse(done=True, error=f"the task is unknown: {error.reported}")


def words_of(place: str, error: ProviderError) -> str:
    """A provider's words in a message that names the Provider."""
    return f"{place}: {error.reported}"
