"""The status of a machine, from what is seen of everything that was made of it (docs/spec/stakater.md 3), and texts without its secrets."""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from paddock.dialects.stakater.kinds.virtualmachine import GeneratedMachineStatus, StakaterMachineStatus, StakaterVirtualMachine
from paddock.dialects.stakater.plan import disks
from paddock.dialects.stakater.plan.conditions import AVAILABLE, READY, SYNCED, ConditionValue, creating, no
from paddock.dialects.stakater.plan.disks import PlannedDisk
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.core.service import LoadBalancerIngress, Service
from paddock.kubernetes.meta.conditions import Condition, holds, settled
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.storage import PersistentVolumeClaimSpec
from paddock.kubernetes.meta.world import namespace_of
from paddock.kubevirt.kinds import virtualmachine as kubevirt
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.virtualmachine import VirtualMachineStatus
from paddock.kubevirt.plan.machine.printable import condition

_RESTART = "RestartRequired"
SHOWN_INSTEAD = "(not shown)"
# A shorter piece could stand in any text by chance.
_SHORTEST_LINE = 6
_BASE64 = re.compile(r"[A-Za-z0-9+/]{8,}={0,2}")


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
    """The result of a pass. None: that condition stays as it was (Synced), or is as observed (Ready)."""

    synced: ConditionValue | None = None
    ready: ConditionValue | None = None
    # everything of this generation is applied
    applied: bool = False


def status(status_facts: StatusFacts, pass_outcome: PassOutcome, now: str) -> StakaterMachineStatus:
    before = status_facts.vm.status or StakaterMachineStatus()
    said = [(SYNCED, pass_outcome.synced), (READY, pass_outcome.ready or _ready(status_facts, before))]
    conditions = settled(before.conditions, [each.condition(name) for name, each in said if each is not None], now)
    generation = status_facts.vm.metadata.generation if pass_outcome.applied else before.observedGeneration
    return StakaterMachineStatus(vm=_machine(status_facts, before), conditions=conditions, observedGeneration=generation)


def _machine(status_facts: StatusFacts, before: StakaterMachineStatus) -> GeneratedMachineStatus | None:
    """The status of the generated machine; empty before there is one."""
    machine = status_facts.machine
    if machine is None:
        return None if before.vm is None else GeneratedMachineStatus(ready=False, created=False, conditions=[])
    said, domain = machine.status, machine.spec.template.spec.domain
    address = _address(status_facts)
    return GeneratedMachineStatus(
        printableStatus=said.printableStatus if said is not None else None,
        ready=bool(said is not None and said.ready),
        created=bool(said is not None and said.created),
        cpuCores=domain.cpu.cores if domain.cpu is not None else None,
        memory=_memory(status_facts),
        serviceIP=address.ip if address is not None else None,
        serviceHostname=address.hostname if address is not None else None,
        conditions=[_copied(each) for each in (said.conditions if said is not None else None) or ()],
    )


def _memory(status_facts: StatusFacts) -> str | None:
    said = status_facts.instance.status if status_facts.instance is not None else None
    current = said.memory.guestCurrent if said is not None and said.memory is not None else None
    given = status_facts.machine.spec.template.spec.domain.memory if status_facts.machine is not None else None
    found = current or (given.guest if given is not None else None)
    return str(found) if found is not None else None


def _copied(said: Condition) -> Condition:
    return Condition(
        type=said.type, status=said.status, reason=said.reason, message=said.message, lastTransitionTime=said.lastTransitionTime
    )


def _address(status_facts: StatusFacts) -> LoadBalancerIngress | None:
    """Return the load balancer's address, as long as the service is enabled."""
    balancer = (
        status_facts.service.status.loadBalancer if status_facts.service is not None and status_facts.service.status is not None else None
    )
    addresses = (balancer.ingress if balancer is not None else None) or ()
    return next((each for each in addresses if each.ip or each.hostname), None) if status_facts.vm.spec.parameters.service.enabled else None


# --- Ready ------------------------------------------------------------------------------------------------------------------


def _ready(status_facts: StatusFacts, before: StakaterMachineStatus) -> ConditionValue:
    """Return the condition Ready; the first row that holds wins."""
    machine = status_facts.machine
    if machine is None or machine.status is None:
        return creating("the virtual machine is being made")
    if machine.status.ready:
        if status_facts.vm.spec.parameters.service.enabled and _address(status_facts) is None:
            return creating(f"the Service {status_facts.service_name} has no address yet")
        return AVAILABLE
    unfilled = next((each for each in status_facts.disks if not each.is_filled), None)
    if _rests(status_facts, before) and unfilled is None:
        return AVAILABLE
    denial = disks.clone_denial(_troubles(status_facts))
    if denial:
        source = status_facts.vm.spec.parameters.dataSource.namespace
        return no("CloneNotAuthorized", disks.clone_advice(denial, source, namespace_of(status_facts.vm), status_facts.product))
    was = condition(before.conditions or (), READY)
    if was is not None and (was.status == "True" or was.reason == "Unavailable"):
        return no("Unavailable", machine.status.printableStatus)
    return creating(_step(machine.status, unfilled))


