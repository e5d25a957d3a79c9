"""Stakater's infrastructure API: `infrastructure.stakater.com/v1 VirtualMachine` (docs/spec/stakater.md)."""

from paddock.dialects.stakater.kinds import marks
from paddock.kubernetes.schema.dialect import Dialect, DialectMachine

GROUP = "infrastructure.stakater.com"
DIALECT = Dialect(
    name="stakater",
    title="Stakater",
    group=GROUP,
    kinds={
        (GROUP, "VirtualMachine"): "virtualmachine",
    },
    machines=(
        DialectMachine(
            group=GROUP,
            version="v1",
            kind="VirtualMachine",
            plural="virtualmachines",
            words=("stakater",),
            finalizer=marks.FINALIZER,
            paused_by=marks.PAUSE,
            carried_out={"vm": {"name": "made"}},
        ),
    ),
    translator="paddock.dialects.stakater.translate",
    translated=((GROUP, "VirtualMachine"),),
    is_all_in_kubevirt=True,
    copies_data_sources=True,
    makes_disks=True,
    adapter="paddock.dialects.stakater.plan.adapter",
    diagnosis="paddock.dialects.stakater.plan.diagnosis",
    effects="paddock.dialects.stakater.plan.effects",
    references="paddock.dialects.stakater.plan.referring",
    wiring="paddock.dialects.stakater.wiring",
    stored=GROUP,
    is_by_default=True,
)
