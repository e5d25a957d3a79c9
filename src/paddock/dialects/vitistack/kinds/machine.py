"""`vitistack.io/v1alpha1 Machine`: the kind. Its members are in `machinespec`, its rules in `rules`."""

from typing import Annotated

from paddock.dialects.vitistack import rules
from paddock.dialects.vitistack.kinds.machinespec import MachineSpec, MachineStatus
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field
from paddock.kubernetes.schema.kind import AGE, Column, Kind, Version


class Machine(Resource):
    """A virtual machine that is made from a template, with overrides for processors, memory, disks and networks."""

    spec: Annotated[MachineSpec, Field("What the machine should be.", required=True)] = MachineSpec()
    status: Annotated[MachineStatus | None, Field("What was observed.")] = None


KINDS = (
    Kind(
        group="vitistack.io",
        kind="Machine",
        plural="machines",
        singular="machine",
        short_names=("m",),
        cls=Machine,
        dialect="vitistack",
        versions=(Version("v1alpha1"),),
        columns=(
            Column("Phase", ".status.phase"),
            Column("Template", ".spec.template"),
            Column("IPs", ".status.ipAddresses"),
            Column("Node", ".status.nodeName"),
            AGE,
            Column("Ready", ".status.conditions[?(@.type=='Ready')].status", wide=True),
            Column("VM", ".status.vmName", wide=True),
            Column("Class", ".spec.machineClass", wide=True),
        ),
        rules=rules.RULES,
        transitions=rules.TRANSITIONS,
    ),
)
