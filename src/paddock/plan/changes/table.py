"""The effect of each field's change on an existing machine: one table for `paddock plan`, `paddock explain` and the controllers.

Per kind, rows of a path pattern; a row covers its place and everything below, the longest pattern wins. Where the effect depends
on the installation or on the guest, the row names the worse case and the reason describes the better one. The rules of the dialects
refuse sizes that shrink and changes of immutable fields; the row describes the effect of reaching that state all the same.
"""

from paddock.plan.changes.differences import FieldDifference, ValueChange
from paddock.plan.changes.effects import Effect, EffectRow, best
from paddock.plan.changes.patterns import Parts, generalize
from paddock.schema.finding import Path
from paddock.schema.kind import Kind

LIVE, NONE, LOSS, RECREATE, RESTART = Effect.LIVE, Effect.NONE, Effect.LOSS, Effect.RECREATE, Effect.RESTART
KindId = tuple[str, str]
Rows = tuple[EffectRow, ...]

_COMING = (ValueChange.ADDED,)
_GOING = (ValueChange.REMOVED,)
_UP = (ValueChange.UP,)
_DOWN = (ValueChange.DOWN,)

_NEW_DISK = "a disk keeps what it was made from and where it lies: anything else means a new disk without the old one's data"
_ORDER = "the guest sees the disks in their new order after a restart"
_SHRINK = "a disk cannot shrink: a smaller one is a new disk without the old one's data"
_GROW = "the claim grows at once if its class allows it; the guest still has to grow its file system"
_TOPOLOGY = "the guest sees its processors and memory as they were when it started"
_PLUGGED = "plugged in while the machine runs, up to the maximum it was started with; beyond that at its next restart"
_HARDWARE = "the guest keeps the hardware it was started with until it restarts"
_FIRST_BOOT = "the guest gets it at once and reads it on its first boot only"
_REWRITTEN = "written anew at the next restart; the guest reads most of it on its first boot only"
_POWER = "says at once whether the machine runs"
_LABELS = "carried over at once"
_MADE_ONCE = "counts when the machine is made; this one stays as it is"
_ONCE = "it happens once: make a new object for another one"

_METADATA: Rows = (EffectRow("metadata.labels", LIVE, _LABELS), EffectRow("metadata.annotations", LIVE, _LABELS))


def _of_snapshots() -> dict[KindId, Rows]:
    """Return the rows of snapshots: content does not change, and a class applies to future ones."""
    group = "snapshot.storage.k8s.io"
    return {
        (group, "VolumeSnapshot"): (EffectRow("spec", RECREATE, "a snapshot shows one moment and does not change"),),
        (group, "VolumeSnapshotContent"): (EffectRow("spec", NONE, "machines are not touched"),),
        (group, "VolumeSnapshotClass"): _each("", "driver parameters deletionPolicy", LIVE, "counts for snapshots from now on"),
    }


def _each(at: str, names: str, effect: Effect, why: str) -> Rows:
    """The same for several members of one place."""
    return tuple(EffectRow(f"{at}.{name}" if at else name, effect, why) for name in names.split())


def _size(path: str, *, grow: str = _GROW) -> Rows:
    """A disk's size."""
    return (EffectRow(path, LIVE, grow), EffectRow(path, LOSS, _SHRINK, _DOWN))


def _pluggable(path: str, growth: str) -> Rows:
    """Processors and memory that grow while the guest runs."""
    return (EffectRow(path, RESTART, _TOPOLOGY, growth=growth), EffectRow(path, LIVE, _PLUGGED, _UP, growth=growth))


