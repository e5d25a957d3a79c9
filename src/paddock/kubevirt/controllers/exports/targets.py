"""The kinds that the controllers of exports read and write."""

from paddock.base.jsondata import Data
from paddock.kubernetes.client.target import Target, declared
from paddock.kubernetes.core import persistentvolumeclaim, secret, volumesnapshot
from paddock.kubernetes.core.secret import Secret
from paddock.kubevirt.kinds import export, snapshot, virtualmachine
from paddock.kubevirt.kinds.export import VirtualMachineExport
from paddock.kubevirt.kinds.snapshot import VirtualMachineSnapshot, VirtualMachineSnapshotContent
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine

EXPORTS: Target[VirtualMachineExport] = declared(export.KINDS[0], VirtualMachineExport)
MACHINES: Target[VirtualMachine] = declared(virtualmachine.KINDS[0], VirtualMachine)
CLAIMS: Target[Data] = declared(persistentvolumeclaim.KINDS[0], dict)
SECRETS: Target[Secret] = declared(secret.KINDS[0], Secret)
SNAPSHOTS: Target[VirtualMachineSnapshot] = declared(snapshot.KINDS[0], VirtualMachineSnapshot)
CONTENTS: Target[VirtualMachineSnapshotContent] = declared(snapshot.KINDS[1], VirtualMachineSnapshotContent)
VOLUME_SNAPSHOTS: Target[Data] = declared(volumesnapshot.KINDS[0], dict)
