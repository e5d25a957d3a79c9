"""Vitistack's Machine, NetworkConfiguration and MachineTemplate (docs/spec/vitistack.md)."""

from paddock.dialects.vitistack.kinds import marks
from paddock.kubernetes.schema.dialect import Dialect, DialectMachine

GROUP = "vitistack.io"
DIALECT = Dialect(
    name="vitistack",
    title="Vitistack",
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
    translator="paddock.dialects.vitistack.translate",
    translated=((GROUP, "Machine"),),
    is_all_in_kubevirt=True,
    has_grace_period=False,
    forms=("document", "own"),
    always={"machines.vitistack.io": "template", "networkconfigurations.vitistack.io": "bridge"},
    adapter="paddock.dialects.vitistack.plan.adapter",
    diagnosis="paddock.dialects.vitistack.plan.diagnosis",
    effects="paddock.dialects.vitistack.plan.effects",
    references="paddock.dialects.vitistack.plan.referring",
    wiring="paddock.dialects.vitistack.wiring",
    stored=GROUP,
    is_by_default=True,
)
