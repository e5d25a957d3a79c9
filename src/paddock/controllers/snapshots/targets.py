"""The kinds that are looked at and written here."""

from paddock.client.target import Target, plain
from paddock.dialects.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.dialects.core.volumesnapshot import VolumeSnapshot
from paddock.dialects.kubevirt.restore import VirtualMachineRestore
from paddock.dialects.kubevirt.snapshot import VirtualMachineSnapshot, VirtualMachineSnapshotContent
from paddock.dialects.kubevirt.virtualmachine import VirtualMachine

DRIVER = "paddock.dev/directory"
CLASS_NAME = "paddock"
_GROUP, _VERSION = "snapshot.kubevirt.io", "v1beta1"

SNAPSHOTS = Target(_GROUP, _VERSION, "virtualmachinesnapshots", "VirtualMachineSnapshot", VirtualMachineSnapshot)
CONTENTS = Target(_GROUP, _VERSION, "virtualmachinesnapshotcontents", "VirtualMachineSnapshotContent", VirtualMachineSnapshotContent)
RESTORES = Target(_GROUP, _VERSION, "virtualmachinerestores", "VirtualMachineRestore", VirtualMachineRestore)
MACHINES = Target("kubevirt.io", "v1", "virtualmachines", "VirtualMachine", VirtualMachine)
INSTANCES = plain("kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance")
CLAIMS = Target("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", PersistentVolumeClaim)
DATA_VOLUMES = plain("cdi.kubevirt.io", "v1beta1", "datavolumes", "DataVolume")
VOLUME_SNAPSHOTS = Target("snapshot.storage.k8s.io", "v1", "volumesnapshots", "VolumeSnapshot", VolumeSnapshot)
VOLUME_CONTENTS = plain("snapshot.storage.k8s.io", "v1", "volumesnapshotcontents", "VolumeSnapshotContent", namespaced=False)
