"""The kinds that the controllers of snapshots, restores and backups read and write."""

from paddock.base import ownnames
from paddock.base.jsondata import Data
from paddock.kubernetes.client.target import Target, declared
from paddock.kubernetes.core import persistentvolumeclaim, volumesnapshot
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.core.volumesnapshot import VolumeSnapshot
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.kinds import backup, datavolume_kind, instance, kubevirt_cr, restore, snapshot, virtualmachine
from paddock.kubevirt.kinds.backup import VirtualMachineBackup, VirtualMachineBackupTracker
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.restore import VirtualMachineRestore
from paddock.kubevirt.kinds.snapshot import VirtualMachineSnapshot, VirtualMachineSnapshotContent
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine

DRIVER = ownnames.DIRECTORY.name
CLASS_NAME = "paddock"

SNAPSHOTS: Target[VirtualMachineSnapshot] = declared(snapshot.KINDS[0], VirtualMachineSnapshot)
CONTENTS: Target[VirtualMachineSnapshotContent] = declared(snapshot.KINDS[1], VirtualMachineSnapshotContent)
RESTORES: Target[VirtualMachineRestore] = declared(restore.KINDS[0], VirtualMachineRestore)
MACHINES: Target[VirtualMachine] = declared(virtualmachine.KINDS[0], VirtualMachine)
INSTANCES: Target[Data] = declared(instance.KINDS[0], dict)
CLAIMS: Target[PersistentVolumeClaim] = declared(persistentvolumeclaim.KINDS[0], PersistentVolumeClaim)
DATA_VOLUMES: Target[Data] = declared(datavolume_kind.KINDS[0], dict)
VOLUME_SNAPSHOTS: Target[VolumeSnapshot] = declared(volumesnapshot.KINDS[0], VolumeSnapshot)
REVISIONS: Target[Data] = kind_target("apps", "ControllerRevision")
BACKUPS: Target[VirtualMachineBackup] = declared(backup.KINDS[0], VirtualMachineBackup)
TRACKERS: Target[VirtualMachineBackupTracker] = declared(backup.KINDS[1], VirtualMachineBackupTracker)
DECLARED_INSTANCES: Target[VirtualMachineInstance] = declared(instance.KINDS[0], VirtualMachineInstance)
INSTALLATIONS: Target[Data] = declared(kubevirt_cr.KINDS[0], dict)
NAMESPACES = kind_target("", "Namespace")
VOLUME_CONTENTS = kind_target("snapshot.storage.k8s.io", "VolumeSnapshotContent")
