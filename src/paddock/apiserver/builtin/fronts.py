"""Machines of the dialects at admission: what their controllers would otherwise write right after, each in a write of its own.

Against a cluster, whose API server knows nothing of them, the controllers write it.
"""

from paddock.apiserver.builtin import powerstates
from paddock.apiserver.builtin.holding import hold
from paddock.apiserver.resources.strategy import CustomStrategy, Data, WriteContext
from paddock.dialects.vitistack import marks as vitistack
from paddock.plan.stakater import marks as stakater
from paddock.plan.virtrigaud import marks as virtrigaud
from paddock.plan.vitistack.phases import PENDING
from paddock.schema.kind import AdmissionSettings


class StakaterMachineStrategy(CustomStrategy):
    """Stakater's machine."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """The finalizer. Nothing is written to a paused machine."""
        if (new["metadata"].get("annotations") or {}).get(stakater.PAUSE) != "true":
            hold(new, stakater.FINALIZER)
        return new


class VitistackMachineStrategy(CustomStrategy):
    """Vitistack's machine."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """The finalizer, and the first phase."""
        hold(new, vitistack.FINALIZER)
        new["status"] = {"phase": PENDING}
        return new


class VirtRigaudMachineStrategy(powerstates.PowerStateStrategy):
    """VirtRigaud's machine."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """The finalizer."""
        hold(new, virtrigaud.MACHINE_FINALIZER)
        return new


def strategies(settings: AdmissionSettings) -> dict[tuple[str, str], CustomStrategy]:
    """The strategies by group and kind. Where no controllers are, nobody would take a finalizer off."""
    if not settings.controllers:
        return {}
    return {
        ("infrastructure.stakater.com", "VirtualMachine"): StakaterMachineStrategy(),
        ("vitistack.io", "Machine"): VitistackMachineStrategy(),
        (powerstates.GROUP, "VirtualMachine"): VirtRigaudMachineStrategy(powerstates.PLACES["VirtualMachine"]),
    }
