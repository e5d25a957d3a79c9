"""The kinds that are looked at and written here."""

from paddock.client.target import Target, plain
from paddock.dialects.core.secret import Secret
from paddock.dialects.kubevirt.export import VirtualMachineExport
from paddock.dialects.kubevirt.snapshot import VirtualMachineSnapshot, VirtualMachineSnapshotContent
from paddock.dialects.kubevirt.virtualmachine import VirtualMachine

EXPORTS = Target("export.kubevirt.io", "v1", "virtualmachineexports", "VirtualMachineExport", VirtualMachineExport)
MACHINES = Target("kubevirt.io", "v1", "virtualmachines", "VirtualMachine", VirtualMachine)
CLAIMS = plain("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
SECRETS = Target("", "v1", "secrets", "Secret", Secret)
_GROUP, _VERSION = "snapshot.kubevirt.io", "v1beta1"
SNAPSHOTS = Target(_GROUP, _VERSION, "virtualmachinesnapshots", "VirtualMachineSnapshot", VirtualMachineSnapshot)
CONTENTS = Target(_GROUP, _VERSION, "virtualmachinesnapshotcontents", "VirtualMachineSnapshotContent", VirtualMachineSnapshotContent)
VOLUME_SNAPSHOTS = plain("snapshot.storage.k8s.io", "v1", "volumesnapshots", "VolumeSnapshot")
