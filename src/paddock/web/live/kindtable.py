"""The kinds whose objects the console shows, besides machines. A test holds this table against the declarations."""

from paddock.kubernetes.client.target import EVENTS, plain
from paddock.kubernetes.targets import kind_target

DATA_VOLUMES = kind_target("cdi.kubevirt.io", "DataVolume")
DATA_SOURCES = kind_target("cdi.kubevirt.io", "DataSource")
IMPORT_CRONS = kind_target("cdi.kubevirt.io", "DataImportCron")
CLAIMS = kind_target("", "PersistentVolumeClaim")
KUBERMATIC_IMAGES = plain("virtualization.k8c.io", "v1alpha1", "images", "Image")
RIGAUD_IMAGES = plain("infra.virtrigaud.io", "v1beta1", "vmimages", "VMImage")
ATTACHMENTS = kind_target("k8s.cni.cncf.io", "NetworkAttachmentDefinition")
VITISTACK_NETWORKS = plain("vitistack.io", "v1alpha1", "networkconfigurations", "NetworkConfiguration")
RIGAUD_NETWORKS = plain("infra.virtrigaud.io", "v1beta1", "vmnetworkattachments", "VMNetworkAttachment")
SNAPSHOTS = kind_target("snapshot.kubevirt.io", "VirtualMachineSnapshot")
RESTORES = kind_target("snapshot.kubevirt.io", "VirtualMachineRestore")
RIGAUD_SNAPSHOTS = plain("infra.virtrigaud.io", "v1beta1", "vmsnapshots", "VMSnapshot")
VOLUME_SNAPSHOTS = kind_target("snapshot.storage.k8s.io", "VolumeSnapshot")
POOLS = kind_target("pool.kubevirt.io", "VirtualMachinePool")
KUBERMATIC_POOLS = plain("kubevirt.io", "v1alpha1", "virtualmachinepools", "VirtualMachinePool")
REPLICA_SETS = kind_target("kubevirt.io", "VirtualMachineInstanceReplicaSet")
RIGAUD_SETS = plain("infra.virtrigaud.io", "v1beta1", "vmsets", "VMSet")
PROVIDERS = plain("infra.virtrigaud.io", "v1beta1", "providers", "Provider")
MIGRATIONS = kind_target("kubevirt.io", "VirtualMachineInstanceMigration")
RIGAUD_MIGRATIONS = plain("infra.virtrigaud.io", "v1beta1", "vmmigrations", "VMMigration")
CLONES = kind_target("clone.kubevirt.io", "VirtualMachineClone")
RIGAUD_CLONES = plain("infra.virtrigaud.io", "v1beta1", "vmclones", "VMClone")
EXPORTS = kind_target("export.kubevirt.io", "VirtualMachineExport")

EVERY = (
    *(DATA_VOLUMES, DATA_SOURCES, IMPORT_CRONS, CLAIMS, KUBERMATIC_IMAGES, RIGAUD_IMAGES),
    *(ATTACHMENTS, VITISTACK_NETWORKS, RIGAUD_NETWORKS),
    *(SNAPSHOTS, RESTORES, RIGAUD_SNAPSHOTS, VOLUME_SNAPSHOTS),
    *(POOLS, KUBERMATIC_POOLS, REPLICA_SETS, RIGAUD_SETS, PROVIDERS),
    *(MIGRATIONS, RIGAUD_MIGRATIONS, CLONES, RIGAUD_CLONES, EXPORTS, EVENTS),
)
