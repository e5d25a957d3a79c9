"""The status of a machine from what is seen: phase, the four conditions, and what the running machine shows."""

from collections.abc import Iterable, Iterator

import msgspec

from paddock.dialects.vitistack.kinds import boot, marks, ownform
from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.kinds.machinespec import MachineStatus
from paddock.dialects.vitistack.plan import ownstatus, phases, problems
from paddock.dialects.vitistack.plan.observed import FINAL, Instance, MachineProblem, ObservedMachine, observed_generation, retry_of
from paddock.kubernetes.meta.conditions import Condition, settled

READY, MACHINE, STORAGE, NETWORK = "Ready", "VirtualMachineReady", "StorageReady", "NetworkReady"
TYPES = (READY, MACHINE, STORAGE, NETWORK)
# Parts of messages that make one event each, when they first appear.
RESTART_NEEDED = "a restart is needed"
NOTHING_TO_BOOT = "nothing to boot from"
DISK_LOST = "is lost"


def is_final(machine: Machine, *, template_came: bool = False) -> bool:
    """Return whether a machine has failed for good: until its spec, or its annotation for that, or the template it lacked is another."""
    status = machine.status
    if status is None or status.phase != phases.FAILED:
        return False
    if template_came and reason_of(status) == problems.TEMPLATE:
        return False
    return observed_generation(status) == machine.metadata.generation and (status.observedRetry or "") == retry_of(machine)


def reason_of(status: MachineStatus) -> str:
    """Return the reason why a machine is not ready, in one word."""
    return next((each.reason or "" for each in status.conditions or () if each.type == READY), "")


def accepts(machine: Machine) -> bool:
    """Return whether the status must become Pending before anything is done for the machine."""
    phase = (machine.status.phase if machine.status else None) or phases.NEW
    return phase in (phases.NEW, phases.FAILED)


def status(observed: ObservedMachine, now: str) -> MachineStatus:
    """The status as it should be; equal to the one there is when nothing differs."""
    before, problem = observed.before, observed.problem or problems.seen_in(observed)
    old = before.phase or phases.NEW
    phase = phases.step(old, _phase(observed, problem), restarts=True)
    found = msgspec.structs.replace(
        _with_facts(before, observed),
        phase=phase,
        conditions=_conditions(observed, phase, problem, now),
        observedRetry=retry_of(observed.machine) or None,
    )
    return _dated(before, ownstatus.completed(found, observed), now)


def failed_status(observed: ObservedMachine, now: str) -> MachineStatus:
    """The status of a machine that has failed for good: the failure stays, beside what runs."""
    return _dated(observed.before, ownstatus.completed(_with_facts(observed.before, observed), observed), now)


def leaving_status(observed: ObservedMachine, waits_for: str, now: str) -> MachineStatus:
    """The status of a machine that takes its time to go."""
    before = observed.before
    wanted = _condition(READY, False, "MachineNotReady", f"the machine is being deleted; it waits for {waits_for}")
    said = msgspec.structs.replace(wanted, observedGeneration=observed_generation(before))
    return _dated(before, msgspec.structs.replace(before, conditions=settled(before.conditions, [said], now)), now)


def _with_facts(before: MachineStatus, observed: ObservedMachine) -> MachineStatus:
    return msgspec.structs.replace(
        before,
        vmName=observed.machine.metadata.name if observed.has_vm else None,
        vmiName=observed.instance.metadata.name if observed.instance else None,
        ipAddresses=addresses(observed.instance) or None,
        nodeName=observed.instance.status.nodeName if observed.instance else None,
        resourceVersion=_version(observed),
        claims=before.claims if observed.vm is None else sorted(observed.vm.claims) or None,
    )


def _dated(before: MachineStatus, after: MachineStatus, now: str) -> MachineStatus:
    return after if after == before else msgspec.structs.replace(after, lastUpdated=now)


def is_urgent(before: MachineStatus, after: MachineStatus) -> bool:
    """Return whether users wait for the change: a phase, or whether something holds. Details may come together with other details."""
    return before.phase != after.phase or _held(before) != _held(after)


def _held(status: MachineStatus) -> list[tuple[str | None, ...]]:
    """Return the conditions without their messages; storage counts when it has a problem."""
    loud = (each for each in status.conditions or () if each.type != STORAGE)
    return [(each.type, each.status, each.reason) for each in loud]


def _version(observed: ObservedMachine) -> str | None:
    if observed.vm is not None:
        return observed.vm.metadata.resourceVersion
    return observed.before.resourceVersion if observed.made else None


def _has_run(observed: ObservedMachine) -> bool:
    ended = observed.instance is not None and observed.instance.status.phase == "Succeeded"
    return ended or observed.before.phase in (phases.RUNNING, phases.STOPPED)


def _phase(observed: ObservedMachine, problem: MachineProblem | None) -> str:
    """The phase that holds, wherever the machine comes from: the first row that applies."""
    rows = (
        (phases.FAILED, problem is not None and problem.fails),
        (phases.RUNNING, observed.instance is not None and observed.instance.runs),
        (phases.STOPPED, _has_run(observed) and observed.before.phase != phases.PENDING),
        (phases.CREATING, observed.has_vm or any(claim.phase for claim in observed.claims or ())),
    )
    return next((phase for phase, holds in rows if holds), phases.PENDING)


