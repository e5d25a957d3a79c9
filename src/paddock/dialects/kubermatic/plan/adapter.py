"""Machines of Kubermatic, which are KubeVirt's: how one is recognized. Pure."""

from paddock.base.jsondata import Data, entries
from paddock.kubevirt.plan.changes.adapters import KindName, MachineAdapter

# The field manager of Kubermatic's machines on a cluster.
_MIRROR = "paddock-kubermatic"
_NOTES = ("virtualization.k8c.io/", "kubevirt.io/immediate-data-volume-creation")
# The condition of a machine whose sources are Kubermatic's.
_CONDITION = "DataSourceResolved"


class KubermaticAdapter(MachineAdapter):
    """KubeVirt's, with more in it."""

    image_kind = KindName("virtualization.k8c.io", "v1alpha1", "images", "Image")

    def is_in(self, data: Data) -> bool:
        """Return whether a machine has Kubermatic's annotations or sources."""
        if any(each.get("type") == _CONDITION for each in entries(data, "status", "conditions")):
            return True
        notes = [(each.get("metadata") or {}).get("annotations") or {} for each in (data, *entries(data, "spec", "dataVolumeTemplates"))]
        return any(key.startswith(_NOTES) for each in notes for key in each)

    def maker(self, vm: Data) -> str:
        """`paddock operator` applies the machines of another API."""
        if any(each.get("manager") == _MIRROR and each.get("operation") == "Apply" for each in entries(vm, "metadata", "managedFields")):
            return "`paddock operator` keeps it for Kubermatic's machine of the same name in another API"
        return ""


ADAPTER = KubermaticAdapter()
