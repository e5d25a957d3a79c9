"""Actions on a running instance, apart from streams: pause, freeze, reboot, reset, evacuate.

Refusals come in upstream's order and words. What is stored says which instance is meant and whether it runs; whether the guest is
paused, and whether its agent is there, the engine knows best, and before the status tells.
"""

import logging
from collections.abc import Awaitable

from paddock.app.subresources import queries
from paddock.app.subresources.environment import MachineApi, SubresourceEnvironment
from paddock.app.subresources.stored import PreconditionFailed, StoredObjects, about, conflict
from paddock.base.errors import PaddockError
from paddock.engine.machine.errors import AgentError, RequestRefused, Unanswered
from paddock.kubernetes.meta import failure
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.server.context import RequestContext
from paddock.server.edge.http import HttpResponse
from paddock.server.resources.kubevirtsubresources import INSTANCES

_LOG = logging.getLogger(__name__)
NOT_RUNNING = "VMI is not running"
SUSPENDED = "VMI is suspended to disk"
NO_AGENT = "VMI does not have guest agent connected"


class InstanceFinder:
    """Finds the machine of an instance that runs."""

    def __init__(self, stored: StoredObjects, environment: SubresourceEnvironment) -> None:
        self.stored = stored
        self._environment = environment

    def asked(self, call: RequestContext) -> VirtualMachineInstance:
        """The instance of a request; raises 404."""
        return self.stored.instance(call.route.namespace, call.route.name)

    def running(self, instance: VirtualMachineInstance) -> MachineApi:
        """The machine of an instance that runs; raises 409."""
        machine = self.found(instance)
        if machine is None:
            why = SUSPENDED if self.suspended(instance) is not None else unmanaged(instance) or NOT_RUNNING
            raise conflict(INSTANCES, instance.metadata.name, why)
        return machine

    def suspended(self, instance: VirtualMachineInstance) -> MachineApi | None:
        """The machine of an instance that is suspended to disk, or None."""
        machine = self._environment.machines.get(instance.metadata.uid or "")
        return machine if machine is not None and machine.observed.phase == "suspended" else None

    def found(self, instance: VirtualMachineInstance) -> MachineApi | None:
        """The machine of an instance that runs, or None."""
        machine = self._environment.machines.get(instance.metadata.uid or "")
        if machine is None or phase_of(instance) != "Running" or machine.observed.phase != "running":
            return None
        return machine

    def by_uid(self, uid: str) -> MachineApi | None:
        """The machine that the engine knows by a UID, if it runs."""
        machine = self._environment.machines.get(uid)
        return machine if machine is not None and machine.observed.phase == "running" else None

    def with_agent(self, instance: VirtualMachineInstance) -> MachineApi:
        """The machine of an instance that runs, whose agent is there; raises 409."""
        machine = self.running(instance)
        if not machine.observed.agent:
            raise conflict(INSTANCES, instance.metadata.name, NO_AGENT)
        return machine

    def tell(self, call: RequestContext, kind: str, reason: str, note: str) -> None:
        """An event about the instance of a request."""
        self._environment.tell(self.stored.instance_data(call.route.namespace, call.route.name), kind, reason, note)


def phase_of(instance: VirtualMachineInstance) -> str:
    """The phase of an instance."""
    return (instance.status.phase if instance.status else None) or ""


def unmanaged(instance: VirtualMachineInstance) -> str:
    """The reason why the engine leaves a machine alone whose guest runs; empty for others."""
    said = (instance.status.conditions if instance.status is not None else None) or ()
    return next((each.message or "" for each in said if each.type == "Ready" and each.reason == "MachineUnmanaged"), "")


def refused(instance: VirtualMachineInstance, error: RequestRefused) -> failure.Failure:
    """Return the conflict for a refusal of the engine."""
    why = NOT_RUNNING if error.reason in ("NotRunning", "StillStarting") else str(error)
    return conflict(INSTANCES, instance.metadata.name, why)