def _rests(status_facts: StatusFacts, before: StakaterMachineStatus) -> bool:
    """Return whether the machine is to be off: halted, or started by hand alone and never started."""
    machine, strategy = status_facts.machine, status_facts.vm.spec.parameters.runStrategy
    if strategy not in ("Halted", "Manual") or machine is None or machine.status is None or machine.status.created:
        return False
    was = condition(before.conditions or (), READY)
    has_run = (before.vm is not None and before.vm.created) or (was is not None and was.reason == "Unavailable")
    return strategy == "Halted" or not has_run


def _troubles(status_facts: StatusFacts) -> Iterator[str | None]:
    """Yield the failures, in the words of the failed parts."""
    status = status_facts.machine.status if status_facts.machine is not None else None
    failure = condition((status.conditions if status is not None else None) or (), "Failure")
    if failure is not None and failure.status == "True":
        yield failure.message
    for disk in status_facts.disks:
        yield from (each.message for each in disk.seen.conditions if each.status == "False")


def _step(status: VirtualMachineStatus, unfilled: PlannedDisk | None) -> str:
    failure = condition(status.conditions or (), "Failure")
    if failure is not None and failure.status == "True" and failure.message:
        return failure.message
    if unfilled is not None:
        return _filling(unfilled)
    return f"the virtual machine is {status.printableStatus}"


def _filling(disk: PlannedDisk) -> str:
    """Return the progress of a disk, without figures that change from moment to moment."""
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
    """Return the generated machine's new message about a restart; None: nothing new."""
    was = before.vm.conditions if before is not None and before.vm is not None else None
    now = after.vm.conditions if after.vm is not None else None
    if holds(was, _RESTART) or not holds(now, _RESTART):
        return None
    found = condition(now or (), _RESTART)
    return (found.message if found is not None else None) or ""


def is_creating(status: StakaterMachineStatus) -> bool:
    """Return whether something is under way that needs more frequent passes."""
    found = condition(status.conditions or (), READY)
    return found is not None and found.reason in ("Creating", "Deleting")


def is_passing(before: StakaterMachineStatus | None, after: StakaterMachineStatus) -> bool:
    """Return whether a machine that is being made is merely a step further, and called the same."""
    if before is None or not is_creating(before) or not is_creating(after):
        return False
    return _words(before) == _words(after) and _called(before) == _called(after)


def _called(status: StakaterMachineStatus) -> str:
    return (status.vm.printableStatus or "") if status.vm is not None else ""


def _words(status: StakaterMachineStatus) -> list[tuple[str, str, str | None]]:
    """The conditions without their messages."""
    return [(each.type, each.status, each.reason) for each in status.conditions or ()]


# --- secrets ----------------------------------------------------------------------------------------------------------------


def without_secrets(text: str, vm: StakaterVirtualMachine, made: Iterable[Resource] = ()) -> str:
    """The text without the password, the user data and the keys, in whatever form `made` has them; also where they are in base64."""
    plain = {*_pieces(vm), *_values(made)}
    pieces = sorted(plain | {json.dumps(each)[1:-1] for each in plain}, key=len, reverse=True)
    text = _BASE64.sub(lambda found: SHOWN_INSTEAD if _hides(found.group(), pieces) else found.group(), text)
    for piece in pieces:
        # The ends of a word, where the piece has them: a password of one letter does not eat up the text.
        pattern = rf"(?<!\w){re.escape(piece)}(?!\w)" if len(piece) < _SHORTEST_LINE else re.escape(piece)
        text = re.sub(pattern, SHOWN_INSTEAD, text)
    return text


def _hides(word: str, pieces: list[str]) -> bool:
    """Return whether a word in base64 contains one of the pieces."""
    try:
        said = base64.b64decode(word, validate=True).decode()
    except ValueError:
        return False
    return any(piece in said for piece in pieces)


def _pieces(vm: StakaterVirtualMachine) -> Iterator[str]:
    parameters = vm.spec.parameters
    if parameters.cloudInit.password:
        yield parameters.cloudInit.password
    yield from _lines(parameters.cloudInit.userData or "")
    for word in (parameters.sshPublicKey.data or "").split():
        if len(word) > 2 * _SHORTEST_LINE:
            yield word


def _values(made: Iterable[Resource]) -> Iterator[str]:
    """The values of the Secrets: a document may spell a password in its own way."""
    for each in made:
        if isinstance(each, Secret):
            for value in (each.stringData or {}).values():
                yield value
                yield from _lines(value)
                # Of a key its middle is what is known to be long.
                yield from (word for word in value.split() if len(word) > 4 * _SHORTEST_LINE)


def _lines(document: str) -> Iterator[str]:
    for line in document.splitlines():
        if len(line.strip()) >= _SHORTEST_LINE and not line.startswith("#"):
            yield line.strip()
