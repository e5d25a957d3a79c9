"""A machine as a request describes it, and what makes KubeVirt's objects of one.

VirtRigaud's translation to KubeVirt is its dialect's. A driver that keeps machines as KubeVirt objects is given it by the program that
serves it (`DriverContext.translation`).
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from paddock.contract.payloads import ClassPayload, DiskPayload, ImagePayload, NetworkPayload, PlacementPayload
from paddock.contract.specs import VMImageSpec
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import Translated

# Key of the guest's document in the Secret that is made for it.
USER_DATA = "userdata"
# The network that KubeVirt gives a machine which names none.
POD_NETWORK = "pod"
# Why a checksum that could be compared is not.
NOT_COMPARED = "validateChecksum is false"
_IGNITION = b'"ignition"'


class MachineDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A machine as the manager wants it."""

    name: str
    hardware: ClassPayload
    image: ImagePayload
    networks: tuple[NetworkPayload, ...] = ()
    disks: tuple[DiskPayload, ...] = ()
    placement: PlacementPayload = PlacementPayload()
    user_data: bytes = b""
    meta_data: bytes = b""
    tags: tuple[str, ...] = ()

    @property
    def datastore(self) -> str:
        """The place of the disks, for a hypervisor whose storage classes are places: the class's, over that of the placement."""
        defaults = self.hardware.disk_defaults
        return (defaults.storage_class if defaults is not None else "") or self.placement.datastore

    def __repr__(self) -> str:
        # Documents for guests hold passwords.
        return f"MachineDescription(name={self.name!r})"


class FirstDisk(msgspec.Struct, frozen=True, kw_only=True):
    """The disk that a machine boots from: an image, and the namespace of what it copies; without an image, the disk of this name."""

    name: str = ""
    namespace: str = ""
    image: VMImageSpec | None = None


class DescriptionTranslator(Protocol):
    """Returns the objects of KubeVirt that a machine in a namespace consists of. `secrets` are those that its image names.

    Raises a `ProviderError` for what cannot be kept; the rest is a loss.
    """

    def __call__(
        self, description: MachineDescription, boot: FirstDisk, namespace: str, rendering: Rendering, secrets: Sequence[Resource] = ()
    ) -> Translated[tuple[Resource, ...]]:
        """Translate a machine. Pure."""


def is_ignition(document: bytes) -> bool:
    """Return whether a document is for Ignition: a JSON object with its member."""
    if not document.lstrip().startswith(b"{") or _IGNITION not in document:
        return False
    try:
        return "ignition" in msgspec.json.decode(document, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError:
        return False


def on_pod_network(network: NetworkPayload) -> bool:
    """Return whether a card is on the network that KubeVirt gives a machine which names none."""
    named = network.network_name or network.portgroup
    return not network.bridge and named in ("", POD_NETWORK)
