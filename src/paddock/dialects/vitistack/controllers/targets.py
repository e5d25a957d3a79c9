"""The kinds that the controllers touch, and of each as much as they read."""

from paddock.base.jsondata import Data
from paddock.dialects.vitistack.kinds import machine, machineclass, machinetemplate, networkconfiguration
from paddock.dialects.vitistack.kinds.machine import Machine
from paddock.dialects.vitistack.kinds.machineclass import MachineClass
from paddock.dialects.vitistack.kinds.machinetemplate import MachineTemplate
from paddock.dialects.vitistack.kinds.networkconfiguration import NetworkConfiguration
from paddock.dialects.vitistack.plan.claims import ExistingClaim
from paddock.dialects.vitistack.plan.observed import Instance, Vm
from paddock.kubernetes.client.target import Target, declared
from paddock.kubernetes.core import configmap, networkattachment, persistentvolumeclaim, secret, storageclass
from paddock.kubernetes.core.configmap import ConfigMap
from paddock.kubernetes.core.networkattachment import NetworkAttachmentDefinition
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.core.storageclass import StorageClass
from paddock.kubevirt.kinds import datavolume_kind, instance, virtualmachine

MACHINES: Target[Machine] = declared(machine.KINDS[0], Machine)
NETWORKS: Target[NetworkConfiguration] = declared(networkconfiguration.KINDS[0], NetworkConfiguration)
TEMPLATES: Target[MachineTemplate] = declared(machinetemplate.KINDS[0], MachineTemplate)
MACHINE_CLASSES: Target[MachineClass] = declared(machineclass.KINDS[0], MachineClass)
ATTACHMENTS: Target[NetworkAttachmentDefinition] = declared(networkattachment.KINDS[0], NetworkAttachmentDefinition)
SECRETS: Target[Secret] = declared(secret.KINDS[0], Secret)
CONFIG_MAPS: Target[ConfigMap] = declared(configmap.KINDS[0], ConfigMap)
CLASSES: Target[StorageClass] = declared(storageclass.KINDS[0], StorageClass)
VMS: Target[Vm] = declared(virtualmachine.KINDS[0], Vm)
INSTANCES: Target[Instance] = declared(instance.KINDS[0], Instance)
CLAIMS: Target[ExistingClaim] = declared(persistentvolumeclaim.KINDS[0], ExistingClaim)
VOLUMES: Target[Data] = declared(datavolume_kind.KINDS[0], dict)
CLAIM_DATA: Target[Data] = declared(persistentvolumeclaim.KINDS[0], dict)
VM_DATA: Target[Data] = declared(virtualmachine.KINDS[0], dict)

# Who applies, and the source of events.
MANAGER = "paddock-vitistack"
