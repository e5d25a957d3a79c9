"""The kinds of objects that the driver reads and writes."""

from paddock.base.jsondata import Data
from paddock.kubernetes.client.target import Target, declared, plain
from paddock.kubernetes.core import networkattachment, persistentvolumeclaim, secret, storageclass
from paddock.kubernetes.core.networkattachment import NetworkAttachmentDefinition
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.core.storageclass import StorageClass
from paddock.kubevirt.kinds import clone, datasource, datavolume_kind, export, instance, kubevirt_cr, restore, snapshot, virtualmachine
from paddock.kubevirt.kinds.clone import VirtualMachineClone
from paddock.kubevirt.kinds.datasource import DataSource
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.export import VirtualMachineExport
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.kubevirt_cr import KubeVirt
from paddock.kubevirt.kinds.restore import VirtualMachineRestore
from paddock.kubevirt.kinds.snapshot import VirtualMachineSnapshot
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine

MACHINES: Target[VirtualMachine] = declared(virtualmachine.KINDS[0], VirtualMachine)
INSTANCES: Target[VirtualMachineInstance] = declared(instance.KINDS[0], VirtualMachineInstance)
DATA_VOLUMES: Target[DataVolume] = declared(datavolume_kind.KINDS[0], DataVolume)
DATA_SOURCES: Target[DataSource] = declared(datasource.KINDS[0], DataSource)
CLAIMS: Target[PersistentVolumeClaim] = declared(persistentvolumeclaim.KINDS[0], PersistentVolumeClaim)
SECRETS: Target[Secret] = declared(secret.KINDS[0], Secret)
DEFINITIONS: Target[NetworkAttachmentDefinition] = declared(networkattachment.KINDS[0], NetworkAttachmentDefinition)
SNAPSHOTS: Target[VirtualMachineSnapshot] = declared(snapshot.KINDS[0], VirtualMachineSnapshot)
RESTORES: Target[VirtualMachineRestore] = declared(restore.KINDS[0], VirtualMachineRestore)
EXPORTS: Target[VirtualMachineExport] = declared(export.KINDS[0], VirtualMachineExport)
CLONES: Target[VirtualMachineClone] = declared(clone.KINDS[0], VirtualMachineClone)
INSTALLATIONS: Target[KubeVirt] = declared(kubevirt_cr.KINDS[0], KubeVirt)
STORAGE_CLASSES: Target[StorageClass] = declared(storageclass.KINDS[0], StorageClass)
POLICIES: Target[Data] = plain("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
NODES: Target[Data] = plain("", "v1", "nodes", "Node", namespaced=False)
SNAPSHOT_CLASSES: Target[Data] = plain("snapshot.storage.k8s.io", "v1", "volumesnapshotclasses", "VolumeSnapshotClass", namespaced=False)
# The path of actions on machines and on what runs.
ACTIONS = "/apis/subresources.kubevirt.io/v1"
