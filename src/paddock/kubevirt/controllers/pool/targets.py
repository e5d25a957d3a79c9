"""The kinds that a pool touches, as the client names them."""

from paddock.base.jsondata import Data
from paddock.kubernetes.client.target import Target, declared
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.kinds import datavolume_kind, instance, pool, virtualmachine
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine

POOLS: Target[VirtualMachinePool] = declared(pool.KINDS[0], VirtualMachinePool)
MACHINES: Target[VirtualMachine] = declared(virtualmachine.KINDS[0], VirtualMachine)
MACHINE_DATA: Target[Data] = declared(virtualmachine.KINDS[0], dict)
INSTANCES: Target[VirtualMachineInstance] = declared(instance.KINDS[0], VirtualMachineInstance)
INSTANCE_DATA: Target[Data] = declared(instance.KINDS[0], dict)
DISKS: Target[Data] = declared(datavolume_kind.KINDS[0], dict)
CLAIMS: Target[Data] = kind_target("", "PersistentVolumeClaim")
REVISIONS: Target[Data] = kind_target("apps", "ControllerRevision")
NODES = kind_target("", "Node")
