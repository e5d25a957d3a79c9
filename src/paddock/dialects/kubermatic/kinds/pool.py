"""`kubevirt.io/v1alpha1 VirtualMachinePool`: the pool of `pool.kubevirt.io`, in the group Kubermatic's documents have it in.

There is one pool, seen in two groups. Short names and the category belong to the other group, so that no list shows it twice.
"""

from paddock.kubernetes.schema.kind import Kind, Scale, Version
from paddock.kubevirt.kinds import pool
from paddock.kubevirt.rules import pool as rules_pool

KINDS = (
    Kind(
        group="kubevirt.io",
        kind="VirtualMachinePool",
        plural="virtualmachinepools",
        singular="virtualmachinepool",
        cls=pool.VirtualMachinePool,
        dialect="kubermatic",
        versions=(Version("v1alpha1"),),
        columns=pool.COLUMNS,
        scale=Scale(),
        rules=rules_pool.RULES,
        transitions=rules_pool.TRANSITIONS,
        alias_of=(pool.GROUP, "VirtualMachinePool"),
    ),
)