_P = "spec.parameters"
_DISK = f"{_P}.additionalDisks[]"
_CROSSPLANE = """
    compositionRef compositionSelector compositionRevisionRef compositionRevisionSelector compositionUpdatePolicy
    compositeDeletePolicy resourceRef resourceRefs claimRef writeConnectionSecretToRef publishConnectionDetailsTo
    providerConfigRef providerConfigsRef crossplane
"""
_STAKATER: Rows = (
    EffectRow(f"{_P}.dataSource", LOSS, "the root disk is a clone of it: another image means a new disk without the old one's data"),
    *_size(f"{_P}.storage.size"),
    EffectRow(f"{_P}.storage.storageClassName", LOSS, _NEW_DISK),
    EffectRow(f"{_P}.additionalDisks", RESTART, _ORDER, (ValueChange.REORDERED,)),
    EffectRow(_DISK, RESTART, "made at once, and seen by the guest at once where disks can be plugged in, else after a restart", _COMING),
    EffectRow(_DISK, RESTART, "the guest loses the disk; its data is kept until the machine is deleted or prune-disks is set", _GOING),
    EffectRow(f"{_DISK}.name", RESTART, "the name of a disk is part of the machine"),
    *_size(f"{_DISK}.size"),
    *_each(_DISK, "storageClassName accessModes volumeMode sourceType source", LOSS, _NEW_DISK),
    EffectRow(f"{_DISK}.bus", RESTART, _HARDWARE),
    *_pluggable(f"{_P}.cpu.sockets", "sockets"),
    EffectRow(f"{_P}.cpu.cores", RESTART, _TOPOLOGY),
    EffectRow(f"{_P}.cpu.threads", RESTART, _TOPOLOGY),
    *_pluggable(f"{_P}.memory.guest", "memory"),
    EffectRow(f"{_P}.networks", RESTART, _HARDWARE),
    EffectRow(f"{_P}.cloudInit", RESTART, _REWRITTEN),
    EffectRow(f"{_P}.sshPublicKey", RESTART, "with qemuGuestAgent at once, else at the next boot and only if cloud-init runs again"),
    EffectRow(f"{_P}.runStrategy", LIVE, _POWER),
    EffectRow(f"{_P}.terminationGracePeriodSeconds", RESTART, "the running machine stops as it was started"),
    EffectRow(f"{_P}.enableDynamicCredentials", RESTART, "the guest is prepared for it when it boots"),
    EffectRow(f"{_P}.firmware", RESTART, "the guest boots with it; a system installed for the other firmware may not boot any more"),
    EffectRow(f"{_P}.service", LIVE, "the Service follows at once; disabling it gives up its address"),
    EffectRow(f"{_P}.nodeSelector", LIVE, "takes hold when the machine moves or starts next"),
    EffectRow(f"{_P}.additionalLabels", LIVE, _LABELS),
    EffectRow(f"{_P}.additionalAnnotations", LIVE, _LABELS),
    *_each("spec", _CROSSPLANE, NONE, "Crossplane's own; kept and not honoured"),
)

