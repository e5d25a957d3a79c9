"""The effects of changes of Kubermatic's own kinds (see `paddock.plan.changes.table`)."""

from paddock.plan.changes.hub import pool
from paddock.plan.changes.rows import DATA_SOURCE, Effects

EFFECTS: Effects = {
    ("kubevirt.io", "VirtualMachinePool"): pool(flat=True),
    ("virtualization.k8c.io", "Image"): DATA_SOURCE,
}
