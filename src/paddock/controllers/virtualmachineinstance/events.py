"""The events of a machine (docs/spec/kubevirt.md 2.7)."""

from collections.abc import Sequence

from paddock.controllers.virtualmachineinstance.kinds import INSTANCES
from paddock.dialects.kubevirt.instance import VirtualMachineInstance
from paddock.dialects.kubevirt.status import VirtualMachineInstanceStatus
from paddock.engine.machine.observation import Observation, RunEnd
from paddock.meta.conditions import Condition
from paddock.plan.instance.conditions import FAULTS
from paddock.plan.instance.phases import FINAL, RUNNING
from paddock.plan.instance.qemulog import legible
from paddock.runtime.controller import EventRecorder
from paddock.runtime.reference import InvolvedObject

_ENDS = {
    "guest-shutdown": ("Normal", "Stopped", "The VirtualMachineInstance was shut down."),
    "guest-reboot": ("Normal", "Stopped", "The VirtualMachineInstance rebooted, which ends it."),
    "saved": ("Normal", "Stopped", "The VirtualMachineInstance was saved."),
    "killed": ("Normal", "Deleted", "Signaled Deletion"),
}
_CRASHED = ("Warning", "Stopped", "The VirtualMachineInstance crashed.")


class MachineEvents:
    """Tells what happened to machines."""

    def __init__(self, teller: EventRecorder) -> None:
        self._teller = teller

    def changed(self, instance: VirtualMachineInstance, status: VirtualMachineInstanceStatus, observed: Observation | None) -> None:
        """What follows from one status becoming another."""
        before = instance.status or VirtualMachineInstanceStatus()
        if status.phase == RUNNING and before.phase != RUNNING:
            self._tell(instance, "Normal", "Created", "VirtualMachineInstance defined.")
            self._tell(instance, "Normal", "Started", "VirtualMachineInstance started.")
        if status.phase in FINAL and before.phase not in FINAL and observed is not None and observed.end is not None:
            self._ended(instance, observed.end)
        self._tell_of_faults(instance, before.conditions or (), status.conditions or ())
        for each in status.conditions or ():
            if each.type == "Synchronized" and each.status == "False" and each not in (before.conditions or ()):
                self._tell(instance, "Warning", "SyncFailed", each.message or each.reason or "")
            if each.type == "AccessCredentialsSynchronized" and each not in (before.conditions or ()):
                good = each.status == "True"
                reason = "AccessCredentialsSyncSuccess" if good else "AccessCredentialsSyncFailed"
                self._tell(instance, "Normal" if good else "Warning", reason, each.message or "Access credentials sync successful.")

    def stopping(self, instance: VirtualMachineInstance) -> None:
        """The guest was asked to shut down."""
        self._tell(instance, "Normal", "ShuttingDown", "Signaled Graceful Shutdown")

    def unhealthy(self, instance: VirtualMachineInstance) -> None:
        """The liveness probe has given the machine up."""
        self._tell(instance, "Warning", "Unhealthy", "Liveness probe failed: the machine is ended.")

    def note(self, instance: VirtualMachineInstance, reason: str, text: str, *, warning: bool = True) -> None:
        """Something that users should know."""
        self._tell(instance, "Warning" if warning else "Normal", reason, text)

    def _tell_of_faults(self, instance: VirtualMachineInstance, before: Sequence[Condition], after: Sequence[Condition]) -> None:
        """A fault when it comes, and that it is over."""
        old, new = (next((each for each in those if each.type == "Ready"), Condition()) for those in (before, after))
        if new.reason in FAULTS and new.reason != old.reason:
            self._tell(instance, "Warning", new.reason or "", new.message or "")
        elif old.reason in FAULTS and new.status == "True":
            self._tell(instance, "Normal", "GuestResponding", "The guest can be used again.")

    def _ended(self, instance: VirtualMachineInstance, end: RunEnd) -> None:
        kind, reason, text = _ENDS.get(end.reason, _CRASHED)
        more = f"{end.reason}: {legible(end.text)}" if reason == "Stopped" and kind == "Warning" and end.text else ""
        self._tell(instance, kind, reason, f"{text} {more}".strip())

    def _tell(self, instance: VirtualMachineInstance, kind: str, reason: str, note: str) -> None:
        meta = instance.metadata
        about = InvolvedObject(
            INSTANCES.api_version, INSTANCES.kind, meta.namespace or "", meta.name, meta.uid or "", meta.resourceVersion or ""
        )
        self._teller.tell(about, kind, reason, note)
