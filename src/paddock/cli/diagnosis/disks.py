"""Causes that lie with disks: DataVolumes, claims, storage classes, copies, uploads, the store of the host."""

from collections.abc import Iterator

from paddock.cli.diagnosis import verdict
from paddock.cli.diagnosis.links import STORAGE_CLASS, ref_of
from paddock.cli.diagnosis.rule import CauseDepth, Diagnosis, DiagnosisRule, Evidence, RuleView
from paddock.cli.diagnosis.scene import Data, at, conditions, entries, texts
from paddock.cli.diagnosis.told import EventCause
from paddock.cli.diagnosis.walk import WalkNode
from paddock.meta import ages
from paddock.plan.changes.references import CLAIM, DATA_SOURCE, DATA_VOLUME, INSTANCE, MACHINE

_DEFAULTS = ("storageclass.kubevirt.io/is-default-virt-class", "storageclass.kubernetes.io/is-default-class")
DISKS: tuple[EventCause, ...] = (
    EventCause(
        id="host-disk-full",
        title="The disk of the host is full.",
        fix="Make room in the directory that is named, or give Paddock a larger one (--dir, or a storage pool: --pool). It is tried again.",
        text=r"no space is left|no space left on device|no room for an image|does not fit on the host's disk|disk quota exceeded",
    ),
    EventCause(
        id="host-disk-read-only",
        title="The host's directory for disks and images cannot be written.",
        fix="Mount it writable, and give the user Paddock runs as the right to write there. It is tried again.",
        text=r"is read-only|may not be written|read-only file system",
    ),
    EventCause(
        id="claim-in-use",
        title="Another machine that runs uses the disk, which allows one writer.",
        fix="Stop the other machine, give this one a copy of the disk, or use a disk with access mode ReadWriteMany.",
        reason=("PVCInUse",),
        text=r"PVC (?P<claim>\S+) is (used by the running machine (?P<other>[^,\s]+)|wanted)",
        cause="PVC {claim} is used by the running machine {other}, and allows one writer.",
        how="Stop the other machine (virtctl stop {other} -n {namespace}), or give this one a copy of the disk.",
    ),
    EventCause(
        id="clone-source-in-use",
        title="The disk to copy is in use by a machine that runs.",
        fix="Stop the machine that uses it, or copy a snapshot of it. It is tried again.",
        text=r"CloneSourceInUse|(the claim|pvc) \S+ (to copy )?is in use by a(nother)? (running )?(machine|pod)"
        r"|pod/\S+ .{0,40}is using PersistentVolumeClaim",
        of=(DATA_VOLUME, CLAIM),
    ),
    EventCause(
        id="clone-not-permitted",
        title="Disks of the other namespace may not be copied by whoever asks for it.",
        fix="Bind a role with create on datavolumes/source (cdi.kubevirt.io) in the source namespace to the one who is named.",
        text=r"insufficient permissions in clone source namespace|CloneNotAuthorized|not authorized to (create|clone)",
    ),
    EventCause(
        id="clone-source-missing",
        title="The disk to copy does not exist.",
        fix="Correct the name and the namespace of the claim in the source, or make it.",
        text=r"CloneSourceNotFound|the claim (?P<claim>\S+) to copy is not there|CloneWithoutSource|source pvc \S+ not found",
    ),
    EventCause(
        id="clone-source-empty",
        title="The disk to copy is not filled yet.",
        fix="Wait until it is; ask about it if it takes long.",
        text=r"CloneSourceNotReady|to copy is not filled yet|SnapshotNotReady|the snapshot \S+ is not there, or not ready",
        mood="waits",
    ),
    EventCause(
        id="claim-name-taken",
        title="A claim of the disk's name exists already and belongs to somebody else.",
        fix='Rename the disk, delete the claim, or let it be taken over (annotation cdi.kubevirt.io/allowClaimAdoption: "true").',
        reason=("ErrResourceExists",),
        cause="A claim {name} exists already and belongs to somebody else.",
    ),
    EventCause(
        id="claim-invalid",
        title="The disk's claim cannot be made as it is described.",
        fix="Give storage.resources.requests.storage, and access modes that exist.",
        reason=("ErrClaimNotValid",),
        cause="The disk's claim cannot be made: {message}",
    ),
    EventCause(
        id="secret-incomplete",
        title="A Secret lacks what it is needed for.",
        fix="Add the keys that are named to the Secret.",
        reason=("SecretIncomplete",),
        text=r"cannot use Secret (?P<secret>\S+): (?P<why>[^;]+)",
        cause="Secret {secret} cannot be used: {why}.",
    ),
    EventCause(
        id="configmap-incomplete",
        title="A ConfigMap lacks the certificates it is needed for.",
        fix="Add the certificates under keys that end with .crt or .pem.",
        reason=("ConfigMapIncomplete",),
        text=r"cannot use ConfigMap (?P<map>\S+): (?P<why>[^;]+)",
        cause="ConfigMap {map} cannot be used: {why}.",
    ),
    EventCause(
        id="datasource-broken",
        title="The DataSource leads to nothing that can be used.",
        fix="Correct spec.source of the DataSource.",
        of=(DATA_SOURCE,),
        type=("Ready",),
        text=r"NoSource|SelfReference|MaxReferenceDepthReached|CrossNamespaceReference|has no source|PVC not found|Snapshot not found"
        r"|InvalidCertificate|ClientCertificateUnsupported|CrossNamespaceSecret|is not there",
        cause="DataSource {name} leads to nothing that can be used: {message}.",
    ),
    EventCause(
        id="datasource-not-ready",
        title="The DataSource is not ready yet.",
        fix="Wait until its own import is done; ask about the DataSource if it takes long.",
        of=(DATA_SOURCE,),
        type=("Ready",),
        cause="DataSource {name} is not ready yet: {message}.",
        mood="waits",
    ),
    EventCause(
        id="claim-lost",
        title="The volume of a claim is gone.",
        fix="The data cannot be read any more: make the disk anew, or restore it from a snapshot.",
        text=r"ClaimLost",
    ),
    EventCause(
        id="provisioner-absent",
        title="Nobody makes volumes of this storage class here.",
        fix="Name a storage class whose provisioner runs here: kubectl get storageclass.",
        reason=("ExternalProvisioning",),
        text=r"external provisioner '(?P<who>[^']+)'",
        cause="Nobody here makes volumes of the claim's storage class: it is left to {who}.",
    ),
    EventCause(
        id="storageclass-missing",
        title="The storage class does not exist.",
        fix="Name one that exists (kubectl get storageclass), or make it.",
        text=r"storageclass(\.storage\.k8s\.io)? \"?(?P<class>[\w.-]+)\"? not found|StorageClassNotFound",
        rank=CauseDepth.SAID,
    ),
    EventCause(
        id="claim-too-large",
        title="A claim asks for more than any disk has.",
        fix="Delete the claim and ask for less.",
        of=(CLAIM,),
        reason=("ProvisioningFailed",),
        text=r"(?P<size>\d+) bytes were asked for, and a disk has at most (?P<most>\w+)",
        cause="PVC {name} asks for {size} bytes, and a disk has at most {most}.",
    ),
    EventCause(
        id="claim-not-shareable",
        title="A disk that several machines write cannot be shared as it is.",
        fix="Stop all machines that use it once, so that it can be made shareable.",
        reason=("VolumeNotShareable",),
    ),
    EventCause(
        id="host-path-forbidden",
        title="hostDisk volumes are not allowed in this directory.",
        fix="Use a DataVolume, or allow the directory when Paddock is started (--host-path).",
        reason=("HostDiskNotAllowed",),
    ),
    EventCause(
        id="host-path-missing",
        title="There is no such file on the host.",
        fix="Make the file, or set hostDisk.type: DiskOrCreate with a capacity.",
        reason=("HostDiskNotFound",),
    ),
    EventCause(
        id="disk-file-missing",
        title="A file that a disk of the machine is made of is gone from the host.",
        fix="Bring the file back, or restore the disk from a snapshot or a backup; a disk without data is made anew when it is deleted.",
        text=r"(Could not open|backing file:) '(\.\./)*(?P<file>[^']+)': No such file or directory",
        of=(INSTANCE, MACHINE),
        cause="A file that a disk of the machine is made of is gone from the host: {file}",
        how="Bring {file} back. If it was an image that others can offer again, delete the disk that was made from it, or the machine, "
        "and make it anew; else restore the disk from a snapshot or a backup.",
    ),
    EventCause(
        id="volume-not-plugged",
        title="A volume that was added to the running machine is not plugged in.",
        fix="Correct what the message names; virtctl removevolume NAME --volume-name=VOLUME takes the request back.",
        reason=("VolumePending",),
        text=r"^(?!.*being plugged)",
        cause="A volume that was added to the running machine is not plugged in: {message}",
        mood="notice",
    ),
)


