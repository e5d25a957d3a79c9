"""VirtRigaud's VMSet (docs/spec/virtrigaud.md section 1.9)."""

from typing import Annotated

from paddock.dialects.virtrigaud.kinds.machine import VirtrigaudMachineSpec
from paddock.dialects.virtrigaud.kinds.shared import GROUP, VERSIONS, Conditions, ObservedGeneration
from paddock.dialects.virtrigaud.kinds.virtualmachine import PHASES
from paddock.dialects.virtrigaud.rules import vmset as rules
from paddock.kubernetes.meta.objects import Resource, TemplateMeta
from paddock.kubernetes.meta.selectors import LabelSelector
from paddock.kubernetes.meta.storage import PersistentVolumeClaimSpec
from paddock.kubernetes.schema.field import Field, IntOrString, Object, Time
from paddock.kubernetes.schema.kind import AGE, Column, Kind, Scale

AMOUNT_PATTERN = "^(0|[1-9][0-9]*)%$"
AMOUNT_MESSAGE = "must be a number, or a percentage such as 25%"
Count = Annotated[int | None, Field("Number of machines.", ge=0, bits=32)]


class SetTemplate(Object):
    """The template of the machines of a set."""

    metadata: Annotated[TemplateMeta | None, Field("Labels and annotations of the machines.")] = None
    spec: Annotated[VirtrigaudMachineSpec, Field("What each machine should be.", required=True)] = VirtrigaudMachineSpec()


class RollingUpdate(Object):
    """The replacement of machines one after another."""

    maxUnavailable: Annotated[
        IntOrString, Field("How many machines may be missing.", ge=0, bits=32, pattern=AMOUNT_PATTERN, message=AMOUNT_MESSAGE)
    ] = "25%"
    maxSurge: Annotated[
        IntOrString, Field("How many machines there may be too many.", ge=0, bits=32, pattern=AMOUNT_PATTERN, message=AMOUNT_MESSAGE)
    ] = "25%"
    partition: Annotated[int | None, Field("Machines with a smaller ordinal are left alone.", ge=0, bits=32)] = None
    podManagementPolicy: Annotated[str, Field("Whether a machine waits for the one before.", enum=("OrderedReady", "Parallel"))] = (
        "OrderedReady"
    )


class SetUpdateStrategy(Object):
    """The way a change of the template reaches the machines."""

    type: Annotated[str, Field("Kind of update.", enum=("RollingUpdate", "OnDelete", "Recreate"))] = "RollingUpdate"
    rollingUpdate: Annotated[RollingUpdate | None, Field("For type RollingUpdate.")] = None


class ClaimRetention(Object):
    """The fate of claims when their machine is deleted."""

    whenDeleted: Annotated[str, Field("When the set is deleted.", enum=("Retain", "Delete"))] = "Retain"
    whenScaled: Annotated[str, Field("When the set shrinks.", enum=("Retain", "Delete"))] = "Retain"


class Ordinals(Object):
    """The numbers of the machines."""

    start: Annotated[int, Field("Number of the first machine.", ge=0, le=999999)] = 0


class ClaimTemplate(Object):
    """A claim that each machine gets for itself."""

    metadata: Annotated[TemplateMeta | None, Field("Name, labels and annotations of the claim.")] = None
    spec: Annotated[PersistentVolumeClaimSpec, Field("What the claim asks for.", required=True)] = PersistentVolumeClaimSpec()


class VMSetSpec(Object):
    """The number of machines, and their template."""

    replicas: Annotated[int, Field("Number of machines.", ge=0, le=1000)] = 1
    selector: Annotated[LabelSelector, Field("Labels of the machines that belong to the set.", required=True)] = LabelSelector()
    template: Annotated[SetTemplate, Field("What the machines are made from.", required=True)] = SetTemplate()
    updateStrategy: Annotated[SetUpdateStrategy | None, Field("How a change reaches them.")] = None
    minReadySeconds: Annotated[int | None, Field("How long a machine has to be ready to count as available.", ge=0, le=3600)] = None
    revisionHistoryLimit: Annotated[int, Field("Old revisions that are kept.", ge=0, le=100)] = 10
    persistentVolumeClaimRetentionPolicy: Annotated[ClaimRetention | None, Field("What becomes of claims.")] = None
    ordinals: Annotated[Ordinals | None, Field("How the machines are numbered.")] = None
    serviceName: Annotated[str | None, Field("Service the machines are reached through.", max_length=253)] = None
    volumeClaimTemplates: Annotated[list[ClaimTemplate] | None, Field("Claims each machine gets.", max_items=20)] = None


