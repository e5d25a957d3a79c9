"""The effects of changes of Kubermatic's own kinds (see `paddock.kubevirt.plan.changes.table`)."""

from paddock.kubevirt.plan.changes.hub import pool
from paddock.kubevirt.plan.changes.rows import DATA_SOURCE, Effects

EFFECTS: Effects = {
    ("kubevirt.io", "VirtualMachinePool"): pool(flat=True),
    ("virtualization.k8c.io", "Image"): DATA_SOURCE,
}