def _unbound(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A claim without a class where there is no default."""
    for node, data in _claims(view):
        named = at(data, "spec", "storageClassName")
        if named is None and not _has_default(view) and _knows_classes(view):
            cause = f"PVC {node.ref.name} names no storage class, and none is the default."
            yield rule.found(node, cause, seen=Evidence("spec.storageClassName", "(not set)"))


def _claims(view: RuleView) -> Iterator[tuple[WalkNode, Data]]:
    for node in view.nodes:
        if node.ref.id == CLAIM and node.data is not None and texts(node.data, "status", "phase") in ("", "Pending"):
            yield node, node.data


def _classes(view: RuleView) -> Iterator[Data]:
    for asked, found in view.scene.lists.items():
        if (asked.group, asked.kind) == STORAGE_CLASS:
            yield from (view.scene.objects[each] for each in found)


def _knows_classes(view: RuleView) -> bool:
    return any((asked.group, asked.kind) == STORAGE_CLASS for asked in view.scene.lists)


def _has_default(view: RuleView) -> bool:
    return any((at(each, "metadata", "annotations") or {}).get(note) == "true" for each in _classes(view) for note in _DEFAULTS)


def _consumer(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A disk that waits for the first machine that uses it."""
    for node in view.nodes:
        if node.ref.id == DATA_VOLUME and texts(node.data, "status", "phase") in ("WaitForFirstConsumer", "PendingPopulation"):
            cause = f"DataVolume {node.ref.name} waits for the first machine that uses it."
            yield rule.found(
                node, cause, rank=CauseDepth.SAID, seen=Evidence("status.phase", texts(node.data, "status", "phase"), _since(node))
            )
    for node, data in _claims(view):
        name = texts(data, "spec", "storageClassName")
        found = view.scene.objects.get(ref_of(STORAGE_CLASS, "", name))
        if texts(found, "volumeBindingMode") == "WaitForFirstConsumer":
            cause = f"PVC {node.ref.name} waits for the first machine that uses it, as its storage class {name} says."
            yield rule.found(node, cause, rank=CauseDepth.SAID, seen=Evidence("spec.storageClassName", name))


def _upload(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    for node in view.nodes:
        if node.ref.id == DATA_VOLUME and texts(node.data, "status", "phase") in ("UploadReady", "UploadScheduled"):
            if "running" in _transfer(node):
                continue
            place = f"{node.ref.name} -n {node.ref.namespace}"
            fix = f"Send the disk: virtctl image-upload dv {place} --no-create --image-path=FILE"
            cause = f"DataVolume {node.ref.name} is to be filled by an upload, and nobody has begun one."
            yield rule.found(node, cause, fix=fix, seen=Evidence("status.phase", texts(node.data, "status", "phase"), _since(node)))


def _transfer(node: WalkNode) -> str:
    """`running` while data comes in."""
    return "running" if texts(conditions(node.data).get("Ready"), "reason") == "TransferRunning" else ""


def _queued(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A disk whose turn to be filled has not come."""
    for node in view.nodes:
        running = conditions(node.data).get("Running")
        if node.ref.id == DATA_VOLUME and texts(running, "reason") == "WaitingForSlot":
            cause = f"DataVolume {node.ref.name} is {texts(running, 'message')}."
            yield rule.found(
                node, cause, rank=CauseDepth.SAID, seen=Evidence("Running: WaitingForSlot", texts(running, "message"), _since(node))
            )


def _filling(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A disk that is being filled, and no complaint."""
    for node in view.nodes:
        phase = texts(node.data, "status", "phase")
        if node.ref.id != DATA_VOLUME or not (phase.endswith(("InProgress", "Scheduled")) or _transfer(node)):
            continue
        if texts(conditions(node.data).get("Running"), "reason") == "WaitingForSlot":
            continue
        if verdict.of(node.ref, node.data or {}).state == "bad":
            # It says itself why it does not go on.
            continue
        progress = texts(node.data, "status", "progress")
        moves = progress not in ("", "N/A", "0%", "0.00%")
        cause = f"DataVolume {node.ref.name} is being filled{f', {progress} done' if moves else ''}."
        # Another attempt tells nothing new until something comes: why the last one failed still is the answer.
        rank = CauseDepth.VAGUE if at(node.data, "status", "restartCount") and not moves else CauseDepth.SAID
        yield rule.found(node, cause, rank=rank, seen=Evidence("status.phase", f"{phase} {progress}".strip(), _since(node)))


def _leaving(rule: DiagnosisRule, view: RuleView) -> Iterator[Diagnosis]:
    """A claim that was deleted under a machine that runs, and goes with it."""
    for node in view.nodes:
        gone = ages.seconds_of(texts(node.data, "metadata", "deletionTimestamp"))
        if node.ref.id != CLAIM or gone is None:
            continue
        users = _users(view, node)
        if users:
            cause = f"{node.ref} was deleted while {', '.join(users)} runs: it goes, with its data, when that stops."
            yield rule.found(node, cause, rank=CauseDepth.SAID, seen=Evidence("metadata.deletionTimestamp", "", gone))


def _users(view: RuleView, claim: WalkNode) -> list[str]:
    """The running machines that have a claim as a disk."""
    running = {each.ref: each.data for each in view.nodes if each.ref.id == INSTANCE and each.data is not None}
    for asked, found in view.scene.lists.items():
        if (asked.group, asked.kind) == INSTANCE and asked.namespace == claim.ref.namespace:
            running.update({each: view.scene.objects[each] for each in found})
    return sorted(ref.name for ref, data in running.items() if texts(data, "status", "phase") == "Running" and _names(data, claim.ref.name))


def _names(data: Data, claim: str) -> bool:
    volumes = entries(data, "spec", "volumes")
    return any(claim in (texts(each, "persistentVolumeClaim", "claimName"), texts(each, "dataVolume", "name")) for each in volumes)


def _since(node: WalkNode) -> float | None:
    from_conditions = [each for each in entries(node.data, "status", "conditions") if texts(each, "type") in ("Running", "Ready")]
    return max((_seconds(each) for each in from_conditions), default=None)


def _seconds(condition: Data) -> float:
    return ages.seconds_of(texts(condition, "lastTransitionTime")) or 0.0


RULES: tuple[DiagnosisRule, ...] = (
    DiagnosisRule(
        id="storageclass-default-missing",
        title="A disk names no storage class, and no class is the default.",
        fix='Name a class in storageClassName, or make one the default (annotation storageclass.kubernetes.io/is-default-class: "true").',
        look=_unbound,
    ),
    DiagnosisRule(
        id="claim-terminating",
        title="A disk was deleted while a machine runs on it: it goes, with its data, when the machine stops.",
        fix="A deletion cannot be taken back. Before the machine stops, copy what you need out of the guest, "
        "or take a VirtualMachineSnapshot and restore it to another machine.",
        look=_leaving,
        mood="notice",
    ),
    DiagnosisRule(
        id="waits-for-consumer",
        title="The disk is made when the first machine that uses it starts.",
        fix='Start a machine that uses it, or ask for it at once (annotation cdi.kubevirt.io/storage.bind.immediate.requested: "true").',
        look=_consumer,
        mood="waits",
    ),
    DiagnosisRule(
        id="upload-not-begun",
        title="The disk is to be filled by an upload, and nobody has begun one.",
        fix="Send the disk: virtctl image-upload dv NAME --no-create --image-path=FILE",
        look=_upload,
    ),
    DiagnosisRule(
        id="waits-for-slot",
        title="The disk waits for its turn: so many disks are filled at a time, and half as many of one namespace.",
        fix="Wait, or delete DataVolumes whose images you do not need.",
        look=_queued,
        mood="waits",
    ),
    DiagnosisRule(
        id="disk-being-filled",
        title="The disk is being filled: an import, a copy or an upload is under way.",
        fix="Wait; the progress is in the DataVolume's status.",
        look=_filling,
        mood="waits",
    ),
)