class InstanceControl:
    """Pause, unpause, reset, reboot, renew."""

    def __init__(self, instances: InstanceFinder) -> None:
        self._instances = instances

    async def pause(self, call: RequestContext) -> HttpResponse:
        dry_run = queries.is_dry(queries.options(call.request))
        instance = self._instances.asked(call)
        machine = self._instances.running(instance)
        name = instance.metadata.name
        if machine.observed.paused:
            raise conflict(INSTANCES, name, "VMI is already paused")
        probe = instance.spec.livenessProbe
        if probe is not None and probe.guestAgentPing is None:
            raise failure.forbidden(about(INSTANCES, name), "Pausing VMIs with LivenessProbe is currently not supported")
        if not dry_run:
            await _do(instance, machine.pause())
        return queries.done()

    async def unpause(self, call: RequestContext) -> HttpResponse:
        dry_run = queries.is_dry(queries.options(call.request))
        instance = self._instances.asked(call)
        machine = self._instances.running(instance)
        if not machine.observed.paused:
            raise conflict(INSTANCES, instance.metadata.name, "VMI is not paused")
        owner = self._instances.stored.find("virtualmachines.kubevirt.io", call.route.namespace, call.route.name)
        if owner is not None and (owner.get("status") or {}).get("snapshotInProgress"):
            raise conflict("virtualmachines", instance.metadata.name, "VM snapshot is in progress")
        if not dry_run:
            await _do(instance, machine.resume())
        return queries.done()

    async def reset(self, call: RequestContext) -> HttpResponse:
        """As the button on a computer's case does it."""
        instance = self._instances.asked(call)
        machine = self._instances.found(instance)
        if machine is None:
            raise conflict(INSTANCES, instance.metadata.name, f"Failed to reset non-running VMI with phase {phase_of(instance)}")
        await _do(instance, machine.reset())
        return queries.done()

    async def reboot(self, call: RequestContext) -> HttpResponse:
        """The guest's operating system reboots, asked by its agent."""
        instance = self._instances.asked(call)
        machine = self._instances.running(instance)
        name = instance.metadata.name
        if machine.observed.paused:
            raise conflict(INSTANCES, name, "VMI is paused")
        features = instance.spec.domain.features
        has_acpi = features is None or features.acpi is None or features.acpi.enabled is not False
        if not machine.observed.agent and not has_acpi:
            raise conflict(INSTANCES, name, "VMI neither have the agent connected nor the ACPI feature enabled")
        await _do(instance, _reboot(machine))
        return queries.done()

    async def renew(self, call: RequestContext) -> HttpResponse:
        """The guest moves into a new QEMU of this host. The answer comes when it has, and tells how long it stood still."""
        dry_run = queries.is_dry(queries.options(call.request))
        instance = self._instances.asked(call)
        machine = self._instances.running(instance)
        if machine.observed.paused:
            raise conflict(INSTANCES, instance.metadata.name, "VMI is paused")
        if dry_run:
            return queries.done()
        try:
            renewed = await machine.renew()
        except PaddockError as error:
            self._instances.tell(call, "Warning", "RenewalFailed", f"{error}; the guest was left where it was")
            raise refused(instance, error) if isinstance(error, RequestRefused) else failure.internal(str(error)) from error
        note = f"the guest moved from QEMU {renewed.before} to {renewed.after} and stood still for {renewed.pause * 1000:.0f} ms"
        self._instances.tell(call, "Normal", "Renewed", note)
        said = {
            "before": renewed.before,
            "after": renewed.after,
            "seconds": round(renewed.seconds, 3),
            "pauseSeconds": round(renewed.pause, 4),
        }
        return queries.said(said)

    async def cancel_evacuation(self, call: RequestContext) -> HttpResponse:
        """An instance is not to leave its node any more."""
        dry_run = queries.is_dry(queries.options(call.request))
        instance = self._instances.asked(call)
        node = instance.status.evacuationNodeName if instance.status else None
        if node:
            operations = ({"op": "test", "path": _EVACUATION, "value": node}, {"op": "remove", "path": _EVACUATION})
            place = (call.route.namespace, call.route.name)
            try:
                await self._instances.stored.change(INSTANCES, place, operations, dry_run=dry_run)
            except PreconditionFailed:
                raise failure.modified(about(INSTANCES, instance.metadata.name)) from None
        return queries.done()


_EVACUATION = "/status/evacuationNodeName"


async def _do(instance: VirtualMachineInstance, work: Awaitable[None]) -> None:
    try:
        await work
    except RequestRefused as error:
        raise refused(instance, error) from error
    except Unanswered as error:
        raise failure.unanswered(str(error)) from error
    except PaddockError as error:
        raise failure.internal(str(error)) from error


async def _reboot(machine: MachineApi) -> None:
    if machine.observed.agent:
        try:
            await machine.agent.shutdown("reboot")
        except AgentError:
            # It went, or does not do that: the button is left.
            _LOG.debug("guest agent did not reboot the guest; trying ACPI", exc_info=True)
        else:
            return
    await machine.soft_reboot()
