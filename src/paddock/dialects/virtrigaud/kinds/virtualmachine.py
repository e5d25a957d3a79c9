"""VirtRigaud's VirtualMachine (docs/spec/virtrigaud.md section 1.1)."""

from typing import Annotated

from paddock.dialects.virtrigaud.kinds.machine import POWER_STATES, CurrentResources, VirtrigaudMachineSpec
from paddock.dialects.virtrigaud.kinds.shared import GROUP, VERSIONS, Conditions, ObservedGeneration
from paddock.dialects.virtrigaud.rules import virtualmachine as rules
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.field import Field, Object, Time
from paddock.kubernetes.schema.kind import AGE, Column, Kind

PHASES = ("Pending", "Provisioning", "Running", "Stopped", "Reconfiguring", "Deleting", "Failed")


class VMSnapshotInfo(Object):
    """A snapshot that the provider has of the machine."""

    id: Annotated[str, Field("The provider's identifier.", required=True)] = ""
    name: Annotated[str, Field("Name of the snapshot.", required=True)] = ""
    creationTime: Annotated[Time, Field("When it was taken.", required=True)] = ""
    description: Annotated[str | None, Field("What it is for.")] = None
    sizeBytes: Annotated[int | None, Field("Its size.")] = None
    hasMemory: Annotated[bool | None, Field("Whether the memory is part of it.")] = None


class VirtrigaudMachineStatus(Object):
    """The observed state of a machine."""

    id: Annotated[str | None, Field("The provider's identifier of the machine.")] = None
    powerState: Annotated[str | None, Field("Power state that was observed.", enum=POWER_STATES)] = None
    phase: Annotated[str | None, Field("Where the machine is in its life.", enum=PHASES)] = None
    message: Annotated[str | None, Field("More about the phase.")] = None
    ips: Annotated[list[str] | None, Field("Addresses of the guest.")] = None
    consoleURL: Annotated[str | None, Field("Where its console is.")] = None
    conditions: Conditions = None
    observedGeneration: ObservedGeneration = None
    lastTaskRef: Annotated[str | None, Field("The provider's task that is under way.")] = None
    reconfigureTaskRef: Annotated[str | None, Field("The provider's reconfiguration that is under way.")] = None
    lastReconfigureTime: Annotated[Time | None, Field("When the machine was last reconfigured.")] = None
    currentResources: Annotated[CurrentResources | None, Field("Sizes that the provider has confirmed.")] = None
    snapshots: Annotated[list[VMSnapshotInfo] | None, Field("Snapshots that can be gone back to.")] = None
    provider: Annotated[dict[str, str] | None, Field("Details of the provider's own.")] = None


class VirtrigaudVirtualMachine(Resource):
    """A virtual machine at a provider."""

    spec: Annotated[VirtrigaudMachineSpec, Field("What the machine should be.", required=True)] = VirtrigaudMachineSpec()
    status: Annotated[VirtrigaudMachineStatus | None, Field("What was observed.")] = None


KINDS = (
    Kind(
        group=GROUP,
        kind="VirtualMachine",
        plural="virtualmachines",
        singular="virtualmachine",
        short_names=("vm",),
        cls=VirtrigaudVirtualMachine,
        dialect="virtrigaud",
        versions=VERSIONS,
        columns=(
            Column("Phase", ".status.phase"),
            Column("Provider", ".spec.providerRef.name"),
            Column("Class", ".spec.classRef.name"),
            Column("Image", ".spec.imageRef.name"),
            Column("IPs", ".status.ips[*]"),
            AGE,
        ),
        rules=rules.RULES,
        transitions=rules.TRANSITIONS,
    ),
)
