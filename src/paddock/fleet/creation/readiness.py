"""The way of a new machine to a usable guest: its phases, from what the server shows. Pure."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from paddock.fleet.diagnosis.scene import conditions, entries, holds, texts

Data = Mapping[str, Any]
Phase = Literal["accepting", "making", "image", "starting", "booting", "usable", "ended", "trouble"]
# In the order in which they are passed.
ORDER: tuple[Phase, ...] = ("accepting", "making", "image", "starting", "booting", "usable")
_TROUBLE = ("Error", "CrashLoopBackOff", "DataVolumeError", "Unschedulable", "ImagePullBackOff", "PvcNotFound")
_OVER = ("Succeeded", "Failed")


class GuestView(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of one machine at one moment. `answers` is true once its SSH server greeted."""

    vm: Data | None = None
    vmi: Data | None = None
    volumes: tuple[Data, ...] = ()
    answers: bool = False


class RunStage(msgspec.Struct, frozen=True):
    """The phase of a machine. `fraction` is that of the image; `text` is for people."""

    phase: Phase
    text: str
    fraction: float | None = None

    @property
    def is_final(self) -> bool:
        """Return whether waiting is over, for good or ill; a trouble may still pass."""
        return self.phase in ("usable", "ended")


def standing(seen: GuestView) -> RunStage:
    """Return the phase of a machine.

    A guest is usable once its agent is connected or its SSH server answers. Images without an agent are common, and an address
    says nothing: the server gives it before the guest boots.
    """
    if seen.vm is None:
        return RunStage("making", "waiting for its VirtualMachine")
    word = texts(seen.vm, "status", "printableStatus")
    phase = texts(seen.vmi, "status", "phase") if seen.vmi is not None else ""
    if phase == "Running":
        if agent_connected(seen.vmi) or seen.answers:
            return RunStage("usable", "usable")
        return RunStage("booting", "the guest boots")
    if phase in _OVER:
        return RunStage("ended", f"the guest ended: {phase}")
    for volume in seen.volumes:
        step = texts(volume, "status", "phase")
        if step not in ("", "Succeeded") and "Error" not in word:
            fraction = _fraction(texts(volume, "status", "progress"))
            return RunStage("image", f"its disk: {step}", fraction)
    if any(each in word for each in _TROUBLE):
        return RunStage("trouble", word)
    if (problem := _problem(seen.vmi)) is not None:
        return RunStage("trouble", problem)
    if any(texts(volume, "status", "phase") != "Succeeded" for volume in seen.volumes) or not seen.volumes:
        return RunStage("making" if seen.vmi is None else "starting", "making its disk" if seen.vmi is None else "QEMU starts")
    return RunStage("starting", "QEMU starts")


def _problem(vmi: Data | None) -> str | None:
    """Return why the server could not start an instance; it tries again."""
    return texts(conditions(vmi).get("Synchronized"), "message") if holds(vmi, "Synchronized", "False") else None


def agent_connected(vmi: Data | None) -> bool:
    """Return whether the guest agent answers."""
    return holds(vmi, "AgentConnected")


def address(vmi: Data | None) -> str:
    """Return the first address of an instance; empty without one."""
    found = (texts(each, "ipAddress") for each in entries(vmi, "status", "interfaces")) if vmi is not None else ()
    return next((each for each in found if each), "")


def _fraction(text: str) -> float | None:
    try:
        return min(1.0, float(text.removesuffix("%")) / 100)
    except ValueError:
        return None


# --- timings ----------------------------------------------------------------------------------------------------------------

# What a person reads for the time that ends when a phase is over.
_NAMES: Mapping[Phase, str] = {
    "accepting": "server's answer",
    "making": "machine and disk",
    "image": "image",
    "starting": "process start",
    "booting": "guest's boot",
}


class Timings:
    """The time spent in each phase. A phase that was over between two looks has none of its own."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._since = began
        self._phase: Phase = "accepting"
        self.spent: dict[Phase, float] = {}

    def enter(self, phase: Phase, now: float) -> None:
        """A machine is in this phase now."""
        if phase == self._phase:
            return
        self.spent[self._phase] = self.spent.get(self._phase, 0.0) + now - self._since
        self._phase, self._since = phase, now

    def lines(self) -> list[str]:
        """Return the phases, their sum, and Paddock's own share: all but the image's way here and the guest's boot."""
        total = self._since - self._began
        own = total - self.spent.get("booting", 0.0) - self.spent.get("image", 0.0)
        rows = [(_NAMES.get(phase, phase), self.spent[phase]) for phase in ORDER if phase in self.spent]
        rows += [("together", total), ("Paddock's own share", own)]
        width = max(len(name) for name, _ in rows)
        return [f"{name:<{width}}  {seconds:6.2f} s" for name, seconds in rows]
