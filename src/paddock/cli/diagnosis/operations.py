"""Causes that lie with what is done to machines: snapshots, restores, clones, exports, series of machines, Services."""

from collections.abc import Iterator

from paddock.cli.diagnosis.links import CLONE, ENDPOINTS, EXPORT, POOLS, RESTORE, SERVICE
from paddock.cli.diagnosis.rule import CauseDepth, Diagnosis, DiagnosisRule, Evidence, RuleView
from paddock.cli.diagnosis.scene import Data, at, entries
from paddock.cli.diagnosis.told import EventCause
from paddock.plan.changes.references import INSTANCE, SNAPSHOT

OPERATIONS: tuple[EventCause, ...] = (
    EventCause(
        id="snapshot-source-missing",
        title="The machine to take a snapshot of does not exist.",
        fix="Correct spec.source.name.",
        of=(SNAPSHOT,),
        text=r"Source does not exist: VirtualMachine (?P<vm>\S+)|VirtualMachine \S+ (does not exist|not found)",
        cause="The machine to take a snapshot of does not exist.",
    ),
    EventCause(
        id="snapshot-volumes-empty",
        title="A disk of the machine is not filled yet, so no snapshot can be taken.",
        fix="Wait until the disk is filled, or see why it is not; then take another snapshot.",
        of=(SNAPSHOT,),
        text=r"volumes are not ready: (?P<volumes>[^;]+)",
        cause="Disks of the machine are not filled yet: {volumes}.",
    ),
    EventCause(
        id="operation-under-way",
        title="Something else is done to the machine first: another snapshot or restore.",
        fix="Wait until it is done, or delete it.",
        text=r"Source not locked: (?P<other>(snapshot|restore) \S+)|waiting for (?P<other2>(restore|snapshot) \S+) of the( same)? machine",
        cause="Something else is done to the machine first: {other}{other2}.",
        mood="waits",
    ),
    EventCause(
        id="snapshot-overdue",
        title="The snapshot took longer than it may.",
        fix="Take another one; spec.failureDeadline says how long it may take.",
        of=(SNAPSHOT,),
        text=r"deadline exceeded(: (?P<why>.+))?",
        cause="The snapshot took longer than it may: {why}",
    ),
    EventCause(
        id="snapshot-unquiesced",
        title="The guest's agent did not hold its file systems still: the snapshot is as after a power cut.",
        fix="Look at qemu-guest-agent in the guest and take another snapshot.",
        of=(SNAPSHOT,),
        reason=("QuiesceFailed",),
        mood="notice",
    ),
    EventCause(
        id="restore-target-running",
        title="The machine to restore runs.",
        fix="Stop it, or set spec.targetReadinessPolicy: StopTarget.",
        of=(RESTORE,),
        text=r"restore target (?P<vm>\S+) is running|waiting for (?P<vm2>\S+) to be stopped",
        cause="The machine to restore, {vm}{vm2}, runs.",
        how="virtctl stop {vm}{vm2} -n {namespace}",
    ),
    EventCause(
        id="restore-snapshot-failed",
        title="The snapshot to restore from failed.",
        fix="Take another snapshot, and restore from that.",
        of=(RESTORE,),
        text=r"snapshot (?P<snapshot>\S+) failed",
    ),
    EventCause(
        id="restore-claim-taken",
        title="A claim of the restored disk's name exists already.",
        fix="Choose another name in volumeRestoreOverrides.",
        of=(RESTORE,),
        text=r"there is a claim (?P<claim>\S+) already|two volumes would be restored to one claim",
    ),
    EventCause(
        id="restore-refused",
        title="The machine cannot be made from the snapshot as the restore asks for it.",
        fix="Correct the restore (patches, volumeRestorePolicy) as the message says.",
        of=(RESTORE,),
        text=r"patches|the machine cannot|cannot be in place",
        cause="The machine cannot be made from the snapshot as it is asked for: {message}",
    ),
    EventCause(
        id="restore-snapshot-waited-for",
        title="The restore waits for its snapshot.",
        fix="See why the snapshot is not ready, or correct spec.virtualMachineSnapshotName.",
        of=(RESTORE,),
        text=r"waiting for snapshot (?P<snapshot>\S+) to be ready",
        cause="The restore waits for snapshot {snapshot} to be ready.",
        mood="waits",
    ),
    EventCause(
        id="restore-filling",
        title="The restored disks are being filled.",
        fix="Wait.",
        of=(RESTORE,),
        text=r"waiting for .+ to be filled|locking|stopping",
        mood="waits",
    ),
    EventCause(
        id="clone-target-exists",
        title="A machine of the clone's name exists already.",
        fix="Choose another name in spec.target.name, and make the clone anew.",
        of=(CLONE,),
        text=r"a VirtualMachine (?P<vm>\S+) is there already",
        cause="A machine {vm} exists already.",
    ),
    EventCause(
        id="clone-machine-missing",
        title="The machine or snapshot to clone does not exist.",
        fix="Correct spec.source.name.",
        of=(CLONE,),
        text=r"waiting for (?P<what>VirtualMachine(Snapshot)? \S+)",
        cause="The {what} to clone does not exist.",
    ),
    EventCause(
        id="export-source-missing",
        title="What is to be exported does not exist, or has no data yet.",
        fix="Correct spec.source.",
        of=(EXPORT,),
        text=r"VMNotFound|PVCNotFound|VMSnapshotNotReady",
        cause="What is to be exported is not there: {message}.",
    ),
    EventCause(
        id="export-source-in-use",
        title="The disk to export is in use by a machine that runs.",
        fix="Stop the machine, or export a snapshot of it.",
        of=(EXPORT,),
        text=r"in use by|InUse",
        cause="The disk to export is in use by a machine that runs.",
    ),
    EventCause(
        id="series-paused",
        title="The series of machines is paused: nothing is added, removed or changed.",
        fix="Set spec.paused to false.",
        type=("ReplicaPaused",),
        mood="notice",
    ),
    EventCause(
        id="series-failing",
        title="Machines of a series cannot be made or deleted.",
        fix="Correct the template of the series as the message says; the members that failed: paddock why vm/NAME.",
        type=("ReplicaFailure",),
        cause="Machines of the series cannot be made or deleted: {message}",
        rank=CauseDepth.VAGUE,
    ),
)


