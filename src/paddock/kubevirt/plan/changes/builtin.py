"""The effects of changes of Kubernetes' own kinds (see `paddock.kubevirt.plan.changes.table`)."""

from paddock.kubevirt.plan.changes.effects import EffectRow
from paddock.kubevirt.plan.changes.rows import LIVE, LOSS, NEW_DISK, NONE, RECREATE, RESTART, WIRING, Effects, Rows, members, size

_CLAIM: Rows = (
    EffectRow("spec", LOSS, NEW_DISK),
    *size("spec.resources"),
    EffectRow("spec.volumeAttributesClassName", LIVE, "the driver follows"),
)
_READ_AT_START = "machines read it when they start"
_SEALED = EffectRow("immutable", LIVE, "it cannot be changed any more")


def _of_snapshots() -> Effects:
    """Return the rows of snapshots: content does not change, and a class applies to future ones."""
    group = "snapshot.storage.k8s.io"
    return {
        (group, "VolumeSnapshot"): (EffectRow("spec", RECREATE, "a snapshot shows one moment and does not change"),),
        (group, "VolumeSnapshotContent"): (EffectRow("spec", NONE, "machines are not touched"),),
        (group, "VolumeSnapshotClass"): members("", "driver parameters deletionPolicy", LIVE, "counts for snapshots from now on"),
    }


EFFECTS: Effects = {
    ("", "ConfigMap"): (*members("", "data binaryData", RESTART, _READ_AT_START), _SEALED),
    ("", "Secret"): (
        *members("", "data stringData", RESTART, _READ_AT_START),
        EffectRow("type", RECREATE, "the type of a Secret is fixed: make it anew"),
        _SEALED,
    ),
    ("", "PersistentVolumeClaim"): _CLAIM,
    ("", "Service"): (EffectRow("spec", LIVE, "the Service follows at once; connections through a port that goes away end"),),
    ("", "Namespace"): (EffectRow("spec", NONE, "machines are not touched"),),
    ("", "ServiceAccount"): members("", "secrets imagePullSecrets automountServiceAccountToken", NONE, "machines are not touched"),
    ("k8s.cni.cncf.io", "NetworkAttachmentDefinition"): (EffectRow("spec", RESTART, WIRING),),
    ("apps", "ControllerRevision"): (
        EffectRow("data", RECREATE, "a revision is a record and does not change"),
        EffectRow("revision", NONE, "machines are not touched"),
    ),
    ("storage.k8s.io", "StorageClass"): (
        *members(
            "",
            "provisioner parameters reclaimPolicy volumeBindingMode",
            RECREATE,
            "a class is fixed once made; claims that exist stay as they are",
        ),
        *members("", "allowVolumeExpansion mountOptions allowedTopologies", LIVE, "counts for claims from now on"),
    ),
    **_of_snapshots(),
}
