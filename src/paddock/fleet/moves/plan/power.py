"""The wish about running, in the words of each kind that moves: read, taken away, and given back."""

from paddock.base.jsondata import Data
from paddock.fleet import kinds
from paddock.kubernetes.meta import fieldpath
from paddock.kubevirt.plan.changes.adapters import PowerWords, StrategyWords

Id = tuple[str, str]
VM: Id = ("kubevirt.io", "VirtualMachine")


class _OfKubevirt(StrategyWords):
    """KubeVirt has two forms."""

    def __init__(self) -> None:
        super().__init__("spec", "runStrategy", default="Always")

    def halted(self, data: Data) -> Data:
        return {"spec": {"running": False}} if fieldpath.value_at(data, ("spec", "running")) is not None else super().halted(data)

    def kept(self, data: Data, *, ran: bool) -> Data:
        running = fieldpath.value_at(data, ("spec", "running"))
        return {"spec": {"running": bool(running) and ran}} if running is not None else super().kept(data, ran=ran)


_OF_KUBEVIRT = _OfKubevirt()


def words(kind: Id) -> PowerWords:
    """Return the words of a kind that moves."""
    known = kinds.of(*kind)
    found = known.adapter.power_words if known is not None and known.front else _OF_KUBEVIRT
    assert found is not None, f"machines of {kind} do not move"
    return found
