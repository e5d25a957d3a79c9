"""The conditions of a running machine (docs/spec/kubevirt.md 2.3)."""

from collections.abc import Iterator
from typing import get_args, get_type_hints

from paddock.engine.machine.observation import GuestFault, Observation
from paddock.kubernetes.meta.conditions import Condition
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.instance import agentcommands, ends, migratable, volumemoves
from paddock.kubevirt.plan.instance.observed import ObservedInstance
from paddock.kubevirt.plan.instance.phases import FAILED, FINAL, RUNNING

# Those that are made anew with every look: one that no longer holds is taken away. Others are somebody else's, or hold for the whole
# run of a machine once they were set.
OWN = frozenset(
    (
        "AgentConnected",
        agentcommands.UNSUPPORTED,
        "DataVolumesReady",
        "HotMemoryChange",
        "HotVCPUChange",
        "LiveMigratable",
        "NeedsAttention",
        "NetworkLimited",
        "Outdated",
        "Paused",
        "PodScheduled",
        "Ready",
        "SimulatedGuest",
        "SoftwareEmulation",
        "StorageLiveMigratable",
        "Suspended",
        "Synchronized",
    )
)
# reasons of Ready that an event tells of: the guest cannot be used although its process lives
SILENT_GUEST = "GuestNotResponding"
FAULTS = frozenset((*get_args(get_type_hints(GuestFault)["reason"]), SILENT_GUEST))
_PAUSED = {
    "user": ("PausedByUser", "VMI was paused by user"),
    "start": ("PausedByUser", "VMI was paused by user"),
    "io-error": ("PausedIOError", "VMI was paused, low-level IO error detected"),
}
_SIMULATED = "the guest is simulated: the server was started with --guests simulated, and nothing runs in the machine"

_OFFERED = "the guest was handed over to another server, which has not said yet whether it runs there; it stands still until then"


def of(instance: VirtualMachineInstance, observed_instance: ObservedInstance, phase: str) -> Iterator[Condition]:
    """All conditions that are set, True or False."""
    observed = observed_instance.observed
    running = phase == RUNNING and observed is not None
    yield _ready(instance, observed_instance, phase)
    yield from _scheduled(observed_instance, phase)
    if observed_instance.hold is not None and observed_instance.hold.kind == "sync" and phase not in FINAL:
        yield Condition(type="Synchronized", status="False", reason=observed_instance.hold.reason, message=observed_instance.hold.message)
    yield from _data(instance, observed_instance, phase)
    if observed_instance.suspension is not None and phase not in FINAL:
        yield observed_instance.suspension
    if running and observed is not None:
        yield from _pause(observed)
        yield from _attention(observed)
        yield from _agent(observed, observed_instance.silent)
        yield from _commands(instance, observed_instance, observed)
    if running and observed_instance.credentials is not None:
        failed = bool(observed_instance.credentials)
        yield Condition(
            type="AccessCredentialsSynchronized",
            status="False" if failed else "True",
            reason="AccessCredentialsSyncFailed" if failed else "AccessCredentialsSynchronized",
            message=observed_instance.credentials or None,
        )
    if running:
        yield from migratable.conditions(observed_instance.nodes, observed_instance.obstacle)
    if running and observed_instance.simulated:
        yield Condition(type="SimulatedGuest", status="True", reason="Simulated", message=_SIMULATED)
    if running and (moving := volumemoves.condition(observed_instance.move)) is not None:
        yield moving
    if running and observed_instance.emulated:
        yield Condition(type="SoftwareEmulation", status="True", reason="NoAcceleration", message=observed_instance.emulated)
    if running and observed_instance.outdated:
        yield Condition(type="Outdated", status="True", reason="QemuReplaced", message=observed_instance.outdated)
    if running and observed_instance.limits:
        yield Condition(type="NetworkLimited", status="True", reason="UserModeNetwork", message="; ".join(observed_instance.limits))
    if running:
        for aspect, why in observed_instance.refused.items():
            yield Condition(type=aspect, status="False", reason="RestartRequired", message=why)
    if observed_instance.cloud_init is not None:
        yield observed_instance.cloud_init


def _pause(observed: Observation) -> Iterator[Condition]:
    """The condition Paused. A guest that stands still for a moment, by the engine itself, was paused by nobody."""
    if not observed.paused:
        return
    reason, message = _PAUSED.get(observed.paused, ("PausedByUser", f"VMI was paused: {observed.paused}"))
    yield Condition(type="Paused", status="True", reason=reason, message=f"{message}: {observed.detail}" if observed.detail else message)


