"""The kinds that the controllers of backups read and write."""

from paddock.base.jsondata import Data
from paddock.kubernetes.client.target import Target, declared
from paddock.kubernetes.core import persistentvolumeclaim
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.kinds import backup, instance, kubevirt_cr, virtualmachine
from paddock.kubevirt.kinds.backup import VirtualMachineBackup, VirtualMachineBackupTracker
from paddock.kubevirt.kinds.instance import VirtualMachineInstance

BACKUPS: Target[VirtualMachineBackup] = declared(backup.KINDS[0], VirtualMachineBackup)
TRACKERS: Target[VirtualMachineBackupTracker] = declared(backup.KINDS[1], VirtualMachineBackupTracker)
MACHINES: Target[Data] = declared(virtualmachine.KINDS[0], dict)
INSTANCES: Target[VirtualMachineInstance] = declared(instance.KINDS[0], VirtualMachineInstance)
CLAIMS: Target[PersistentVolumeClaim] = declared(persistentvolumeclaim.KINDS[0], PersistentVolumeClaim)
INSTALLATIONS: Target[Data] = declared(kubevirt_cr.KINDS[0], dict)
NAMESPACES = kind_target("", "Namespace")
