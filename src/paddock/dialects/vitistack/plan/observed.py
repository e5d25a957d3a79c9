"""The observed state of a machine in one pass. Of the objects around it, only the deciding parts are read."""

from typing import Literal

import msgspec

from paddock.dialects.vitistack.kinds import marks
from paddock.dialects.vitistack.kinds.boot import annotation
from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.kinds.machinespec import MachineStatus
from paddock.kubernetes.meta.conditions import Condition

FINAL = ("Succeeded", "Failed")
# Reasons of a DataVolume that does not run yet, or any more.
_UNDER_WAY = ("", "Pending", "ContainerCreating", "PodInitializing", "Completed")
Aspect = Literal["spec", "network", "storage", "machine"]


class MachineProblem(msgspec.Struct, frozen=True):
    """A problem of a machine: its type as status, events and metrics name it, and the aspect that it concerns."""

    error_type: str
    message: str
    aspect: Aspect = "spec"
    # somebody has to change the machine
    fails: bool = False
    # the network that is missing
    network: str = ""


class ObjectName(msgspec.Struct, frozen=True):
    """The metadata of an object that is not ours to write."""

    name: str = ""
    uid: str = ""
    resourceVersion: str = ""
    deletionTimestamp: str | None = None


class NamedClaim(msgspec.Struct, frozen=True):
    claimName: str = ""


class NamedVolume(msgspec.Struct, frozen=True):
    name: str = ""


class ObservedVolume(msgspec.Struct, frozen=True):
    """A volume of a VirtualMachine."""

    name: str = ""
    persistentVolumeClaim: NamedClaim | None = None
    dataVolume: NamedVolume | None = None

    @property
    def claim(self) -> str:
        """The claim it lies on; empty for others."""
        if self.persistentVolumeClaim is not None:
            return self.persistentVolumeClaim.claimName
        return self.dataVolume.name if self.dataVolume is not None else ""


class InstanceSpec(msgspec.Struct, frozen=True):
    """The volumes of a template."""

    volumes: tuple[ObservedVolume, ...] | None = None


class ObservedTemplate(msgspec.Struct, frozen=True):
    """The template of a VirtualMachine."""

    spec: InstanceSpec = InstanceSpec()


class VmSpec(msgspec.Struct, frozen=True):
    """The spec of a VirtualMachine."""

    template: ObservedTemplate = ObservedTemplate()


class ObservedStartFailure(msgspec.Struct, frozen=True):
    """Starts that failed in a row."""

    consecutiveFailCount: int | None = None


class VmStatus(msgspec.Struct, frozen=True):
    """The status of a VirtualMachine."""

    printableStatus: str = ""
    conditions: tuple[Condition, ...] | None = None
    startFailure: ObservedStartFailure | None = None


class Vm(msgspec.Struct, frozen=True):
    """The VirtualMachine of a machine."""

    metadata: ObjectName
    spec: VmSpec = VmSpec()
    status: VmStatus = VmStatus()

    @property
    def claims(self) -> frozenset[str]:
        """The claims that it uses."""
        return frozenset(each.claim for each in self.spec.template.spec.volumes or () if each.claim)

    def condition(self, type: str) -> Condition | None:
        """A condition that is True or False, by its type."""
        return next((each for each in self.status.conditions or () if each.type == type), None)


class ObservedNic(msgspec.Struct, frozen=True):
    """A card of a running machine."""

    name: str | None = None
    ipAddress: str | None = None
    ipAddresses: tuple[str, ...] | None = None
    mac: str | None = None
    linkState: str | None = None
    infoSource: str | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        return self.ipAddresses or ((self.ipAddress,) if self.ipAddress else ())


class ObservedClaimInfo(msgspec.Struct, frozen=True):
    """The claim behind a volume of a running machine."""

    claimName: str = ""
    capacity: dict[str, int | str] | None = None
    volumeMode: str | None = None
    accessModes: tuple[str, ...] | None = None


class ObservedVolumeStatus(msgspec.Struct, frozen=True):
    """A volume of a running machine."""

    name: str = ""
    target: str = ""
    persistentVolumeClaimInfo: ObservedClaimInfo | None = None


class InstanceStatus(msgspec.Struct, frozen=True):
    """The status of a VirtualMachineInstance."""

    phase: str = ""
    nodeName: str | None = None
    interfaces: tuple[ObservedNic, ...] | None = None
    volumeStatus: tuple[ObservedVolumeStatus, ...] | None = None


class Instance(msgspec.Struct, frozen=True):
    metadata: ObjectName
    status: InstanceStatus = InstanceStatus()

    @property
    def runs(self) -> bool:
        """True if a guest runs in it; a paused, migrating or stopping one does."""
        return self.status.phase == "Running"


class ObservedClaim(msgspec.Struct, frozen=True):
    """A disk's claim: how far it is, and whether it was there once and is not any more."""

    name: str
    phase: str = ""
    lost: bool = False


class ObservedFillStatus(msgspec.Struct, frozen=True):
    """The status of a DataVolume."""

    phase: str = ""
    conditions: tuple[Condition, ...] | None = None


class ObservedDataVolume(msgspec.Struct, frozen=True):
    metadata: ObjectName
    status: ObservedFillStatus = ObservedFillStatus()

    @property
    def failure(self) -> str:
        """Why it is not filled, as CDI says it; empty while that is under way."""
        running = next((each for each in self.status.conditions or () if each.type == "Running"), None)
        if self.status.phase == "Succeeded" or running is None or running.status != "False":
            return ""
        if (running.reason or "") in _UNDER_WAY:
            return ""
        return f"{running.reason}: {running.message}" if running.message else running.reason or ""


class ObservedNetwork(msgspec.Struct, frozen=True):
    """A network that a card names: whether it is known, and whether machines can be attached."""

    name: str
    found: bool = True
    attached: bool = True


class ObservedMachine(msgspec.Struct, frozen=True, kw_only=True):
    """One machine and everything around it."""

    machine: Machine
    vm: Vm | None = None
    # it was made a moment ago, and the cache may not have it yet
    made: bool = False
    instance: Instance | None = None
    # None: nothing has been asked for yet
    claims: tuple[ObservedClaim, ...] | None = ()
    volumes: tuple[ObservedDataVolume, ...] = ()
    networks: tuple[ObservedNetwork, ...] = ()
    problem: MachineProblem | None = None
    start_failure_limit: int = 5

    @property
    def before(self) -> MachineStatus:
        """The status as it was."""
        return self.machine.status or MachineStatus()

    @property
    def import_failures(self) -> list[str]:
        """The DataVolumes that are not filled, each with the reason."""
        return [f"DataVolume {each.metadata.name} is not filled: {each.failure}" for each in self.volumes if each.failure]

    @property
    def has_vm(self) -> bool:
        """True if there is a VirtualMachine."""
        return self.vm is not None or self.made


def retry_of(machine: Machine) -> str:
    """The value that makes a Failed machine start again when it changes."""
    return annotation(machine, marks.RETRY)


def observed_generation(status: MachineStatus) -> int | None:
    """The generation that the status speaks of."""
    return next((each.observedGeneration for each in status.conditions or () if each.type == "Ready"), None)


def is_new(machine: Machine) -> bool:
    """Return whether the status does not speak of this generation yet."""
    return machine.status is None or observed_generation(machine.status) != machine.metadata.generation
