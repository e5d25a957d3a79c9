"""The kinds that a Stakater machine is made of and refers to, as the client names them."""

from paddock.base.jsondata import Data
from paddock.dialects.stakater.kinds import virtualmachine
from paddock.dialects.stakater.kinds.virtualmachine import StakaterVirtualMachine
from paddock.dialects.stakater.plan import disks
from paddock.kubernetes.client.target import Target, declared
from paddock.kubernetes.core import networkattachment, persistentvolumeclaim, service, storageclass
from paddock.kubernetes.core.networkattachment import NetworkAttachmentDefinition
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.core.service import Service
from paddock.kubernetes.core.storageclass import StorageClass
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.kinds import cdiconfig, datasource, datavolume_kind, instance, kubevirt_cr
from paddock.kubevirt.kinds import virtualmachine as kubevirt
from paddock.kubevirt.kinds.cdiconfig import CDIConfig
from paddock.kubevirt.kinds.datasource import DataSource
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.instance import VirtualMachineInstance

FRONTS: Target[StakaterVirtualMachine] = declared(virtualmachine.KINDS[0], StakaterVirtualMachine)
FRONT_DATA: Target[Data] = declared(virtualmachine.KINDS[0], dict)
MACHINES: Target[kubevirt.VirtualMachine] = declared(kubevirt.KINDS[0], kubevirt.VirtualMachine)
MACHINE_DATA: Target[Data] = declared(kubevirt.KINDS[0], dict)
INSTANCES: Target[VirtualMachineInstance] = declared(instance.KINDS[0], VirtualMachineInstance)
SERVICES: Target[Service] = declared(service.KINDS[0], Service)
SERVICE_DATA: Target[Data] = declared(service.KINDS[0], dict)
# Plain: what is in a Secret is read into nothing.
SECRETS: Target[Data] = kind_target("", "Secret")
DISKS: Target[DataVolume] = declared(datavolume_kind.KINDS[0], DataVolume)
DISK_DATA: Target[Data] = declared(datavolume_kind.KINDS[0], dict)
CLAIMS: Target[PersistentVolumeClaim] = declared(persistentvolumeclaim.KINDS[0], PersistentVolumeClaim)
CLAIM_DATA: Target[Data] = declared(persistentvolumeclaim.KINDS[0], dict)
CLASSES: Target[StorageClass] = declared(storageclass.KINDS[0], StorageClass)
SOURCES: Target[DataSource] = declared(datasource.KINDS[0], DataSource)
DEFINITIONS: Target[NetworkAttachmentDefinition] = declared(networkattachment.KINDS[0], NetworkAttachmentDefinition)
INSTALLATIONS: Target[Data] = declared(kubevirt_cr.KINDS[0], dict)
CONFIGS: Target[CDIConfig] = declared(cdiconfig.KINDS[0], CDIConfig)
ROLES = kind_target(disks.RBAC_GROUP, "Role")
ROLE_BINDINGS = kind_target(disks.RBAC_GROUP, "RoleBinding")
