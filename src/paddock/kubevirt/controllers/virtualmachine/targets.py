"""The kinds that the life of a machine touches, as the client names them."""

from paddock.base.jsondata import Data
from paddock.kubernetes.client.target import Target, declared, plain
from paddock.kubernetes.core import persistentvolumeclaim
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.kinds import datasource, datavolume_kind, instance, kubevirt_cr, virtualmachine
from paddock.kubevirt.kinds.datasource import DataSource
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.kubevirt_cr import KubeVirt
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine

MACHINES: Target[VirtualMachine] = declared(virtualmachine.KINDS[0], VirtualMachine)
MACHINE_DATA: Target[Data] = declared(virtualmachine.KINDS[0], dict)
INSTANCES: Target[VirtualMachineInstance] = declared(instance.KINDS[0], VirtualMachineInstance)
INSTANCE_DATA: Target[Data] = declared(instance.KINDS[0], dict)
DISKS: Target[DataVolume] = declared(datavolume_kind.KINDS[0], DataVolume)
DATA_SOURCES: Target[DataSource] = declared(datasource.KINDS[0], DataSource)
DISK_DATA: Target[Data] = declared(datavolume_kind.KINDS[0], dict)
CLAIMS: Target[PersistentVolumeClaim] = declared(persistentvolumeclaim.KINDS[0], PersistentVolumeClaim)
INSTALLATIONS: Target[KubeVirt] = declared(kubevirt_cr.KINDS[0], KubeVirt)
REVISIONS: Target[Data] = kind_target("apps", "ControllerRevision")
QUOTAS = kind_target("", "ResourceQuota")


def sizing(resource: str) -> Target[Data]:
    """The target of a kind that is named `plural.group`, as `plan.instancetype` asks for it."""
    if resource == REVISIONS.qualified:
        return REVISIONS
    plural, _, group = resource.partition(".")
    version = "v1beta1" if group else "v1"
    return plain(group, version, plural, "", namespaced="cluster" not in plural)
