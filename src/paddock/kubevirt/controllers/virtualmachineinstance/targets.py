"""The kinds that the controller reads and writes, and the names of an instance as a key and in events."""

from paddock.base.jsondata import Data
from paddock.kubernetes.client.target import Key, Target, declared
from paddock.kubernetes.core import configmap, persistentvolumeclaim, secret
from paddock.kubernetes.core.configmap import ConfigMap
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.runtime.reference import InvolvedObject
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.kinds import datavolume_kind, instance, virtualmachine
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.instance import VirtualMachineInstance

INSTANCES: Target[VirtualMachineInstance] = declared(instance.KINDS[0], VirtualMachineInstance)
MACHINES: Target[Data] = declared(virtualmachine.KINDS[0], dict)
DATA_VOLUMES: Target[DataVolume] = declared(datavolume_kind.KINDS[0], DataVolume)
CLAIMS: Target[PersistentVolumeClaim] = declared(persistentvolumeclaim.KINDS[0], PersistentVolumeClaim)
VOLUMES = kind_target("", "PersistentVolume")
SECRETS: Target[Secret] = declared(secret.KINDS[0], Secret)
CONFIG_MAPS: Target[ConfigMap] = declared(configmap.KINDS[0], ConfigMap)
NODES = kind_target("", "Node")
NAMESPACES = kind_target("", "Namespace")
QUOTAS = kind_target("", "ResourceQuota")
LIMIT_RANGES = kind_target("", "LimitRange")
PRIORITIES = kind_target("scheduling.k8s.io", "PriorityClass")


def key_of(vmi: VirtualMachineInstance) -> Key:
    """The key of an instance."""
    return Key(vmi.metadata.namespace or "", vmi.metadata.name)


def reference_to(vmi: VirtualMachineInstance) -> InvolvedObject:
    """The reference to an instance, for events."""
    meta = vmi.metadata
    return InvolvedObject(
        INSTANCES.api_version, INSTANCES.kind, meta.namespace or "", meta.name, meta.uid or "", meta.resourceVersion or ""
    )
