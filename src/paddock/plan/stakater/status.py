"""The status of a machine, from what is seen of everything that was made of it (docs/spec/stakater.md 3)."""

from collections.abc import Iterator, Sequence

import msgspec

from paddock.dialects.core.service import LoadBalancerIngress, Service
from paddock.dialects.kubevirt import virtualmachine as kubevirt
from paddock.dialects.kubevirt.instance import VirtualMachineInstance
from paddock.dialects.stakater.virtualmachine import GeneratedMachineStatus, StakaterMachineStatus, StakaterVirtualMachine
from paddock.meta.conditions import Condition, holds, settled
from paddock.meta.storage import PersistentVolumeClaimSpec
from paddock.meta.world import namespace_of
from paddock.plan.machine.printable import condition
from paddock.plan.stakater import clonerights
from paddock.plan.stakater.conditions import AVAILABLE, READY, SYNCED, ConditionValue, creating, no
from paddock.plan.stakater.disks import PlannedDisk

_RESTART = "RestartRequired"
# Of the generated machine: its images are known.
_RESOLVED = "DataSourceResolved"


class StatusFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the status is made from."""

    vm: StakaterVirtualMachine
    # value of the label app.kubernetes.io/managed-by
    product: str
    machine: kubevirt.VirtualMachine | None = None
    instance: VirtualMachineInstance | None = None
    # those of the spec, the root disk first
    disks: Sequence[PlannedDisk] = ()
    service: Service | None = None
    service_name: str = ""


class PassOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a look has come to. None: that condition stays as it was (Synced), or is as it is seen (Ready)."""

    synced: ConditionValue | None = None
    ready: ConditionValue | None = None
    # everything of this generation is applied
    applied: bool = False


def status(sight: StatusFacts, came: PassOutcome, now: str) -> StakaterMachineStatus:
    """The status."""
    before = sight.vm.status or StakaterMachineStatus()
    said = [(SYNCED, came.synced), (READY, came.ready or _ready(sight, before))]
    conditions = settled(before.conditions, [each.condition(name) for name, each in said if each is not None], now)
    generation = sight.vm.metadata.generation if came.applied else before.observedGeneration
    return StakaterMachineStatus(vm=_machine(sight, before), conditions=conditions, observedGeneration=generation)


def _machine(sight: StatusFacts, before: StakaterMachineStatus) -> GeneratedMachineStatus | None:
    """As the generated machine says it. As long as there never was one, nothing is said."""
    machine = sight.machine
    if machine is None:
        return None if before.vm is None else GeneratedMachineStatus(ready=False, created=False, conditions=[])
    said, domain = machine.status, machine.spec.template.spec.domain
    address = _address(sight)
    return GeneratedMachineStatus(
        printableStatus=said.printableStatus if said is not None else None,
        ready=bool(said is not None and said.ready),
        created=bool(said is not None and said.created),
        cpuCores=domain.cpu.cores if domain.cpu is not None else None,
        memory=_memory(sight),
        serviceIP=address.ip if address is not None else None,
        serviceHostname=address.hostname if address is not None else None,
        conditions=[_copied(each) for each in (said.conditions if said is not None else None) or ()],
    )


def _memory(sight: StatusFacts) -> str | None:
    said = sight.instance.status if sight.instance is not None else None
    current = said.memory.guestCurrent if said is not None and said.memory is not None else None
    given = sight.machine.spec.template.spec.domain.memory if sight.machine is not None else None
    found = current or (given.guest if given is not None else None)
    return str(found) if found is not None else None


def _copied(said: Condition) -> Condition:
    return Condition(
        type=said.type, status=said.status, reason=said.reason, message=said.message, lastTransitionTime=said.lastTransitionTime
    )


def _address(sight: StatusFacts) -> LoadBalancerIngress | None:
    """What the load balancer gave, as long as it is wanted."""
    balancer = sight.service.status.loadBalancer if sight.service is not None and sight.service.status is not None else None
    addresses = (balancer.ingress if balancer is not None else None) or ()
    return next((each for each in addresses if each.ip or each.hostname), None) if sight.vm.spec.parameters.service.enabled else None


# --- Ready ------------------------------------------------------------------------------------------------------------------


