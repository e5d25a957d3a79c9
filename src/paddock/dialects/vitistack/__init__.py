"""Vitistack's Machine, NetworkConfiguration and MachineTemplate (docs/spec/vitistack.md)."""

from paddock.dialects.vitistack import marks
from paddock.schema.dialect import Dialect, DialectMachine

GROUP = "vitistack.io"
DIALECT = Dialect(
    name="vitistack",
    group=GROUP,
    kinds={
        (GROUP, "Machine"): "machine",
        (GROUP, "MachineClass"): "machineclass",
        (GROUP, "MachineTemplate"): "machinetemplate",
        (GROUP, "NetworkConfiguration"): "networkconfiguration",
    },
    machines=(
        DialectMachine(
            group=GROUP,
            version="v1alpha1",
            kind="Machine",
            plural="machines",
            words=("vitistack", "m"),
            finalizer=marks.FINALIZER,
            first_status={"phase": "Pending"},
        ),
    ),
    translator="paddock.translate.vitistack",
    translated=((GROUP, "Machine"),),
    is_all_in_kubevirt=True,
    effects="paddock.plan.vitistack.effects",
    references="paddock.plan.vitistack.referring",
    wiring="paddock.app.controllers.dialects.vitistack",
    stored=GROUP,
    is_by_default=True,
)
