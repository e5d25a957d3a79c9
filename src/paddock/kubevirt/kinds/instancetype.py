"""`instancetype.kubevirt.io/v1beta1` VirtualMachineInstancetype and VirtualMachineClusterInstancetype (docs/spec/kubevirt.md 7.5).

An instancetype gives a machine its size. What it sets, a machine that names it may not set: see `sizing`.
"""

from collections.abc import Iterator
from typing import Annotated

from paddock.kubernetes.meta.objects import Annotations, Resource
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.field import Field, Object, Quantity
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AGE, AdmissionSettings, Kind, Version, rule
from paddock.kubevirt.kinds.devices import GPU, HostDevice
from paddock.kubevirt.kinds.domain import NUMA, CPUFeature, Hugepages, IOThreads, LaunchSecurity, Realtime

GROUP = "instancetype.kubevirt.io"


class InstancetypeCPU(Object):
    """The processors."""

    guest: Annotated[int, Field("vCPUs the guest sees; a preference says how they are arranged.", required=True, ge=0, bits=32)] = 0
    model: Annotated[str | None, Field("Model: host-model (the default), host-passthrough or a named one.")] = None
    dedicatedCPUPlacement: Annotated[bool | None, Field("Pin every vCPU to a processor of its own.")] = None
    isolateEmulatorThread: Annotated[bool | None, Field("One more processor for the emulator's other threads.")] = None
    numa: Annotated[NUMA | None, Field("The guest's NUMA topology.")] = None
    realtime: Annotated[Realtime | None, Field("Tuning for real-time work.")] = None
    maxSockets: Annotated[int | None, Field("Sockets that can be reached while the machine runs.", ge=0, bits=32)] = None
    features: Annotated[list[CPUFeature] | None, Field("Features of the processor.", max_items=256)] = None


class InstancetypeMemory(Object):
    """The memory."""

    guest: Annotated[Quantity, Field("Memory the guest sees, such as 4Gi.", required=True)] = "0"
    maxGuest: Annotated[Quantity | None, Field("Memory that can be reached while the machine runs.")] = None
    hugepages: Annotated[Hugepages | None, Field("Memory in huge pages.")] = None
    overcommitPercent: Annotated[int | None, Field("Percent of the memory that is not reserved.", ge=0, le=100)] = None


class InstancetypeSpec(Object):
    """The size of a machine."""

    cpu: Annotated[InstancetypeCPU, Field("The processors.", required=True)] = InstancetypeCPU()
    memory: Annotated[InstancetypeMemory, Field("The memory.", required=True)] = InstancetypeMemory()
    gpus: Annotated[list[GPU] | None, Field("GPUs of the host.", max_items=256)] = None
    hostDevices: Annotated[list[HostDevice] | None, Field("Other devices of the host.", max_items=256)] = None
    ioThreadsPolicy: Annotated[str | None, Field("How disks share I/O threads.", enum=("shared", "auto", "supplementalPool"))] = None
    ioThreads: Annotated[IOThreads | None, Field("I/O threads.")] = None
    launchSecurity: Annotated[LaunchSecurity | None, Field("Memory that the host cannot read.")] = None
    nodeSelector: Annotated[
        dict[str, Annotated[str, Field(format="label-value")]] | None,
        Field("Labels a node must have.", key_format="label-key"),
    ] = None
    schedulerName: Annotated[str | None, Field("Scheduler that chooses the node.")] = None
    annotations: Annotations = None


class VirtualMachineInstancetype(Resource):
    """A size that machines of one namespace can have."""

    spec: Annotated[InstancetypeSpec, Field("The size.", required=True)] = InstancetypeSpec()


class VirtualMachineClusterInstancetype(Resource):
    """A size that machines everywhere can have."""

    spec: Annotated[InstancetypeSpec, Field("The size.", required=True)] = InstancetypeSpec()


@rule("kubevirt/instancetype-overcommit")
def huge_pages_are_reserved(size: VirtualMachineInstancetype, settings: AdmissionSettings) -> Iterator[Finding]:
    """Memory in huge pages is reserved as a whole, so that none of it can be promised twice."""
    memory = size.spec.memory
    if memory.overcommitPercent and memory.hugepages is not None:
        path, why = ("spec", "memory", "overcommitPercent"), "overcommitPercent and hugepages exclude each other; leave one out"
        yield finding.invalid(path, memory.overcommitPercent, why, "kubevirt/instancetype-overcommit")


KINDS = (
    Kind(
        group=GROUP,
        kind="VirtualMachineInstancetype",
        plural="virtualmachineinstancetypes",
        singular="virtualmachineinstancetype",
        short_names=("vminstancetype", "vminstancetypes", "vmf", "vmfs"),
        categories=("all",),
        cls=VirtualMachineInstancetype,
        dialect="kubevirt",
        versions=(Version("v1beta1"),),
        columns=(AGE,),
        status=False,
        rules=(huge_pages_are_reserved,),
    ),
    Kind(
        group=GROUP,
        kind="VirtualMachineClusterInstancetype",
        plural="virtualmachineclusterinstancetypes",
        singular="virtualmachineclusterinstancetype",
        short_names=("vmclusterinstancetype", "vmclusterinstancetypes", "vmcf", "vmcfs"),
        categories=("all",),
        namespaced=False,
        cls=VirtualMachineClusterInstancetype,
        dialect="kubevirt",
        versions=(Version("v1beta1"),),
        columns=(AGE,),
        status=False,
        rules=(huge_pages_are_reserved,),
    ),
)