_UNUSED = "it is kept, and nothing reads it"
_VITISTACK: Rows = (
    EffectRow("spec.template", RESTART, "processors and memory follow at the next restart; a larger root disk grows at once"),
    EffectRow("spec.resources.cpu.cores", RESTART, _TOPOLOGY),
    EffectRow("spec.resources.cpu.threads", RESTART, _TOPOLOGY),
    *_pluggable("spec.resources.cpu.sockets", "sockets"),
    *_pluggable("spec.resources.memory.size", "memory"),
    EffectRow("spec.disks", RESTART, _ORDER, (ValueChange.REORDERED,)),
    EffectRow("spec.disks[]", RESTART, "the claim is made at once, the guest sees the disk after a restart", _COMING),
    EffectRow(
        "spec.disks[]", RESTART, "the guest loses the disk at its next restart; the claim is kept until the machine is deleted", _GOING
    ),
    EffectRow("spec.disks[].name", RESTART, "the name of a disk is part of the machine"),
    *_size("spec.disks[].size"),
    *_each("spec.disks[]", "storageClass accessMode volumeMode", LOSS, _NEW_DISK),
    EffectRow("spec.networks", RESTART, _HARDWARE),
    EffectRow("spec.bootOrder", RESTART, "read when the machine starts"),
    EffectRow("spec.cloudInit", RESTART, _REWRITTEN),
    EffectRow("spec.domain", RESTART, _HARDWARE),
    EffectRow("spec.os", NONE, "the installation image is fetched when the machine is made"),
    # Vitistack's own form
    EffectRow("spec.provider", NONE, "it tells the form of the machine, which stays the same machine"),
    EffectRow("spec.machineClass", RESTART, "processors and memory follow at the next restart"),
    *_each("spec.cpu", "cores threadsPerCore", RESTART, _TOPOLOGY),
    *_pluggable("spec.cpu.sockets", "sockets"),
    *_pluggable("spec.memory", "memory"),
    *_size("spec.disks[].sizeGB"),
    *_each("spec.disks[]", "type boot", RESTART, _HARDWARE),
    *_each("spec.disks[]", "device encrypted iops throughput", NONE, _UNUSED),
    EffectRow("spec.network", RESTART, _HARDWARE),
    EffectRow("spec.name", RESTART, "the host name reaches the guest at its next first boot"),
    *_each("spec", "sshKeys userData", RESTART, _REWRITTEN),
    *_each("spec", "machineType providerConfig tags securityGroups monitoring backup", NONE, _UNUSED),
)
_WIRING = "machines on the network keep the old wiring until they restart"
_NETWORK: Rows = (
    *_each("spec", "bridge vlan mtu", RESTART, _WIRING),
    EffectRow("spec.networkId", NONE, "a note"),
    EffectRow("spec.ipam", LIVE, "guests get it with their next lease"),
    EffectRow("spec.dhcp", LIVE, "guests get it with their next lease"),
    EffectRow("spec.security", LIVE, "enforced at once where Paddock runs the machine itself, and not elsewhere"),
)


def _instance(at: str) -> Rows:
    """The spec of the instance in a machine's template."""
    volume, card = f"{at}.volumes[]", f"{at}.domain.devices.interfaces[]"
    claims = ("dataVolume", "persistentVolumeClaim")
    plugged = "volumes from claims are plugged in and out while the machine runs; their data stays"
    return (
        EffectRow(at, RESTART, _HARDWARE),
        *_pluggable(f"{at}.domain.cpu.sockets", "sockets"),
        *_pluggable(f"{at}.domain.memory.guest", "memory"),
        *_each(at, "nodeSelector affinity tolerations", LIVE, "takes hold when the machine moves or starts next"),
        EffectRow(volume, RESTART, "the guest has the other volume after a restart; the old one keeps its data"),
        EffectRow(volume, LIVE, plugged, (*_COMING, *_GOING), claims),
        EffectRow(f"{at}.domain.devices.disks[]", LIVE, "plugged in or out together with its volume", (*_COMING, *_GOING)),
        *_each(volume, "cloudInitNoCloud cloudInitConfigDrive", RESTART, _REWRITTEN),
        EffectRow(f"{volume}.emptyDisk", LOSS, "an empty disk lives as long as the running machine: a new one is made at the restart"),
        EffectRow(
            card, LIVE, "a card with the bridge binding is plugged in or out while the machine runs", (*_COMING, *_GOING), ("bridge",)
        ),
        EffectRow(f"{card}.state", LIVE, "the link goes up or down at once"),
        EffectRow(f"{at}.networks[]", LIVE, "plugged in or out together with its card", (*_COMING, *_GOING), ("multus",)),
    )