def _ready(sight: StatusFacts, before: StakaterMachineStatus) -> ConditionValue:
    """Whether the machine is what it should be; the first row that holds wins."""
    machine = sight.machine
    if machine is None or machine.status is None:
        return creating("the virtual machine is being made")
    if machine.status.ready:
        if sight.vm.spec.parameters.service.enabled and _address(sight) is None:
            return creating(f"the Service {sight.service_name} has no address yet")
        return AVAILABLE
    unfilled = next((each for each in sight.disks if not each.is_filled and not _comes_with_start(machine, each)), None)
    if _rests(sight, before) and unfilled is None:
        return AVAILABLE
    denial = clonerights.denial(_troubles(sight))
    if denial:
        source = sight.vm.spec.parameters.dataSource.namespace
        return no("CloneNotAuthorized", clonerights.advice(denial, source, namespace_of(sight.vm), sight.product))
    was = condition(before.conditions or (), READY)
    if was is not None and (was.status == "True" or was.reason == "Unavailable"):
        return no("Unavailable", machine.status.printableStatus)
    return creating(_step(sight, unfilled))


def _comes_with_start(machine: kubevirt.VirtualMachine, disk: PlannedDisk) -> bool:
    """Whether a disk waits for its first consumer before it is even made: Paddock copies some images when the machine first starts."""
    said = (machine.status.conditions if machine.status is not None else None) or ()
    return disk.volume is None and disk.claim is None and holds(said, _RESOLVED)


def _rests(sight: StatusFacts, before: StakaterMachineStatus) -> bool:
    """Whether the machine is to be off: halted, or started by hand alone and never started."""
    machine, strategy = sight.machine, sight.vm.spec.parameters.runStrategy
    if strategy not in ("Halted", "Manual") or machine is None or machine.status is None or machine.status.created:
        return False
    was = condition(before.conditions or (), READY)
    has_run = (before.vm is not None and before.vm.created) or (was is not None and was.reason == "Unavailable")
    return strategy == "Halted" or not has_run


def _troubles(sight: StatusFacts) -> Iterator[str | None]:
    """What went wrong, in the words of those who tried."""
    status = sight.machine.status if sight.machine is not None else None
    failure = condition((status.conditions if status is not None else None) or (), "Failure")
    if failure is not None and failure.status == "True":
        yield failure.message
    for disk in sight.disks:
        yield from (each.message for each in disk.seen.conditions if each.status == "False")


def _step(sight: StatusFacts, unfilled: PlannedDisk | None) -> str:
    machine = sight.machine
    assert machine is not None and machine.status is not None
    failure = condition(machine.status.conditions or (), "Failure")
    if failure is not None and failure.status == "True" and failure.message:
        return failure.message
    if unfilled is not None:
        return _filling(unfilled)
    return f"the virtual machine is {machine.status.printableStatus}"


def _filling(disk: PlannedDisk) -> str:
    """How far a disk is, without figures that change from moment to moment."""
    running = condition(disk.seen.conditions, "Running")
    if disk.seen.is_broken and running is not None and running.message:
        return f"the disk {disk.name} cannot be filled: {running.message}"
    claim = disk.claim
    if claim is not None and disk.seen.is_unbound:
        asked = claim.spec or PersistentVolumeClaimSpec()
        modes = ", ".join((*(asked.accessModes or ()), asked.volumeMode or "Filesystem"))
        return f"the claim of the disk {disk.name} waits for a volume ({modes})"
    return f"the disk {disk.name} is being filled ({disk.phase or 'Pending'})"


# --- events -----------------------------------------------------------------------------------------------------------------


def newly_requires_restart(before: StakaterMachineStatus | None, after: StakaterMachineStatus) -> str | None:
    """What the generated machine says since now about a restart; None: nothing new."""
    was = before.vm.conditions if before is not None and before.vm is not None else None
    now = after.vm.conditions if after.vm is not None else None
    if holds(was, _RESTART) or not holds(now, _RESTART):
        return None
    found = condition(now or (), _RESTART)
    return (found.message if found is not None else None) or ""


def is_creating(status: StakaterMachineStatus) -> bool:
    """Whether something is under way that is looked at more often."""
    found = condition(status.conditions or (), READY)
    return found is not None and found.reason in ("Creating", "Deleting")
