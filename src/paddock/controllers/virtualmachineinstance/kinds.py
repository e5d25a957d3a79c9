"""The kinds that are looked at and written here."""

from paddock.client.target import Target, plain
from paddock.dialects.core.configmap import ConfigMap
from paddock.dialects.core.networkattachment import NetworkAttachmentDefinition
from paddock.dialects.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.dialects.core.secret import Secret
from paddock.dialects.kubevirt.datavolume_kind import DataVolume
from paddock.dialects.kubevirt.instance import VirtualMachineInstance

INSTANCES = Target("kubevirt.io", "v1", "virtualmachineinstances", "VirtualMachineInstance", VirtualMachineInstance)
MACHINES = plain("kubevirt.io", "v1", "virtualmachines", "VirtualMachine")
DATA_VOLUMES = Target("cdi.kubevirt.io", "v1beta1", "datavolumes", "DataVolume", DataVolume)
CLAIMS = Target("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", PersistentVolumeClaim)
SECRETS = Target("", "v1", "secrets", "Secret", Secret)
CONFIG_MAPS = Target("", "v1", "configmaps", "ConfigMap", ConfigMap)
ATTACHMENTS = Target("k8s.cni.cncf.io", "v1", "network-attachment-definitions", "NetworkAttachmentDefinition", NetworkAttachmentDefinition)
NODES = plain("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES = plain("", "v1", "namespaces", "Namespace", namespaced=False)
PRIORITIES = plain("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
