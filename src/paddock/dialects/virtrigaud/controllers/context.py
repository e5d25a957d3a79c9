"""One pass over a machine: what is read at its beginning, what is found on the way, and what is remembered between passes."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from paddock.base.backoff import Backoff
from paddock.contract.driver import Driver
from paddock.contract.errors import ProviderError
from paddock.contract.messages import DescribeResponse
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.reader import State, VirtrigaudCaches
from paddock.dialects.virtrigaud.controllers.registry import Providers
from paddock.dialects.virtrigaud.controllers.settings import VirtrigaudSettings
from paddock.dialects.virtrigaud.kinds.provider import ReportedCapabilities
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudMachineStatus, VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.plan import retries, status
from paddock.dialects.virtrigaud.plan.conditions import AspectValue
from paddock.dialects.virtrigaud.plan.references import MachineDependencies
from paddock.dialects.virtrigaud.plan.retries import RetryRule
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import EventRecorder
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.reference import InvolvedObject, reference

MANAGER = "paddock-virtrigaud"


@dataclass(frozen=True)
class VirtrigaudParts:
    """The parts that VirtRigaud's controllers share."""

    client: Client
    caches: VirtrigaudCaches
    providers: Providers
    machinery: Machinery
    recorder: EventRecorder
    settings: VirtrigaudSettings

    def now(self) -> float:
        return self.machinery.clock.seconds()

    def timestamp(self) -> str:
        """The time as Kubernetes writes it."""
        return ages.timestamp(self.now())

    def pause(self, failures: int, error: ProviderError, rule: RetryRule | None = None) -> float:
        """The seconds to wait after so many failures in a row: the error's rule decides, and what the provider asks for within it."""
        chosen = rule or retries.rule(error.kind)
        pause = Backoff(first=chosen.first, longest=chosen.longest, jitter=0.1).pause(failures, self.machinery.chance)
        return max(pause, min(error.retry_after or 0.0, chosen.longest))


class RetryHold(msgspec.Struct, frozen=True):
    """A failed operation: until then, it is not tried again with the same inputs."""

    until: float
    inputs: State
    # what the failed pass reported; `code` is the reason of Ready, `reason` that of the other conditions
    reason: str
    message: str
    code: str


class HeldMemory(msgspec.Struct):
    """The memory of an object between passes; a new process begins without. An object that failed is held until something changes."""

    uid: str
    # in a row
    failures: int = 0
    # in a row, of calls whose outcome is not known
    refusals: int = 0
    hold: RetryHold | None = None
    # when the task under way is polled next
    task_due: float = 0.0

    def wait(self, inputs: State, now: float) -> float:
        """Seconds that an unchanged object still waits after a failure."""
        if self.hold is not None and (self.hold.inputs != inputs or self.hold.until <= now):
            self.hold = None
        return self.hold.until - now if self.hold is not None else 0.0


class PassMemory(HeldMemory, msgspec.Struct):
    """The memory of a machine."""

    # lists in a row without the machine that is to be deleted
    absent: int = 0
    resize_hold: RetryHold | None = None
    # the last description of the machine, when it was made, and when the next one is due
    answer: DescribeResponse | None = None
    described: float = 0.0
    due: float = 0.0
    # when a machine that was just started is described for the first time
    start_due: float = 0.0
    # the bytes of the imported disk, as the provider had it when this process first saw it
    imported_bytes: int | None = None


@dataclass
class MachinePass:
    """One machine, and what the pass has come to so far."""

    seen: CachedObject
    vm: VirtrigaudVirtualMachine
    memory: PassMemory
    inputs: State
    found: MachineDependencies = field(default_factory=MachineDependencies)
    driver: Driver | None = None
    # conditions to report, by type
    values: dict[str, AspectValue] = field(default_factory=dict)
    # the machine cannot be as its spec says until somebody changes something
    failed: bool = False
    # the provider has made the machine in this pass, and nobody has described it yet
    created: bool = False
    # records that end with this pass
    dropped: set[str] = field(default_factory=set)
    status: VirtrigaudMachineStatus = field(init=False)

    def __post_init__(self) -> None:
        self.status = status.of(self.vm)

    @property
    def key(self) -> Key:
        """The place of the machine."""
        return self.seen.key

    @property
    def about(self) -> InvolvedObject:
        return reference(targets.MACHINES, self.seen.meta)

    @property
    def provider(self) -> Driver:
        """The driver; a pass without one ends before it is needed."""
        assert self.driver is not None
        return self.driver

    @property
    def capabilities(self) -> ReportedCapabilities:
        """What the Provider has reported; what is not known is not supported."""
        reported = self.found.provider.status if self.found.provider is not None else None
        return (reported.reportedCapabilities if reported is not None else None) or ReportedCapabilities()

    def say(self, *values: AspectValue) -> None:
        """Report conditions at the end of the pass."""
        for each in values:
            self.values[each.type] = each
            self.dropped.discard(each.type)

    def place(self, status: VirtrigaudMachineStatus) -> None:
        """Have the requests of this pass made for the place that a status records."""
        self.vm = msgspec.structs.replace(self.vm, status=status)

    def drop(self, type: str) -> None:
        """Remove a record from the status."""
        self.values.pop(type, None)
        self.dropped.add(type)

    def change(self, **members: Any) -> None:
        """Change members of the status."""
        self.status = msgspec.structs.replace(self.status, **members)


def hold(parts: VirtrigaudParts, machine_pass: MachinePass, error: ProviderError, rule: RetryRule | None = None) -> RetryHold:
    """The pause after an error. A machine that exists is observed all the same after the longest pause."""
    chosen = rule or retries.rule(error.kind)
    machine_pass.memory.failures += 1
    pause = parts.pause(machine_pass.memory.failures, error, chosen)
    if chosen.terminal:
        pause = parts.settings.polls.off if machine_pass.status.id else float("inf")
    return RetryHold(parts.now() + pause, machine_pass.inputs, chosen.reason, said(machine_pass, error), retries.reason(error))


def said(machine_pass: MachinePass, error: ProviderError) -> str:
    """A provider's words in a message that names the Provider."""
    ref = machine_pass.vm.spec.providerRef
    return f"Provider {ref.namespace or machine_pass.key.namespace}/{ref.name}: {error.reported}"
