"""The wish about running, in the words of each kind that moves: read, taken away, and given back."""

from collections.abc import Mapping
from typing import Any, Protocol

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import fieldpath

Id = tuple[str, str]
VM: Id = ("kubevirt.io", "VirtualMachine")
STAKATER: Id = ("infrastructure.stakater.com", "VirtualMachine")
VITISTACK: Id = ("vitistack.io", "Machine")
_STATE = "vitistack.io/power-state"
_MANUAL = "Manual"


class PowerWords(Protocol):
    """The words of one kind. Every document is a merge patch."""

    def halted(self, data: Data) -> Data:
        """The patch after which the machine does not want to run."""

    def kept(self, data: Data, *, ran: bool) -> Data:
        """The patch that gives back the wish of now. A machine that did not run is not started by it."""

    def needs_start(self, data: Data) -> bool:
        """Return True if the machine starts on request only."""


class _Strategy:
    """A run strategy, at a place of its own."""

    def __init__(self, *place: str, default: str) -> None:
        self._place = place
        self._default = default

    def halted(self, data: Data) -> Data:
        return _at(self._place, "Halted")

    def kept(self, data: Data, *, ran: bool) -> Data:
        found = fieldpath.value_at(data, self._place)
        starts = (found or self._default) not in ("Halted", _MANUAL)
        return _at(self._place, "Halted" if starts and not ran else found)

    def needs_start(self, data: Data) -> bool:
        return bool(fieldpath.value_at(data, self._place) == _MANUAL)


class _OfKubevirt(_Strategy):
    """KubeVirt has two forms."""

    def __init__(self) -> None:
        super().__init__("spec", "runStrategy", default="Always")

    def halted(self, data: Data) -> Data:
        return {"spec": {"running": False}} if fieldpath.value_at(data, ("spec", "running")) is not None else super().halted(data)

    def kept(self, data: Data, *, ran: bool) -> Data:
        running = fieldpath.value_at(data, ("spec", "running"))
        return {"spec": {"running": bool(running) and ran}} if running is not None else super().kept(data, ran=ran)


class _OfVitistack:
    """An annotation; what nobody wrote is written, because the VirtualMachine keeps its last wish otherwise."""

    def halted(self, data: Data) -> Data:
        return {"metadata": {"annotations": {_STATE: "stopped"}}}

    def kept(self, data: Data, *, ran: bool) -> Data:
        return {"metadata": {"annotations": {_STATE: "running" if ran else "stopped"}}}

    def needs_start(self, data: Data) -> bool:
        return False


WORDS: Mapping[Id, PowerWords] = {
    VM: _OfKubevirt(),
    STAKATER: _Strategy("spec", "parameters", "runStrategy", default="RerunOnFailure"),
    VITISTACK: _OfVitistack(),
}


def _at(place: tuple[str, ...], value: Any) -> Data:
    for name in reversed(place):
        value = {name: value}
    document: Data = value
    return document
