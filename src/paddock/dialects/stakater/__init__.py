"""Stakater's infrastructure API: `infrastructure.stakater.com/v1 VirtualMachine` (docs/spec/stakater.md)."""

from paddock.dialects.stakater import marks
from paddock.schema.dialect import Dialect, DialectMachine

GROUP = "infrastructure.stakater.com"
DIALECT = Dialect(
    name="stakater",
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
    translator="paddock.translate.stakater",
    translated=((GROUP, "VirtualMachine"),),
    is_all_in_kubevirt=True,
    effects="paddock.plan.stakater.effects",
    references="paddock.plan.stakater.referring",
    wiring="paddock.app.controllers.dialects.stakater",
    stored=GROUP,
    is_by_default=True,
)