def _attention(observed: Observation) -> Iterator[Condition]:
    """The condition NeedsAttention, while somebody has to look at the machine."""
    if observed.fault is not None:
        yield Condition(type="NeedsAttention", status="True", reason=observed.fault.reason, message=observed.fault.message)
    elif observed.detail and not observed.paused:
        yield Condition(type="NeedsAttention", status="True", reason="SaidByEngine", message=observed.detail)


def _agent(observed: Observation, silent: str) -> Iterator[Condition]:
    """The condition AgentConnected; none while no agent has its channel open."""
    if not observed.agent:
        return
    why = observed.fault.message if observed.fault is not None and observed.fault.silent else silent
    if why:
        yield Condition(type="AgentConnected", status="False", reason="AgentNotResponding", message=why)
    else:
        yield Condition(type="AgentConnected", status="True")


def _commands(instance: VirtualMachineInstance, observed_instance: ObservedInstance, observed: Observation) -> Iterator[Condition]:
    """The condition of an agent that lacks commands, as the agent said when it was asked last."""
    if not observed.agent:
        return
    if observed_instance.guest is None:
        before = instance.status.conditions if instance.status is not None else None
        yield from (each for each in before or () if each.type == agentcommands.UNSUPPORTED)
    elif observed_instance.guest.commands and (
        found := agentcommands.unsupported(observed_instance.guest.commands, instance.spec.accessCredentials or ())
    ):
        yield found


def _ready(instance: VirtualMachineInstance, observed: ObservedInstance, phase: str) -> Condition:
    """Return the condition Ready. The guest must run, not be stopping, and answer its probe if it has one."""
    if phase in FINAL:
        return Condition(type="Ready", status="False", reason="PodTerminating", message=_ended(observed, phase))
    if observed.observed is None or phase != RUNNING:
        if observed.hold is None:
            return Condition(type="Ready", status="False", reason="GuestNotRunning", message="the machine has not started yet")
        return Condition(type="Ready", status="False", reason=observed.hold.code or observed.hold.reason, message=observed.hold.message)
    if observed.observed.fault is not None and observed.observed.fault.unmanaged:
        return Condition(type="Ready", status="False", reason=observed.observed.fault.reason, message=observed.observed.fault.message)
    if observed.observed.handed == "offered":
        return Condition(type="Ready", status="False", reason="GuestNotRunning", message=_OFFERED)
    if instance.metadata.deletionTimestamp or observed.observed.phase == "stopping":
        return Condition(type="Ready", status="False", reason="PodTerminating", message="the machine is shutting down")
    if observed.suspension is not None and observed.suspension.status == "True":
        return Condition(type="Ready", status="False", reason="GuestNotRunning", message="the machine is suspended to disk")
    if observed.observed.fault is not None:
        return Condition(type="Ready", status="False", reason=observed.observed.fault.reason, message=observed.observed.fault.message)
    if observed.observed.paused:
        return Condition(type="Ready", status="False", reason="GuestNotRunning", message="the machine is paused")
    if observed.observed.still and observed.suspension is not None:
        return Condition(type="Ready", status="False", reason="GuestNotRunning", message="the machine is being suspended to disk")
    if observed.answers is False:
        return Condition(type="Ready", status="False", reason="ContainersNotReady", message="the readiness probe fails")
    if observed.silent and observed.answers is None:
        return Condition(type="Ready", status="False", reason=SILENT_GUEST, message=observed.silent)
    return Condition(type="Ready", status="True")


def _ended(observed: ObservedInstance, phase: str) -> str:
    """Return the message about its end. For a failed one it has the last lines of QEMU's log, which later nobody can ask for."""
    end = observed.observed.end if observed.observed is not None else None
    if phase != FAILED or end is None:
        return "the machine has ended"
    return ends.ended(end.reason, end.text)


def _scheduled(observed: ObservedInstance, phase: str) -> Iterator[Condition]:
    hold = observed.hold
    # KubeVirt calls an instance unschedulable, too, while a claim that it names is not there.
    if hold is not None and phase not in FINAL and (hold.kind == "unschedulable" or hold.reason == "FailedPvcNotFound"):
        yield Condition(type="PodScheduled", status="False", reason="Unschedulable", message=hold.message)
    elif observed.prepared or observed.observed is not None:
        yield Condition(type="PodScheduled", status="True")


def _data(instance: VirtualMachineInstance, observed: ObservedInstance, phase: str) -> Iterator[Condition]:
    volumes = instance.spec.volumes or ()
    if not any(each.dataVolume is not None for each in volumes):
        return
    if observed.hold is not None and observed.hold.kind == "volumes" and phase not in FINAL:
        yield Condition(type="DataVolumesReady", status="False", reason="NotAllDVsReady", message=observed.hold.message)
    elif observed.prepared or observed.observed is not None:
        yield Condition(type="DataVolumesReady", status="True", reason="AllDVsReady", message="All of the VMI's DVs are bound and ready")