def _crash_consistent(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    node = view.start
    listed = at(node.data, "status", "indications") or ()
    if node.ref.id == SNAPSHOT and "NoGuestAgent" in listed:
        yield rule.found(node, rank=CauseDepth.SAID, seen=Evidence("status.indications", "NoGuestAgent"))


def _paused(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    for node in view.nodes:
        if node.ref.id in POOLS and at(node.data, "spec", "paused"):
            change = '{"spec":{"paused":false}}'
            fix = f"kubectl patch {node.ref.kind.lower()} {node.ref.name} -n {node.ref.namespace} --type merge -p '{change}'"
            yield rule.found(node, fix=fix, rank=CauseDepth.SAID, seen=Evidence("spec.paused", "true"))


def _no_backend(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A Service that leads to nobody."""
    for node in view.nodes:
        if node.ref.id != SERVICE or node.data is None or not at(node.data, "spec", "selector"):
            continue
        ends = next((each.data for each in view.nodes if each.ref.id == ENDPOINTS and each.ref.name == node.ref.name), None)
        if ends is None or _addresses(ends):
            continue
        behind = [each for each in view.nodes if each.above is node and each.ref.id == INSTANCE]
        labels = ",".join(f"{key}={value}" for key, value in sorted(at(node.data, "spec", "selector").items()))
        if behind:
            cause = f"The machine behind Service {node.ref.name} ({behind[0].ref.name}) is not ready."
        else:
            cause = f"No running machine has the labels that Service {node.ref.name} selects: {labels}."
        yield rule.found(node, cause, rank=CauseDepth.VAGUE if behind else CauseDepth.SAID, seen=Evidence("spec.selector", labels))


def _addresses(data: Data) -> bool:
    return any(entries(each, "addresses") for each in entries(data, "subsets"))


RULES: tuple[DiagnosisRule, ...] = (
    DiagnosisRule(
        id="snapshot-without-agent",
        title="The snapshot was taken of a running guest without an agent: it is as after a power cut.",
        fix="Install qemu-guest-agent in the guest, or stop the machine first, and take another snapshot.",
        look=_crash_consistent,
        mood="notice",
    ),
    DiagnosisRule(
        id="series-paused",
        title="The series of machines is paused: nothing is added, removed or changed.",
        fix="Set spec.paused to false.",
        look=_paused,
        mood="notice",
    ),
    DiagnosisRule(
        id="service-without-machine",
        title="The Service leads to no machine that runs and is ready.",
        fix="Give the machine's template (spec.template.metadata.labels) the labels that the Service selects, and see that it runs.",
        look=_no_backend,
    ),
)
