"""VirtRigaud's kinds, and what they refer to, as the client names them."""

from paddock.base.jsondata import Data
from paddock.dialects.virtrigaud.kinds import (
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
from paddock.dialects.virtrigaud.kinds.provider import Provider
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmclass import VMClass
from paddock.dialects.virtrigaud.kinds.vmclone import VMClone
from paddock.dialects.virtrigaud.kinds.vmimage import VMImage
from paddock.dialects.virtrigaud.kinds.vmmigration import VMMigration
from paddock.dialects.virtrigaud.kinds.vmnetworkattachment import VMNetworkAttachment
from paddock.dialects.virtrigaud.kinds.vmplacementpolicy import VMPlacementPolicy
from paddock.dialects.virtrigaud.kinds.vmset import VMSet
from paddock.dialects.virtrigaud.kinds.vmsnapshot import VMSnapshot
from paddock.kubernetes.client.target import Target, declared
from paddock.kubernetes.core import secret
from paddock.kubernetes.core.secret import Secret
from paddock.kubernetes.targets import kind_target

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
REVISIONS: Target[Data] = kind_target("apps", "ControllerRevision")
POLICIES: Target[VMPlacementPolicy] = declared(vmplacementpolicy.KINDS[0], VMPlacementPolicy)
SECRETS: Target[Secret] = declared(secret.KINDS[0], Secret)
NAMESPACES = kind_target("", "Namespace")