def _machine(at: str) -> Rows:
    """The spec of a KubeVirt machine."""
    return (
        EffectRow(f"{at}.runStrategy", LIVE, _POWER),
        EffectRow(f"{at}.running", LIVE, _POWER),
        EffectRow(f"{at}.template.metadata", RESTART, "the running instance keeps its labels and annotations"),
        *_instance(f"{at}.template.spec"),
        EffectRow(f"{at}.dataVolumeTemplates", NONE, "DataVolumes are made once: one that exists keeps its data and its size"),
        EffectRow(f"{at}.dataVolumeTemplates[]", LIVE, "a new DataVolume is made", _COMING),
        EffectRow(f"{at}.dataVolumeTemplates[]", NONE, "the DataVolume stays, with its data, as long as the machine", _GOING),
        EffectRow(f"{at}.instancetype", RESTART, _TOPOLOGY),
        EffectRow(f"{at}.preference", RESTART, _HARDWARE),
        EffectRow(f"{at}.updateVolumesStrategy", LIVE, "counts for the next change of a volume"),
    )


def _pool(*, flat: bool) -> Rows:
    """A pool of machines; the flat form puts the labels of its template on the running machines, too."""
    inner = "spec.virtualMachineTemplate.spec"
    anew = "the running machines are restarted one after the other, as updateStrategy says"
    disks = "every machine of the pool is deleted and made anew, with new disks"
    return (
        EffectRow("spec.replicas", LIVE, "machines are added"),
        EffectRow("spec.replicas", LOSS, "machines are deleted, with their disks unless scaleInStrategy preserves them", _DOWN),
        EffectRow("spec.selector", RECREATE, "the selector of a pool is fixed: make another pool"),
        EffectRow("spec.virtualMachineTemplate", RESTART, anew),
        EffectRow("spec.virtualMachineTemplate.metadata", RESTART if flat else LIVE, anew if flat else _LABELS),
        EffectRow(f"{inner}.runStrategy", LIVE, _POWER),
        EffectRow(f"{inner}.running", LIVE, _POWER),
        EffectRow(f"{inner}.updateVolumesStrategy", LIVE, "counts for the next change of a volume"),
        EffectRow(f"{inner}.dataVolumeTemplates", LOSS, disks),
        EffectRow("spec.nameGeneration", RESTART, "machines refer to other Secrets and ConfigMaps from their next restart on"),
        *_each(
            "spec", "paused maxUnavailable scaleInStrategy updateStrategy autohealing", LIVE, "the controller of the pool follows at once"
        ),
    )


_INSTANCE_SPEC: Rows = (EffectRow("spec", RECREATE, "a running instance does not change: it ends, and a new one starts"),)
_REPLICA_SET: Rows = (
    EffectRow("spec.replicas", LIVE, "instances are added or ended"),
    EffectRow("spec.paused", LIVE, "the controller follows at once"),
    EffectRow("spec.selector", RECREATE, "the selector of a replica set is fixed: make another one"),
    EffectRow("spec.template", NONE, "only instances that start from now on are made from it"),
)
_FIXED: Rows = (EffectRow("spec", RECREATE, _ONCE),)
_KEPT: Rows = (EffectRow("spec", NONE, "machines keep it as it was when they were made"),)
_DATA_VOLUME: Rows = (EffectRow("spec", LOSS, "a DataVolume is filled once: another one means a new disk without the old one's data"),)
_DATA_SOURCE: Rows = (EffectRow("spec", NONE, "disks that exist are independent copies; new ones are made from it"),)
_SETTINGS: Rows = (EffectRow("spec", LIVE, "counts for what is made, started or moved from now on"),)

# Every Provider ignores something.
_AS_IT_CAN = "as far as its Provider can (the machine's condition Unsupported names the rest)"
_RIGAUD_CLASS: Rows = (
    *_pluggable("spec.cpu", "sockets"),
    *_pluggable("spec.memory", "memory"),
    *_each(
        "spec",
        "firmware diskDefaults guestToolsPolicy resourceLimits performanceProfile securityProfile extraConfig",
        NONE,
        f"counts when a machine of this class is made, {_AS_IT_CAN}; those that exist stay as they are",
    ),
)
# What is only kept: of an image, of a network.
_ABOUT = "kept for people and programs: it changes no machine"
_RIGAUD_IMAGE: Rows = (
    EffectRow("spec", NONE, f"machines that exist keep their disks; new ones are made from it, {_AS_IT_CAN}"),
    EffectRow("spec.prepare", NONE, "counts when a Provider prepares the image"),
    *_each("spec", "metadata distribution", NONE, _ABOUT),
    *_each("spec.source", "libvirt.format registry.format", NONE, _ABOUT),
)
_RIGAUD_NETWORK: Rows = (
    EffectRow("spec", NONE, f"counts when a machine is made, {_AS_IT_CAN}"),
    EffectRow("spec.metadata", NONE, _ABOUT),
    EffectRow("spec.network.type", NONE, f"{_ABOUT}, but for a network without a block of a Provider of type qemu or firecracker"),
)


