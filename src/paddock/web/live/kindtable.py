"""The kinds whose objects the console shows, besides machines. A test holds this table against the declarations."""

from paddock.fleet.kinds import FRONTS, MachineKind, named_target
from paddock.kubernetes.client.target import EVENTS, plain
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.plan.changes import adapters
from paddock.kubevirt.plan.changes.adapters import ProviderKinds

DATA_VOLUMES = kind_target("cdi.kubevirt.io", "DataVolume")
DATA_SOURCES = kind_target("cdi.kubevirt.io", "DataSource")
IMPORT_CRONS = kind_target("cdi.kubevirt.io", "DataImportCron")
CLAIMS = kind_target("", "PersistentVolumeClaim")
ATTACHMENTS = kind_target("k8s.cni.cncf.io", "NetworkAttachmentDefinition")
SNAPSHOTS = kind_target("snapshot.kubevirt.io", "VirtualMachineSnapshot")
RESTORES = kind_target("snapshot.kubevirt.io", "VirtualMachineRestore")
VOLUME_SNAPSHOTS = kind_target("snapshot.storage.k8s.io", "VolumeSnapshot")
POOLS = kind_target("pool.kubevirt.io", "VirtualMachinePool")
FLAT_POOLS = plain("kubevirt.io", "v1alpha1", "virtualmachinepools", "VirtualMachinePool")
REPLICA_SETS = kind_target("kubevirt.io", "VirtualMachineInstanceReplicaSet")
MIGRATIONS = kind_target("kubevirt.io", "VirtualMachineInstanceMigration")
CLONES = kind_target("clone.kubevirt.io", "VirtualMachineClone")
EXPORTS = kind_target("export.kubevirt.io", "VirtualMachineExport")

# The kinds of the dialects: images of their own, networks, and for machines of Providers what is around these.
IMAGES = tuple(named_target(each.image_kind) for each in adapters.every() if each.image_kind is not None)
NETWORKS = {named_target(own): front for front in FRONTS if (own := front.adapter.network_kind) is not None}
OWN_SNAPSHOTS = {named_target(own): front for front in FRONTS if (own := front.adapter.snapshot_kind) is not None}
OWN_CLONES = {named_target(own): front for front in FRONTS if (own := front.adapter.clone_kind) is not None}
_OF_PROVIDERS: tuple[tuple[MachineKind, ProviderKinds], ...] = tuple(
    (front, around) for front in FRONTS if (around := front.adapter.provider_kinds) is not None
)
PROVIDERS = tuple(named_target(around.providers) for _, around in _OF_PROVIDERS)
PROVIDER_IMAGES = tuple(named_target(around.images) for _, around in _OF_PROVIDERS)
PROVIDER_NETWORKS = {named_target(around.networks): front for front, around in _OF_PROVIDERS}
SETS = tuple(named_target(around.sets) for _, around in _OF_PROVIDERS)
OWN_MIGRATIONS = {named_target(around.migrations): front for front, around in _OF_PROVIDERS}

EVERY = (
    *(DATA_VOLUMES, DATA_SOURCES, IMPORT_CRONS, CLAIMS, *IMAGES, *PROVIDER_IMAGES),
    *(ATTACHMENTS, *NETWORKS, *PROVIDER_NETWORKS),
    *(SNAPSHOTS, RESTORES, *OWN_SNAPSHOTS, VOLUME_SNAPSHOTS),
    *(POOLS, FLAT_POOLS, REPLICA_SETS, *SETS, *PROVIDERS),
    *(MIGRATIONS, *OWN_MIGRATIONS, CLONES, *OWN_CLONES, EXPORTS, EVENTS),
)
