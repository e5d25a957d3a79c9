"""Machines of the dialects at admission: what their controllers would otherwise write right after, each in a write of its own. The
values of the dialects say what that is.

Against a cluster, whose API server knows nothing of them, the controllers write it.
"""

from paddock.base.jsondata import Data
from paddock.kubernetes import catalog
from paddock.kubernetes.schema.dialect import DialectMachine
from paddock.kubernetes.schema.finding import Path
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.server.builtin import powerstates
from paddock.server.builtin.holding import hold
from paddock.server.resources.strategy import CustomStrategy, WriteContext


class FrontMachineStrategy(powerstates.PowerStateStrategy):
    """A machine of a dialect."""

    def __init__(self, machine: DialectMachine, path: Path) -> None:
        """`path` is the power state, if that is a word of which kubectl makes a boolean."""
        super().__init__(path)
        self._machine = machine

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """The finalizer, and the first status. Nothing is written to a paused machine."""
        if (new["metadata"].get("annotations") or {}).get(self._machine.paused_by) != "true":
            hold(new, self._machine.finalizer)
        if self._machine.first_status:
            new["status"] = dict(self._machine.first_status)
        return new


def strategies(settings: AdmissionSettings) -> dict[tuple[str, str], CustomStrategy]:
    """The strategies by group and kind. Where no controllers are, nobody would take a finalizer off."""
    if not settings.controllers:
        return {}
    return {
        machine.id: FrontMachineStrategy(machine, dialect.power_words.get(machine.id, ()))
        for dialect in catalog.fronts()
        for machine in dialect.machines
    }