def _rigaud_machine(at: str) -> Rows:
    """The spec of VirtRigaud's machine."""
    return (
        EffectRow(f"{at}.providerRef", LOSS, "another provider makes another machine with new disks: move it with a VMMigration"),
        EffectRow(f"{at}.classRef", RESTART, "processors and memory are plugged in where provider and class allow it, else at a restart"),
        *_each(at, "imageRef importedDisk networks placement placementRef tags", NONE, _MADE_ONCE),
        EffectRow(f"{at}.disks", NONE, _MADE_ONCE, (ValueChange.REORDERED,)),
        *_each(f"{at}.disks[]", "name type storageClass scsi", NONE, _MADE_ONCE),
        EffectRow(f"{at}.disks[]", LIVE, "attached at once", _COMING),
        EffectRow(f"{at}.disks[]", LIVE, "detached at once, and never deleted", _GOING),
        *_size(f"{at}.disks[].sizeGiB", grow="grown while the machine runs with expandPolicy Online, else when it is off"),
        EffectRow(f"{at}.disks[].expandPolicy", LIVE, "counts for the next growth"),
        EffectRow(f"{at}.userData", NONE, _FIRST_BOOT),
        EffectRow(f"{at}.metaData", NONE, _FIRST_BOOT),
        EffectRow(f"{at}.powerState", LIVE, _POWER),
        *_pluggable(f"{at}.resources.cpu", "sockets"),
        *_pluggable(f"{at}.resources.memoryMiB", "memory"),
        EffectRow(f"{at}.resources.gpu", RESTART, _HARDWARE),
        EffectRow(f"{at}.snapshot", LOSS, "the machine goes back to the snapshot: what was written since is gone"),
        EffectRow(f"{at}.snapshot", NONE, "the machine stays as it is", _GOING),
        EffectRow(f"{at}.lifecycle", LIVE, "counts for the next start or stop"),
    )


_T = "spec.template.spec"
_REPLACED = "machines are replaced one after the other, as updateStrategy says, each with new disks"
# What is changed without making the machine anew.
_IN_PLACE = (f"{_T}.powerState", f"{_T}.resources.cpu", f"{_T}.resources.memoryMiB", f"{_T}.disks[].sizeGiB")
_RIGAUD_SET: Rows = (
    EffectRow("spec.replicas", LIVE, "machines are added"),
    EffectRow("spec.replicas", LOSS, "the machines with the highest numbers are deleted", _DOWN),
    EffectRow("spec.selector", RECREATE, "the selector of a set is fixed: make another set"),
    EffectRow("spec.template", LOSS, _REPLACED),
    EffectRow("spec.template.metadata", LIVE, _LABELS),
    *(row for row in _rigaud_machine(_T) if row.path in _IN_PLACE),
    EffectRow(f"{_T}.disks[]", LIVE, "attached to every machine at once, where the Provider can", _COMING),
    *_each(
        "spec",
        "updateStrategy minReadySeconds revisionHistoryLimit",
        LIVE,
        "the controller of the set follows at once",
    ),
    *_each("spec", "persistentVolumeClaimRetentionPolicy serviceName", NONE, "no effect: the condition Unsupported lists it"),
    EffectRow("spec.ordinals", LOSS, "machines with other numbers are other machines: the old ones are deleted"),
    EffectRow("spec.volumeClaimTemplates", NONE, "a set with claim templates is refused: a provider has no claims; use disks"),
)
_PROVIDER: Rows = (
    EffectRow("spec.type", RECREATE, "another type cannot find the machines of this one: make another Provider"),
    EffectRow("spec.defaults", NONE, "counts when a machine is made"),
    *_each(
        "spec",
        "endpoint credentialSecretRef insecureSkipVerify runtime",
        LIVE,
        "the provider's program is started anew; its machines run on",
    ),
    *_each("spec", "rateLimit healthCheck connectionPooling", LIVE, "counts for the next call; the provider's machines run on"),
)
_RIGAUD_SNAPSHOT: Rows = (
    EffectRow("spec.vmRef", RECREATE, _ONCE),
    EffectRow("spec.snapshotConfig", RECREATE, _ONCE),
    EffectRow("spec.retentionPolicy", LIVE, "counts at once: a snapshot past its age is deleted"),
    EffectRow("spec.schedule", LIVE, "counts for the next snapshot"),
    EffectRow("spec.metadata", LIVE, "a note"),
)

