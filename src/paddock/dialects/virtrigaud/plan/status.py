"""A machine's status: what was observed, its phase and message, and when it is observed again (docs/spec/virtrigaud.md 1.1, 2.1.1)."""

from collections.abc import Iterable

import msgspec

from paddock.contract.messages import DescribeResponse
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudMachineStatus, VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.plan import answers, marks, power, reverting
from paddock.dialects.virtrigaud.plan.conditions import DELETING, READY, AspectValue, find, holds, settled
from paddock.dialects.virtrigaud.plan.polls import MachinePolls

PENDING, PROVISIONING, RUNNING, STOPPED = "Pending", "Provisioning", "Running", "Stopped"
RECONFIGURING, PHASE_DELETING, FAILED = "Reconfiguring", "Deleting", "Failed"


def of(vm: VirtrigaudVirtualMachine) -> VirtrigaudMachineStatus:
    """The status of a machine; an empty one if it has none."""
    return vm.status or VirtrigaudMachineStatus()


def observed(status: VirtrigaudMachineStatus, answer: DescribeResponse) -> VirtrigaudMachineStatus:
    """The status with what a provider has described."""
    state = power.known(answer.power_state)
    own = {name: value for name, value in (status.provider or {}).items() if name.startswith(marks.OWN_PREFIX)}
    return msgspec.structs.replace(
        status,
        # The field knows no other words; the message says what else there is.
        powerState=state if state in (power.ON, power.OFF) else None,
        ips=answers.addresses(answer.ips) or None,
        consoleURL=answers.link(answer.console_url) or None,
        provider={**answers.details(answer.provider_raw_json), **own} or None,
    )


def forgotten(status: VirtrigaudMachineStatus) -> VirtrigaudMachineStatus:
    """The status of a machine that its provider does not have any more."""
    return msgspec.structs.replace(
        status,
        id=None,
        powerState=None,
        ips=None,
        consoleURL=None,
        lastTaskRef=None,
        reconfigureTaskRef=None,
        currentResources=None,
        provider=None,
        snapshots=None,
    )


def settle(
    vm: VirtrigaudVirtualMachine, status: VirtrigaudMachineStatus, values: Iterable[AspectValue], now: str, *, failed: bool = False
) -> VirtrigaudMachineStatus:
    """The status with these conditions, and the phase and message that follow from them."""
    conditions = settled(status.conditions, values, now, vm.metadata.generation)
    made = msgspec.structs.replace(status, conditions=conditions, observedGeneration=vm.metadata.generation)
    condition = find(conditions, DELETING if vm.metadata.deletionTimestamp is not None else READY)
    return msgspec.structs.replace(
        made, phase=phase(vm, made, failed=failed), message=(condition.message if condition is not None else "") or None
    )


def phase(vm: VirtrigaudVirtualMachine, status: VirtrigaudMachineStatus, *, failed: bool = False) -> str:
    """The phase of a machine."""
    if vm.metadata.deletionTimestamp is not None:
        return PHASE_DELETING
    if failed:
        return FAILED
    provisioning = holds(status.conditions, "Provisioning")
    if not status.id or provisioning:
        return PROVISIONING if provisioning else PENDING
    if status.reconfigureTaskRef or reverting.is_under_way(status):
        return RECONFIGURING
    if status.powerState == power.ON:
        return RUNNING
    if status.powerState == power.OFF:
        return STOPPED
    # A new machine is provisioned until it was described for the first time.
    return status.phase if status.phase in (RUNNING, STOPPED, PROVISIONING) else PENDING


def pause(answer: DescribeResponse, polls: MachinePolls, *, settled: bool) -> float:
    """Seconds until a machine is observed again."""
    state = power.known(answer.power_state)
    if not settled or state == power.UNKNOWN:
        return polls.transition
    if state == power.ON:
        return polls.running if answer.ips else polls.transition
    return polls.off if state == power.OFF else polls.suspended