def addresses(instance: Instance | None) -> list[str]:
    """The addresses of a running machine: IPv4 first, each once, card by card."""
    if instance is None or instance.status.phase in FINAL:
        return []
    found = dict.fromkeys(address for interface in instance.status.interfaces or () for address in interface.addresses)
    return sorted(found, key=lambda address: ":" in address)


def _conditions(observed: ObservedMachine, phase: str, problem: MachineProblem | None, now: str) -> list[Condition]:
    generation = observed.machine.metadata.generation
    parts = (_machine(observed, problem), _storage(observed, problem), _network(observed, problem))
    wanted = [_ready(observed, phase, parts, problem), *parts]
    said = [msgspec.structs.replace(each, observedGeneration=generation) for each in wanted]
    # Others than the four are not ours to keep: an earlier version may have left them.
    known = [each for each in observed.before.conditions or () if each.type in TYPES]
    return settled(known, said, now)


def _condition(type: str, holds: bool, reason: str, message: str) -> Condition:
    return Condition(type=type, status="True" if holds else "False", reason=reason, message=message)


def _ready(observed: ObservedMachine, phase: str, parts: Iterable[Condition], problem: MachineProblem | None) -> Condition:
    if problem is not None:
        return _condition(READY, False, problem.error_type, problem.message)
    if phase == phases.STOPPED:
        return _condition(READY, False, "MachineStopped", "the machine is stopped")
    lacking = next((each.message or "" for each in parts if each.status != "True"), "")
    if phase == phases.RUNNING and observed.instance is not None and observed.instance.runs and not lacking:
        return _condition(READY, True, "MachineReady", "the machine runs")
    # What the VirtualMachine is doing meanwhile stands in its own status.
    return _condition(READY, False, "MachineNotReady", lacking or "the VirtualMachine is starting")


def _machine(observed: ObservedMachine, problem: MachineProblem | None) -> Condition:
    failed = problem is not None and problem.aspect == "machine" and problem.error_type != problems.RESOURCES
    if problem is not None and failed:
        return _condition(MACHINE, False, "VMFailed", problem.message)
    if observed.has_vm:
        return _condition(MACHINE, True, "VMCreated", "; ".join(("the VirtualMachine is there", *_notes(observed))))
    if observed.before.vmName:
        return _condition(MACHINE, False, "VMFailed", "the VirtualMachine is gone; it is made again")
    why = f": {problem.message}" if problem is not None else ""
    return _condition(MACHINE, False, "VMFailed", f"the VirtualMachine is not made yet{why}")


def _notes(observed: ObservedMachine) -> Iterator[str]:
    restart = observed.vm.condition("RestartRequired") if observed.vm is not None else None
    if restart is not None and restart.status == "True":
        yield f"{RESTART_NEEDED}: {restart.message or 'the running machine differs from its spec'}"
    if has_nothing_to_boot(observed.machine):
        yield f"{NOTHING_TO_BOOT}: the disks are blank, and nothing is installed on them or booted from the network"


def has_nothing_to_boot(machine: Machine) -> bool:
    """Return whether the guest finds nothing to boot at its first start: blank disks, no installation image, no network first."""
    if (
        ownform.is_own(machine.spec)
        or boot.root_image(machine)
        or boot.iso_url(machine)
        or (machine.spec.bootOrder or [""])[0] == "network"
    ):
        return False
    return boot.annotation(machine, marks.OS_INSTALLED) != "true"


def _storage(observed: ObservedMachine, problem: MachineProblem | None) -> Condition:
    claims = observed.claims
    if problem is not None and problem.aspect == "storage":
        return _condition(STORAGE, False, "PVCPending", problem.message)
    if claims is None or (not claims and problem is not None):
        return _condition(STORAGE, False, "PVCPending", "no claim is made yet")
    lost = [each.name for each in claims if each.lost]
    if lost:
        text = f"{_listed(lost)} {DISK_LOST}: put it back, or delete the machine; it is not made again, because it would be blank"
        return _condition(STORAGE, False, "PVCPending", text)
    if observed.import_failures:
        # A claim may be bound long before it is filled.
        return _condition(STORAGE, False, "ImportFailed", "; ".join(observed.import_failures))
    waiting = [each.name for each in claims if each.phase != "Bound"]
    if waiting:
        return _condition(STORAGE, False, "PVCPending", f"{_listed(waiting)} not bound yet")
    bound = f"{_listed([each.name for each in claims])} bound" if claims else "the machine has no disk"
    return _condition(STORAGE, True, "PVCBound", bound)


def _listed(names: list[str]) -> str:
    return f"PersistentVolumeClaim {', '.join(names)}"


def _network(observed: ObservedMachine, problem: MachineProblem | None) -> Condition:
    if problem is not None and problem.aspect == "network":
        return _condition(NETWORK, False, "NetworkFailed", problem.message)
    for each in observed.networks:
        if not each.found:
            return _condition(NETWORK, False, "NetworkFailed", f'NetworkConfiguration "{each.name}" not found')
        if not each.attached:
            return _condition(NETWORK, False, "NetworkFailed", f"NetworkAttachmentDefinition {each.name} is not there yet")
    names = dict.fromkeys(each.name for each in observed.networks)
    return _condition(NETWORK, True, "NetworkConfigured", f"attached to {', '.join(names)}" if names else "on the pod network")