_CLAIM: Rows = (
    EffectRow("spec", LOSS, _NEW_DISK),
    *_size("spec.resources"),
    EffectRow("spec.volumeAttributesClassName", LIVE, "the driver follows"),
)
_READ_AT_START = "machines read it when they start"
_SEALED = EffectRow("immutable", LIVE, "it cannot be changed any more")
_CORE: dict[KindId, Rows] = {
    ("", "ConfigMap"): (*_each("", "data binaryData", RESTART, _READ_AT_START), _SEALED),
    ("", "Secret"): (
        *_each("", "data stringData", RESTART, _READ_AT_START),
        EffectRow("type", RECREATE, "the type of a Secret is fixed: make it anew"),
        _SEALED,
    ),
    ("", "PersistentVolumeClaim"): _CLAIM,
    ("", "Service"): (EffectRow("spec", LIVE, "the Service follows at once; connections through a port that goes away end"),),
    ("", "Namespace"): (EffectRow("spec", NONE, "machines are not touched"),),
    ("", "ServiceAccount"): _each("", "secrets imagePullSecrets automountServiceAccountToken", NONE, "machines are not touched"),
    ("k8s.cni.cncf.io", "NetworkAttachmentDefinition"): (EffectRow("spec", RESTART, _WIRING),),
    ("apps", "ControllerRevision"): (
        EffectRow("data", RECREATE, "a revision is a record and does not change"),
        EffectRow("revision", NONE, "machines are not touched"),
    ),
    ("storage.k8s.io", "StorageClass"): (
        *_each(
            "",
            "provisioner parameters reclaimPolicy volumeBindingMode",
            RECREATE,
            "a class is fixed once made; claims that exist stay as they are",
        ),
        *_each("", "allowVolumeExpansion mountOptions allowedTopologies", LIVE, "counts for claims from now on"),
    ),
    **_of_snapshots(),
}


def _of_group(group: str, rows: dict[str, Rows]) -> dict[KindId, Rows]:
    return {(group, kind): row for kind, row in rows.items()}


