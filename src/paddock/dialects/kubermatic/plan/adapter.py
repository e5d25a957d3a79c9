"""Machines of Kubermatic, which are KubeVirt's: how one is recognized. Pure."""

from paddock.base.jsondata import Data, entries
from paddock.kubevirt.plan.changes.adapters import MachineAdapter

# The field manager of Kubermatic's machines on a cluster.
_MIRROR = "paddock-kubermatic"


class KubermaticAdapter(MachineAdapter):
    """KubeVirt's, with more in it."""

    def maker(self, vm: Data) -> str:
        """`paddock operator` applies the machines of another API."""
        if any(each.get("manager") == _MIRROR and each.get("operation") == "Apply" for each in entries(vm, "metadata", "managedFields")):
            return "`paddock operator` keeps it for Kubermatic's machine of the same name in another API"
        return ""


ADAPTER = KubermaticAdapter()
