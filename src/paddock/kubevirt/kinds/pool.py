"""`pool.kubevirt.io/v1beta1 VirtualMachinePool`: several machines made from one template (docs/spec/kubevirt.md 6)."""

from typing import Annotated

from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field
from paddock.kubernetes.schema.kind import AGE, Column, Kind, Scale, Version
from paddock.kubevirt.kinds.poolfields import PoolSpec, PoolStatus
from paddock.kubevirt.rules import pool as rules_pool

GROUP = "pool.kubevirt.io"
COLUMNS = (
    Column("Desired", ".spec.replicas", "integer", text="How many machines there should be."),
    Column("Current", ".status.replicas", "integer", text="How many machines there are."),
    Column("Ready", ".status.readyReplicas", "integer", text="How many of them are ready."),
    AGE,
)


class VirtualMachinePool(Resource):
    """Several machines made from one template, with disks of their own."""

    spec: Annotated[PoolSpec, Field("How many machines, and what they are.", required=True)] = PoolSpec()
    status: Annotated[PoolStatus | None, Field("How many machines there are.")] = None


KINDS = (
    Kind(
        group=GROUP,
        kind="VirtualMachinePool",
        plural="virtualmachinepools",
        singular="virtualmachinepool",
        short_names=("vmpool", "vmpools"),
        categories=("all",),
        cls=VirtualMachinePool,
        dialect="kubevirt",
        versions=(Version("v1alpha1", storage=False), Version("v1beta1")),
        columns=COLUMNS,
        scale=Scale(),
        rules=rules_pool.RULES,
        transitions=rules_pool.TRANSITIONS,
    ),
)
