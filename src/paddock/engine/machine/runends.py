"""The reason for the end of a run, from the evidence. Pure."""

from collections.abc import Callable, Collection
from signal import Signals

from msgspec import Struct

from paddock.base import reasons
from paddock.engine.machine.observation import EndReason

# What QEMU's SHUTDOWN event gives as its reason, and what it means for a machine.
SHUTDOWNS: dict[str, EndReason] = {
    "guest-shutdown": "guest-shutdown",
    "guest-reset": "guest-reboot",
    "subsystem-reset": "guest-reboot",
    "guest-panic": "panicked",
    "host-signal": "killed",
    "host-qmp-quit": "killed",
    "host-qmp-system-reset": "guest-reboot",
    "host-ui": "killed",
    "host-error": "crashed",
}
# QEMU's run states in which a machine does not go on by itself, ever.
FINAL_STATES: dict[str, EndReason] = {
    "shutdown": "guest-shutdown",
    "guest-panicked": "panicked",
    "internal-error": "internal-error",
}
# Of several, the first that holds is the reason.
_ORDER: tuple[EndReason, ...] = (
    "saved",
    "panicked",
    "internal-error",
    "watchdog",
    "guest-shutdown",
    "guest-reboot",
    "killed",
    "host-reboot",
)


class RunEvidence(Struct, frozen=True):
    """The evidence about a run that is over."""

    # what QEMU said, and what we did (`killed`, `host-reboot`), in words of `EndReason`
    evidence: Collection[str] = ()
    # the guest's first instruction was allowed
    begun: bool = False
    # None: nobody knows; negative: the signal
    status: int | None = None
    same_boot: bool = True


def judge(seen: RunEvidence) -> EndReason:
    for reason in _ORDER:
        if reason in seen.evidence:
            return reason
    if not seen.same_boot:
        return "host-reboot"
    if not seen.begun:
        return "never-started"
    return "crashed"


def text_of(reason: EndReason, failure: str, status: int | None, tail: Callable[[], str]) -> str:
    """Return the text of an end: why the start failed, or the last lines of QEMU's log where they tell more than the reason."""
    if failure or reason not in ("crashed", "never-started", "internal-error", "panicked"):
        return failure
    return "\n".join(filter(None, (describe(status), tail())))


def describe(status: int | None) -> str:
    """An exit status in words; "" when it tells nothing."""
    if status is None or status == 0:
        return ""
    if status > 0:
        return f"QEMU ended with status {status}"
    try:
        return reasons.ended_by(Signals(-status).name)
    except ValueError:
        return reasons.ended_by(str(-status))
