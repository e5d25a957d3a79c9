"""The disk that a machine boots from: what an image stands for at the target."""

import enum

import msgspec

from paddock.base import quantity
from paddock.contract.description import FirstDisk
from paddock.contract.payloads import ImagePayload
from paddock.contract.specs import DataVolumeImageSource, HTTPImageSource, ImageSource, RegistryImageSource, VMImageSpec
from paddock.kubernetes.core.persistentvolumeclaim import GUEST_SIZE, PersistentVolumeClaim, storage_request
from paddock.kubevirt.kinds.datavolume import DataVolumeSpec
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock_drivers.kit import refusals
from paddock_drivers.kubevirt import marks

_HTTP = ("http://", "https://")
_REGISTRY = "docker://"
IMAGE, DISK = "image", "disk"


class BootKind(enum.Enum):
    """How a machine comes by its first disk."""

    FETCH = "an image that is fetched"
    COPY_SOURCE = "a copy of what a DataSource names"
    COPY_CLAIM = "a copy of a claim"
    CLAIM = "a claim itself"


class BootDisk(msgspec.Struct, frozen=True, kw_only=True):
    """The first disk of a machine. `size` is that of what is copied, in bytes, if it is known."""

    kind: BootKind
    name: str = ""
    namespace: str = ""
    size: int = 0
    image: ImageSource = ImageSource()
    # the machine exists and keeps the disk
    kept: bool = False

    def source(self, image: VMImageSpec | None = None) -> FirstDisk:
        """Return what is translated; `image` is the whole spec of the image, if it is known."""
        if self.kind is BootKind.CLAIM:
            return FirstDisk(name=self.name)
        namespace = self.namespace if self.kind is BootKind.COPY_SOURCE else ""
        return FirstDisk(name=self.name, namespace=namespace, image=image or VMImageSpec(source=self.image))


def named(image: ImagePayload) -> tuple[str, str]:
    """Return the namespace, if one is given, and the name of the template or the claim that an image names; empty for an address."""
    if image.template_name:
        namespace, _, name = image.template_name.rpartition("/")
        return namespace, name
    if image.url or not image.path:
        return "", ""
    if image.path.startswith("/"):
        # A manager that knows the id of a disk only makes up a path of files; its last part names the disk.
        return "", image.path.rpartition("/")[2].rpartition(".")[0] or image.path.rpartition("/")[2]
    return "", image.path


def fetched(image: ImagePayload) -> BootDisk:
    """Return the source of an image with an address."""
    if image.url.startswith(_HTTP):
        source = HTTPImageSource(url=image.url, checksum=image.checksum or None, checksumType=image.checksum_type or "sha256")
        return BootDisk(kind=BootKind.FETCH, image=ImageSource(http=source))
    if image.url.startswith(_REGISTRY):
        source_image = RegistryImageSource(image=image.url.removeprefix(_REGISTRY))
        return BootDisk(kind=BootKind.FETCH, image=ImageSource(registry=source_image))
    raise refusals.not_supported("the image cannot be fetched", why="its address is neither http, https nor docker", fix="prepare it first")


def copied(namespace: str, claim: PersistentVolumeClaim, volume: DataVolume | None) -> BootDisk:
    """Return the source that copies a claim, which a DataVolume may have filled."""
    source = DataVolumeImageSource(name=claim.metadata.name, namespace=namespace)
    size = guest_size(claim, volume)
    return BootDisk(
        kind=BootKind.COPY_CLAIM, name=claim.metadata.name, namespace=namespace, size=size, image=ImageSource(dataVolume=source)
    )


def is_image(claim: PersistentVolumeClaim, volume: DataVolume | None) -> bool:
    """Return whether a claim is a prepared image, which machines copy and never write."""
    labels = (volume.metadata.labels if volume is not None else claim.metadata.labels) or {}
    return labels.get(marks.PURPOSE) == IMAGE


def size_of(claim: PersistentVolumeClaim) -> int:
    """The bytes that a claim asks for."""
    asked = storage_request(claim.spec)
    return quantity.whole(asked) if asked is not None else 0


def guest_size(claim: PersistentVolumeClaim, volume: DataVolume | None) -> int:
    """The bytes of the disk on a claim. A claim may ask for more, by what a file system takes."""
    request = size_of(claim)
    if noted := noted_size(claim):
        return noted
    asked = asked_size(volume.spec) if volume is not None else 0
    return asked if 0 < asked <= request else request


def noted_size(claim: PersistentVolumeClaim) -> int:
    """The bytes of the disk as Paddock's server notes them at a claim; 0 without a note, or with one of another size of the claim."""
    noted, _, at = (claim.metadata.annotations or {}).get(GUEST_SIZE, "").partition("/")
    return int(noted) if noted.isdecimal() and at == str(size_of(claim)) else 0


def asked_size(spec: DataVolumeSpec) -> int:
    """The bytes that a DataVolume asks for; 0 when it takes them over from what it copies."""
    claim = spec.storage or spec.pvc
    asked = (claim.resources.requests or {}).get("storage") if claim is not None and claim.resources is not None else None
    return quantity.whole(asked) if asked is not None else 0
