"""VirtRigaud's kinds, and what they refer to, as the client names them."""

from paddock.client.target import Data, Target, declared
from paddock.dialects.core import secret
from paddock.dialects.core.secret import Secret
from paddock.dialects.virtrigaud import provider, virtualmachine, vmclass, vmimage, vmnetworkattachment
from paddock.dialects.virtrigaud.provider import Provider
from paddock.dialects.virtrigaud.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.vmclass import VMClass
from paddock.dialects.virtrigaud.vmimage import VMImage
from paddock.dialects.virtrigaud.vmnetworkattachment import VMNetworkAttachment

MACHINES: Target[VirtrigaudVirtualMachine] = declared(virtualmachine.KINDS[0], VirtrigaudVirtualMachine)
MACHINE_DATA: Target[Data] = declared(virtualmachine.KINDS[0], dict)
CLASSES: Target[VMClass] = declared(vmclass.KINDS[0], VMClass)
CLASS_DATA: Target[Data] = declared(vmclass.KINDS[0], dict)
IMAGES: Target[VMImage] = declared(vmimage.KINDS[0], VMImage)
IMAGE_DATA: Target[Data] = declared(vmimage.KINDS[0], dict)
NETWORKS: Target[VMNetworkAttachment] = declared(vmnetworkattachment.KINDS[0], VMNetworkAttachment)
NETWORK_DATA: Target[Data] = declared(vmnetworkattachment.KINDS[0], dict)
PROVIDERS: Target[Provider] = declared(provider.KINDS[0], Provider)
PROVIDER_DATA: Target[Data] = declared(provider.KINDS[0], dict)
SECRETS: Target[Secret] = declared(secret.KINDS[0], Secret)

BY_KIND: dict[str, Target[object]] = {each.kind: each for each in (PROVIDERS, CLASSES, IMAGES, NETWORKS, SECRETS)}  # type: ignore[misc]
