"""The kinds whose objects the console shows, besides machines. A test holds this table against the declarations."""

from paddock.kubernetes.client.target import EVENTS, plain

DATA_VOLUMES = plain("cdi.kubevirt.io", "v1beta1", "datavolumes", "DataVolume")
DATA_SOURCES = plain("cdi.kubevirt.io", "v1beta1", "datasources", "DataSource")
IMPORT_CRONS = plain("cdi.kubevirt.io", "v1beta1", "dataimportcrons", "DataImportCron")
CLAIMS = plain("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
KUBERMATIC_IMAGES = plain("virtualization.k8c.io", "v1alpha1", "images", "Image")
RIGAUD_IMAGES = plain("infra.virtrigaud.io", "v1beta1", "vmimages", "VMImage")
ATTACHMENTS = plain("k8s.cni.cncf.io", "v1", "network-attachment-definitions", "NetworkAttachmentDefinition")
VITISTACK_NETWORKS = plain("vitistack.io", "v1alpha1", "networkconfigurations", "NetworkConfiguration")
RIGAUD_NETWORKS = plain("infra.virtrigaud.io", "v1beta1", "vmnetworkattachments", "VMNetworkAttachment")
SNAPSHOTS = plain("snapshot.kubevirt.io", "v1beta1", "virtualmachinesnapshots", "VirtualMachineSnapshot")
RESTORES = plain("snapshot.kubevirt.io", "v1beta1", "virtualmachinerestores", "VirtualMachineRestore")
RIGAUD_SNAPSHOTS = plain("infra.virtrigaud.io", "v1beta1", "vmsnapshots", "VMSnapshot")
VOLUME_SNAPSHOTS = plain("snapshot.storage.k8s.io", "v1", "volumesnapshots", "VolumeSnapshot")
POOLS = plain("pool.kubevirt.io", "v1beta1", "virtualmachinepools", "VirtualMachinePool")
KUBERMATIC_POOLS = plain("kubevirt.io", "v1alpha1", "virtualmachinepools", "VirtualMachinePool")
REPLICA_SETS = plain("kubevirt.io", "v1", "virtualmachineinstancereplicasets", "VirtualMachineInstanceReplicaSet")
RIGAUD_SETS = plain("infra.virtrigaud.io", "v1beta1", "vmsets", "VMSet")
PROVIDERS = plain("infra.virtrigaud.io", "v1beta1", "providers", "Provider")
MIGRATIONS = plain("kubevirt.io", "v1", "virtualmachineinstancemigrations", "VirtualMachineInstanceMigration")
RIGAUD_MIGRATIONS = plain("infra.virtrigaud.io", "v1beta1", "vmmigrations", "VMMigration")
CLONES = plain("clone.kubevirt.io", "v1beta1", "virtualmachineclones", "VirtualMachineClone")
RIGAUD_CLONES = plain("infra.virtrigaud.io", "v1beta1", "vmclones", "VMClone")
EXPORTS = plain("export.kubevirt.io", "v1", "virtualmachineexports", "VirtualMachineExport")

EVERY = (
    *(DATA_VOLUMES, DATA_SOURCES, IMPORT_CRONS, CLAIMS, KUBERMATIC_IMAGES, RIGAUD_IMAGES),
    *(ATTACHMENTS, VITISTACK_NETWORKS, RIGAUD_NETWORKS),
    *(SNAPSHOTS, RESTORES, RIGAUD_SNAPSHOTS, VOLUME_SNAPSHOTS),
    *(POOLS, KUBERMATIC_POOLS, REPLICA_SETS, RIGAUD_SETS, PROVIDERS),
    *(MIGRATIONS, RIGAUD_MIGRATIONS, CLONES, RIGAUD_CLONES, EXPORTS, EVENTS),
)
