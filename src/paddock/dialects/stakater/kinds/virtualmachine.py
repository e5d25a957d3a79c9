"""`infrastructure.stakater.com/v1 VirtualMachine`: the fields. The rules across fields are in `rules`.

Four defaults depend on their siblings and are therefore not in the schema (docs/spec/stakater.md section 1): secureBoot,
networks, the type of a network and the class of an additional disk. `effective` computes them.
"""

from typing import Annotated

from paddock.dialects.stakater import rules
from paddock.dialects.stakater.kinds.fields import Parameters
from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Freeform, Object
from paddock.kubernetes.schema.kind import AGE, Column, Kind, Version

_CROSSPLANE = "Crossplane's own; Paddock implements the resulting API, not Crossplane"


class StakaterMachineSpec(Object):
    """The desired machine. Crossplane's keys are kept, so that manifests of a Crossplane cluster apply unchanged."""

    parameters: Annotated[Parameters, Field("The parameters of the machine.")] = Parameters()
    compositionRef: Annotated[Freeform | None, Field("Crossplane composition.", not_honoured=_CROSSPLANE)] = None
    compositionSelector: Annotated[Freeform | None, Field("Crossplane composition selector.", not_honoured=_CROSSPLANE)] = None
    compositionRevisionRef: Annotated[Freeform | None, Field("Crossplane revision.", not_honoured=_CROSSPLANE)] = None
    compositionRevisionSelector: Annotated[Freeform | None, Field("Crossplane revision selector.", not_honoured=_CROSSPLANE)] = None
    compositionUpdatePolicy: Annotated[str | None, Field("Crossplane update policy.", not_honoured=_CROSSPLANE)] = None
    compositeDeletePolicy: Annotated[str | None, Field("Crossplane deletion policy.", not_honoured=_CROSSPLANE)] = None
    resourceRef: Annotated[Freeform | None, Field("Crossplane composite.", not_honoured=_CROSSPLANE)] = None
    resourceRefs: Annotated[list[Freeform] | None, Field("Crossplane composed objects.", not_honoured=_CROSSPLANE)] = None
    claimRef: Annotated[Freeform | None, Field("Crossplane claim.", not_honoured=_CROSSPLANE)] = None
    writeConnectionSecretToRef: Annotated[Freeform | None, Field("Crossplane connection Secret.", not_honoured=_CROSSPLANE)] = None
    publishConnectionDetailsTo: Annotated[Freeform | None, Field("Crossplane connection store.", not_honoured=_CROSSPLANE)] = None
    providerConfigRef: Annotated[Freeform | None, Field("Crossplane provider.", not_honoured=_CROSSPLANE)] = None
    providerConfigsRef: Annotated[Freeform | None, Field("Crossplane providers.", not_honoured=_CROSSPLANE)] = None
    crossplane: Annotated[Freeform | None, Field("Crossplane 2 settings.", not_honoured=_CROSSPLANE)] = None


class GeneratedMachineStatus(Object):
    """The generated KubeVirt machine, as it reports itself."""

    printableStatus: Annotated[str | None, Field("Status in one word, such as Running, Stopped or Provisioning.")] = None
    ready: Annotated[bool | None, Field("Whether the machine is running and ready.")] = None
    created: Annotated[bool | None, Field("Whether a running instance exists.")] = None
    cpuCores: Annotated[int | None, Field("Number of CPU cores (not the product with sockets and threads).")] = None
    memory: Annotated[str | None, Field("Memory of the guest.")] = None
    serviceIP: Annotated[str | None, Field("Address of the LoadBalancer Service.")] = None
    serviceHostname: Annotated[str | None, Field("Host name of the LoadBalancer Service.")] = None
    conditions: Annotated[list[Condition] | None, Field("Conditions of the machine.")] = None


class StakaterMachineStatus(Object):
    """The observed state of a machine."""

    vm: Annotated[GeneratedMachineStatus | None, Field("The generated machine.")] = None
    conditions: Annotated[list[Condition] | None, Field("Synced and Ready.", keys=("type",))] = None
    observedGeneration: Annotated[int | None, Field("The generation that was last applied.")] = None


class StakaterVirtualMachine(Resource):
    """A virtual machine with explicit control over CPU, memory, storage, networks, cloud-init and SSH keys."""

    spec: Annotated[StakaterMachineSpec, Field("What the machine should be.", required=True)] = StakaterMachineSpec()
    status: Annotated[StakaterMachineStatus | None, Field("What was observed.")] = None


KINDS = (
    Kind(
        group="infrastructure.stakater.com",
        kind="VirtualMachine",
        plural="virtualmachines",
        singular="virtualmachine",
        cls=StakaterVirtualMachine,
        dialect="stakater",
        versions=(Version("v1"),),
        columns=(
            Column("Ready", ".status.conditions[?(@.type=='Ready')].status"),
            Column("Synced", ".status.conditions[?(@.type=='Synced')].status"),
            Column("Printable-Status", ".status.vm.printableStatus"),
            AGE,
            Column("Cores", ".status.vm.cpuCores", "integer", wide=True),
            Column("Memory", ".status.vm.memory", wide=True),
            Column("IP", ".status.vm.serviceIP", wide=True),
        ),
        rules=rules.RULES,
        transitions=rules.TRANSITIONS,
    ),
)
