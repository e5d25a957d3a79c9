"""The suspension of a machine to disk: the wish, which an annotation of the instance has, and the condition that tells of it. Pure."""

from collections.abc import Mapping

from paddock.base import ownnames, reasons
from paddock.engine.machine.observation import Observation
from paddock.kubernetes.meta import ages
from paddock.kubernetes.meta.conditions import Condition, holds
from paddock.kubevirt.kinds.instance import VirtualMachineInstance

# Its value is "true" from the request to suspend until that to resume.
WISH = ownnames.SUSPENDED.name
SUSPENDED = "Suspended"
SAVED, SAVING, RESUMING = "SavedToDisk", "Suspending", "Resuming"


def is_wished(annotations: Mapping[str, str] | None) -> bool:
    """Return whether a machine is to be suspended, or to stay so."""
    return (annotations or {}).get(WISH) == "true"


def is_suspended(instance: VirtualMachineInstance | None) -> bool:
    """Return whether the guest of an instance is on disk."""
    return instance is not None and instance.status is not None and holds(instance.status.conditions, SUSPENDED)


def condition(observed: Observation | None, refusal: str, *, wished: bool, ran: bool) -> Condition | None:
    """Return the condition; None: nothing to tell. `refusal`: why it was not suspended. `ran`: the instance has been running before."""
    if observed is None or not ran:
        return None
    if observed.suspended is not None:
        state = observed.suspended
        message = f"the memory of the guest is on disk since {ages.timestamp(state.at)} ({-(-state.size >> 20)} MiB)"
        why = observed.end.text if observed.end is not None else ""
        if why and not wished:
            return Condition(type=SUSPENDED, status="True", reason=reasons.RESUME_FAILED, message=f"{message}; it cannot be resumed: {why}")
        return Condition(type=SUSPENDED, status="True", reason=SAVED, message=message)
    if observed.phase in ("queued", "starting"):
        return Condition(type=SUSPENDED, status="True", reason=RESUMING, message="the memory of the guest is being read from disk")
    if observed.phase != "running":
        return None
    if wished:
        return Condition(type=SUSPENDED, status="False", reason=SAVING, message="the memory of the guest is being written to disk")
    if refusal:
        return Condition(type=SUSPENDED, status="False", reason=reasons.SUSPEND_FAILED, message=refusal)
    return None
