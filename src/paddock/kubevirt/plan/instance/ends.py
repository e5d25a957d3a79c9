"""The sentences about the end of a run, written and read in one place: the engine's word for the end stands in them. Pure.

The condition Ready and the event Stopped have reasons that KubeVirt prescribes, and events outlive the machine.
"""

from collections.abc import Mapping

from paddock.base import reasons

_ENDED = "the machine has ended: "
_CRASHED = "The VirtualMachineInstance crashed. "
# by the engine's word for the end (`EndReason`); the others are no failures
CODES: Mapping[str, str] = {
    "panicked": reasons.GUEST_PANICKED,
    "watchdog": reasons.GUEST_WATCHDOG,
    "never-started": reasons.QEMU_NOT_STARTED,
    "internal-error": reasons.PROCESSOR_ERROR,
    "host-reboot": reasons.HOST_REBOOTED,
    "crashed": reasons.QEMU_CRASHED,
    "killed": reasons.MACHINE_KILLED,
}


def ended(word: str, text: str) -> str:
    """Return the message of Ready after a failure; `text` has the last lines of QEMU's log."""
    return _ENDED + ": ".join(each for each in (word, text) if each)


def crashed(word: str, text: str) -> str:
    """Return the message of the event Stopped after a failure."""
    return (_CRASHED + (f"{word}: {text}" if text else "")).strip()


def code(message: str) -> str:
    """Return the reason code of such a message; "" for other messages."""
    word, text = _parts(message)
    if word == "crashed" and text.startswith(reasons.ended_by("SIGKILL")):
        return reasons.QEMU_KILLED
    return CODES.get(word, "")


def detail(message: str) -> str:
    """Return the log of such a message, and the whole of other messages."""
    return _parts(message)[1] or message


def _parts(message: str) -> tuple[str, str]:
    begin = next((each for each in (_ENDED, _CRASHED) if message.startswith(each)), "")
    word, _, text = message.removeprefix(begin).partition(": ")
    return (word, text) if begin else ("", "")
