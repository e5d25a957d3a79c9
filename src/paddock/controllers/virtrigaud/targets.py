"""VirtRigaud's kinds, and what they refer to, as the client names them."""

from paddock.client.target import Data, Target, declared, plain
from paddock.dialects.core import secret
from paddock.dialects.core.secret import Secret
from paddock.dialects.virtrigaud import (
    provider,
    virtualmachine,
    vmclass,
    vmclone,
    vmimage,
    vmmigration,
    vmnetworkattachment,
    vmplacementpolicy,
    vmset,
    vmsnapshot,
)
from paddock.dialects.virtrigaud.provider import Provider
from paddock.dialects.virtrigaud.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.vmclass import VMClass
from paddock.dialects.virtrigaud.vmclone import VMClone
from paddock.dialects.virtrigaud.vmimage import VMImage
from paddock.dialects.virtrigaud.vmmigration import VMMigration
from paddock.dialects.virtrigaud.vmnetworkattachment import VMNetworkAttachment
from paddock.dialects.virtrigaud.vmplacementpolicy import VMPlacementPolicy
from paddock.dialects.virtrigaud.vmset import VMSet
from paddock.dialects.virtrigaud.vmsnapshot import VMSnapshot

MACHINES: Target[VirtrigaudVirtualMachine] = declared(virtualmachine.KINDS[0], VirtrigaudVirtualMachine)
MACHINE_DATA: Target[Data] = declared(virtualmachine.KINDS[0], dict)
CLASSES: Target[VMClass] = declared(vmclass.KINDS[0], VMClass)
IMAGES: Target[VMImage] = declared(vmimage.KINDS[0], VMImage)
NETWORKS: Target[VMNetworkAttachment] = declared(vmnetworkattachment.KINDS[0], VMNetworkAttachment)
PROVIDERS: Target[Provider] = declared(provider.KINDS[0], Provider)
SNAPSHOTS: Target[VMSnapshot] = declared(vmsnapshot.KINDS[0], VMSnapshot)
SNAPSHOT_DATA: Target[Data] = declared(vmsnapshot.KINDS[0], dict)
CLONES: Target[VMClone] = declared(vmclone.KINDS[0], VMClone)
MIGRATIONS: Target[VMMigration] = declared(vmmigration.KINDS[0], VMMigration)
SETS: Target[VMSet] = declared(vmset.KINDS[0], VMSet)
REVISIONS: Target[Data] = plain("apps", "v1", "controllerrevisions", "ControllerRevision")
POLICIES: Target[VMPlacementPolicy] = declared(vmplacementpolicy.KINDS[0], VMPlacementPolicy)
SECRETS: Target[Secret] = declared(secret.KINDS[0], Secret)
NAMESPACES = plain("", "v1", "namespaces", "Namespace", namespaced=False)
