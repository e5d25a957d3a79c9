"""The kinds that the controller reads and writes, and the names of an instance as a key and in events."""

from paddock.client.target import Data, Key, Target, declared, plain
from paddock.dialects.core import configmap, persistentvolumeclaim, secret
from paddock.dialects.core.configmap import ConfigMap
from paddock.dialects.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.dialects.core.secret import Secret
from paddock.dialects.kubevirt import datavolume_kind, instance, virtualmachine
from paddock.dialects.kubevirt.datavolume_kind import DataVolume
from paddock.dialects.kubevirt.instance import VirtualMachineInstance
from paddock.runtime.reference import InvolvedObject

INSTANCES: Target[VirtualMachineInstance] = declared(instance.KINDS[0], VirtualMachineInstance)
MACHINES: Target[Data] = declared(virtualmachine.KINDS[0], dict)
DATA_VOLUMES: Target[DataVolume] = declared(datavolume_kind.KINDS[0], DataVolume)
CLAIMS: Target[PersistentVolumeClaim] = declared(persistentvolumeclaim.KINDS[0], PersistentVolumeClaim)
VOLUMES = plain("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
SECRETS: Target[Secret] = declared(secret.KINDS[0], Secret)
CONFIG_MAPS: Target[ConfigMap] = declared(configmap.KINDS[0], ConfigMap)
NODES = plain("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES = plain("", "v1", "namespaces", "Namespace", namespaced=False)
QUOTAS = plain("", "v1", "resourcequotas", "ResourceQuota")
LIMIT_RANGES = plain("", "v1", "limitranges", "LimitRange")
PRIORITIES = plain("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)


def key_of(vmi: VirtualMachineInstance) -> Key:
    """The key of an instance."""
    return Key(vmi.metadata.namespace or "", vmi.metadata.name)


def reference_to(vmi: VirtualMachineInstance) -> InvolvedObject:
    """The reference to an instance, for events."""
    meta = vmi.metadata
    return InvolvedObject(
        INSTANCES.api_version, INSTANCES.kind, meta.namespace or "", meta.name, meta.uid or "", meta.resourceVersion or ""
    )