CHANGES: dict[KindId, Rows] = {
    **_CORE,
    ("infrastructure.stakater.com", "VirtualMachine"): _STAKATER,
    **_of_group(
        "vitistack.io",
        {
            "Machine": _VITISTACK,
            "MachineClass": (
                EffectRow("spec", RESTART, "machines of the class that do not say it themselves follow, at their next restart"),
                *_each("spec", "category default description displayName gpu", NONE, _UNUSED),
            ),
            "MachineTemplate": (EffectRow("spec", RECREATE, "machines were made with it as it is: make another template and name that"),),
            "NetworkConfiguration": _NETWORK,
        },
    ),
    **_of_group(
        "infra.virtrigaud.io",
        {
            "VirtualMachine": _rigaud_machine("spec"),
            "VMClass": _RIGAUD_CLASS,
            "VMImage": _RIGAUD_IMAGE,
            "VMNetworkAttachment": _RIGAUD_NETWORK,
            "VMPlacementPolicy": (EffectRow("spec", NONE, "counts when a machine is placed"),),
            "VMSnapshot": _RIGAUD_SNAPSHOT,
            "VMClone": _FIXED,
            "VMMigration": _FIXED,
            "VMSet": _RIGAUD_SET,
            "Provider": _PROVIDER,
        },
    ),
    **_of_group(
        "kubevirt.io",
        {
            "VirtualMachine": _machine("spec"),
            "VirtualMachineInstance": _INSTANCE_SPEC,
            "VirtualMachineInstanceReplicaSet": _REPLICA_SET,
            "VirtualMachineInstancePreset": _KEPT,
            "VirtualMachineInstanceMigration": _FIXED,
            "VirtualMachinePool": _pool(flat=True),
            "KubeVirt": _SETTINGS,
        },
    ),
    ("pool.kubevirt.io", "VirtualMachinePool"): _pool(flat=False),
    **_of_group(
        "snapshot.kubevirt.io",
        {"VirtualMachineSnapshot": _FIXED, "VirtualMachineSnapshotContent": _FIXED, "VirtualMachineRestore": _FIXED},
    ),
    ("clone.kubevirt.io", "VirtualMachineClone"): _FIXED,
    ("export.kubevirt.io", "VirtualMachineExport"): _FIXED,
    ("migrations.kubevirt.io", "MigrationPolicy"): _SETTINGS,
    **_of_group(
        "instancetype.kubevirt.io",
        {
            "VirtualMachineInstancetype": _KEPT,
            "VirtualMachineClusterInstancetype": _KEPT,
            "VirtualMachinePreference": _KEPT,
            "VirtualMachineClusterPreference": _KEPT,
        },
    ),
    **_of_group(
        "cdi.kubevirt.io",
        {
            "DataVolume": _DATA_VOLUME,
            "DataSource": _DATA_SOURCE,
            "DataImportCron": _FIXED,
            "VolumeImportSource": _FIXED,
            "VolumeUploadSource": _FIXED,
            "VolumeCloneSource": _FIXED,
            "StorageProfile": _SETTINGS,
            "CDIConfig": _SETTINGS,
            "CDI": _SETTINGS,
            "ObjectTransfer": _FIXED,
        },
    ),
    ("upload.cdi.kubevirt.io", "UploadTokenRequest"): _FIXED,
    ("virtualization.k8c.io", "Image"): _DATA_SOURCE,
}
# The least that the status of an object says once it was carried out: some rules about changes hold from then on.
CARRIED_OUT: dict[KindId, dict[str, object]] = {
    ("infrastructure.stakater.com", "VirtualMachine"): {"vm": {"name": "made"}},
    ("infra.virtrigaud.io", "VirtualMachine"): {"id": "made"},
}


def rows_of(kind: Kind) -> Rows:
    """The rows of a kind, with those of every kind."""
    return (*CHANGES.get((kind.group, kind.kind), ()), *_METADATA)


def judge(kind: Kind, difference: FieldDifference) -> EffectRow | None:
    """The row that tells what a difference does."""
    entry = difference.after if difference.how is ValueChange.ADDED else difference.before
    return best(rows_of(kind), generalize(difference.path), difference.how, entry)


def row_for(kind: Kind, parts: Parts) -> EffectRow | None:
    """The row of a field however it changes; steps through lists may be left out, as users write paths."""
    rows = rows_of(kind)
    return max(
        (row for row in rows if not (row.when or row.having) and _begins(row.parts, parts)), key=lambda row: len(row.parts), default=None
    )


def _begins(pattern: Parts, parts: Path) -> bool:
    plain = tuple(part for part in pattern if part != "[]")
    return plain == tuple(parts)[: len(plain)]