class FailedMachine(Object):
    """A machine that could not be updated."""

    name: Annotated[str, Field("Name of the machine.", required=True)] = ""
    reason: Annotated[str | None, Field("One word for programs.")] = None
    message: Annotated[str | None, Field("Why.")] = None
    lastAttempt: Annotated[Time | None, Field("When it was last tried.")] = None
    retryCount: Annotated[int | None, Field("Tries so far.", bits=32)] = None


class UpdateStatus(Object):
    """The progress of an update."""

    phase: Annotated[str | None, Field("Where the update is.", enum=("Pending", "InProgress", "Paused", "Completed", "Failed"))] = None
    message: Annotated[str | None, Field("More about the phase.")] = None
    startTime: Annotated[Time | None, Field("When it began.")] = None
    completionTime: Annotated[Time | None, Field("When it ended.")] = None
    updatedVMs: Annotated[list[str] | None, Field("Machines that are updated.", max_items=1000)] = None
    pendingVMs: Annotated[list[str] | None, Field("Machines that wait.", max_items=1000)] = None
    failedVMs: Annotated[list[FailedMachine] | None, Field("Machines that failed.", max_items=1000)] = None


class MachineInSet(Object):
    """The state of one machine of the set."""

    name: Annotated[str, Field("Name of the machine.", required=True)] = ""
    phase: Annotated[str | None, Field("Its phase.", enum=PHASES)] = None
    ready: Annotated[bool | None, Field("Whether it is ready.")] = None
    revision: Annotated[str | None, Field("Revision of the template it was made from.")] = None
    creationTime: Annotated[Time | None, Field("When it was made.")] = None
    lastUpdateTime: Annotated[Time | None, Field("When it was last updated.")] = None
    message: Annotated[str | None, Field("More about it.")] = None


class VMSetStatus(Object):
    """The observed state of a set."""

    observedGeneration: ObservedGeneration = None
    replicas: Count = None
    readyReplicas: Count = None
    availableReplicas: Count = None
    updatedReplicas: Count = None
    currentReplicas: Count = None
    selector: Annotated[str | None, Field("The selector as text, for the scale subresource.")] = None
    currentRevision: Annotated[str | None, Field("Revision of most machines.")] = None
    updateRevision: Annotated[str | None, Field("Revision they become.")] = None
    collisionCount: Annotated[int | None, Field("Names that were taken by others.", bits=32)] = None
    conditions: Conditions = None
    updateStatus: Annotated[UpdateStatus | None, Field("How far an update is.")] = None
    vmStatus: Annotated[list[MachineInSet] | None, Field("How each machine is.", max_items=1000)] = None


class VMSet(Resource):
    """A number of machines of one template."""

    spec: Annotated[VMSetSpec, Field("How many, and what they are made from.", required=True)] = VMSetSpec()
    status: Annotated[VMSetStatus | None, Field("What was observed.")] = None


KINDS = (
    Kind(
        group=GROUP,
        kind="VMSet",
        plural="vmsets",
        singular="vmset",
        short_names=("vmset",),
        cls=VMSet,
        dialect="virtrigaud",
        versions=VERSIONS,
        columns=(
            Column("Desired", ".spec.replicas", "integer"),
            Column("Current", ".status.replicas", "integer"),
            Column("Ready", ".status.readyReplicas", "integer"),
            Column("Updated", ".status.updatedReplicas", "integer"),
            AGE,
        ),
        scale=Scale(selector=".status.selector"),
        rules=rules.RULES,
    ),
)
