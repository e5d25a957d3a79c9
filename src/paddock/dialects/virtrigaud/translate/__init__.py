"""VirtRigaud's machine to and from KubeVirt (docs/design/0003-virtrigaud-on-kubevirt.md).

`to_kubevirt` composes a machine with its class, image, networks and provider, all looked up in the world. A reference that leads
nowhere raises `MissingReference` when the world is complete (the caller holds the machine until the object is there); in an
incomplete world it is a loss that says what has to be there. Without its class a machine has no size, so that one is always
raised.
"""

from paddock.dialects.virtrigaud.translate.back import from_kubevirt
from paddock.dialects.virtrigaud.translate.errors import (
    EncryptionRequired,
    MissingReference,
    MissingReferences,
    NothingToBoot,
    UntranslatableVirtualMachine,
)
from paddock.dialects.virtrigaud.translate.forward import to_kubevirt

__all__ = [
    "EncryptionRequired",
    "MissingReference",
    "MissingReferences",
    "NothingToBoot",
    "UntranslatableVirtualMachine",
    "from_kubevirt",
    "to_kubevirt",
]
