"""The kinds whose objects the console shows, besides machines. A test holds this table against the declarations."""

from paddock.kubernetes.client.target import EVENTS
from paddock.kubernetes.targets import kind_target

DATA_VOLUMES = kind_target("cdi.kubevirt.io", "DataVolume")
DATA_SOURCES = kind_target("cdi.kubevirt.io", "DataSource")
IMPORT_CRONS = kind_target("cdi.kubevirt.io", "DataImportCron")
CLAIMS = kind_target("", "PersistentVolumeClaim")
KUBERMATIC_IMAGES = kind_target("virtualization.k8c.io", "Image")
RIGAUD_IMAGES = kind_target("infra.virtrigaud.io", "VMImage")
ATTACHMENTS = kind_target("k8s.cni.cncf.io", "NetworkAttachmentDefinition")
VITISTACK_NETWORKS = kind_target("vitistack.io", "NetworkConfiguration")
RIGAUD_NETWORKS = kind_target("infra.virtrigaud.io", "VMNetworkAttachment")
SNAPSHOTS = kind_target("snapshot.kubevirt.io", "VirtualMachineSnapshot")
RESTORES = kind_target("snapshot.kubevirt.io", "VirtualMachineRestore")
RIGAUD_SNAPSHOTS = kind_target("infra.virtrigaud.io", "VMSnapshot")
VOLUME_SNAPSHOTS = kind_target("snapshot.storage.k8s.io", "VolumeSnapshot")
POOLS = kind_target("pool.kubevirt.io", "VirtualMachinePool")
KUBERMATIC_POOLS = kind_target("kubevirt.io", "VirtualMachinePool")
REPLICA_SETS = kind_target("kubevirt.io", "VirtualMachineInstanceReplicaSet")
RIGAUD_SETS = kind_target("infra.virtrigaud.io", "VMSet")
PROVIDERS = kind_target("infra.virtrigaud.io", "Provider")
MIGRATIONS = kind_target("kubevirt.io", "VirtualMachineInstanceMigration")
RIGAUD_MIGRATIONS = kind_target("infra.virtrigaud.io", "VMMigration")
CLONES = kind_target("clone.kubevirt.io", "VirtualMachineClone")
RIGAUD_CLONES = kind_target("infra.virtrigaud.io", "VMClone")
EXPORTS = kind_target("export.kubevirt.io", "VirtualMachineExport")

EVERY = (
    *(DATA_VOLUMES, DATA_SOURCES, IMPORT_CRONS, CLAIMS, KUBERMATIC_IMAGES, RIGAUD_IMAGES),
    *(ATTACHMENTS, VITISTACK_NETWORKS, RIGAUD_NETWORKS),
    *(SNAPSHOTS, RESTORES, RIGAUD_SNAPSHOTS, VOLUME_SNAPSHOTS),
    *(POOLS, KUBERMATIC_POOLS, REPLICA_SETS, RIGAUD_SETS, PROVIDERS),
    *(MIGRATIONS, RIGAUD_MIGRATIONS, CLONES, RIGAUD_CLONES, EXPORTS, EVENTS),
)
