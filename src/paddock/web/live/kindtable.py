"""The kinds whose objects the console shows, besides machines. A test holds this table against the declarations."""

from paddock.fleet.kinds import FRONTS, MachineKind, named_target
from paddock.kubernetes.client.target import EVENTS, plain
from paddock.kubevirt.plan.changes import adapters
from paddock.kubevirt.plan.changes.adapters import ProviderKinds

DATA_VOLUMES = plain("cdi.kubevirt.io", "v1beta1", "datavolumes", "DataVolume")
DATA_SOURCES = plain("cdi.kubevirt.io", "v1beta1", "datasources", "DataSource")
IMPORT_CRONS = plain("cdi.kubevirt.io", "v1beta1", "dataimportcrons", "DataImportCron")
CLAIMS = plain("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
ATTACHMENTS = plain("k8s.cni.cncf.io", "v1", "network-attachment-definitions", "NetworkAttachmentDefinition")
SNAPSHOTS = plain("snapshot.kubevirt.io", "v1beta1", "virtualmachinesnapshots", "VirtualMachineSnapshot")
RESTORES = plain("snapshot.kubevirt.io", "v1beta1", "virtualmachinerestores", "VirtualMachineRestore")
VOLUME_SNAPSHOTS = plain("snapshot.storage.k8s.io", "v1", "volumesnapshots", "VolumeSnapshot")
POOLS = plain("pool.kubevirt.io", "v1beta1", "virtualmachinepools", "VirtualMachinePool")
FLAT_POOLS = plain("kubevirt.io", "v1alpha1", "virtualmachinepools", "VirtualMachinePool")
REPLICA_SETS = plain("kubevirt.io", "v1", "virtualmachineinstancereplicasets", "VirtualMachineInstanceReplicaSet")
MIGRATIONS = plain("kubevirt.io", "v1", "virtualmachineinstancemigrations", "VirtualMachineInstanceMigration")
CLONES = plain("clone.kubevirt.io", "v1beta1", "virtualmachineclones", "VirtualMachineClone")
EXPORTS = plain("export.kubevirt.io", "v1", "virtualmachineexports", "VirtualMachineExport")

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
