"""Labels and annotations by which a generated object tells what it was made from, and from which it can be read back."""

import hashlib

import msgspec

from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.kubernetes.meta.objects import ObjectMeta, Resource, owned_by

MANAGED_BY = "app.kubernetes.io/managed-by"
MACHINE = "virtrigaud.io/virtual-machine"
PROVIDER = "virtrigaud.io/provider"
CLASS = "virtrigaud.io/class"
# What the class itself says, where the machine has other sizes.
CLASS_CPU = "virtrigaud.io/class-cpu"
CLASS_MEMORY = "virtrigaud.io/class-memory"
IMAGE = "virtrigaud.io/image"
# The block of the image, or of the network, that counted.
SOURCE = "virtrigaud.io/source"
# Card -> network, as a JSON object.
NETWORKS = "virtrigaud.io/networks"
NETWORK = "virtrigaud.io/network"
NETWORK_TYPE = "virtrigaud.io/network-type"
TAGS = "virtrigaud.io/tags"
# What only describes an image or a network, as a JSON object.
ABOUT = "virtrigaud.io/about"
# The Secret that a Secret was made from, as a JSON object.
SECRET = "virtrigaud.io/secret"

OF_MACHINES = (PROVIDER, CLASS, CLASS_CPU, CLASS_MEMORY, IMAGE, SOURCE, NETWORKS, TAGS)
LABELS = (MANAGED_BY, MACHINE)
# Written by kubectl about the object it was given, not about what that becomes.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_LABEL, _NAME = 63, 253


def cut(name: str, most: int) -> str:
    """A name that is short enough: its beginning and a sum of all of it."""
    if len(name) <= most:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: most - 9].rstrip('-.')}-{digest}"


def data_volume(machine: str, disk: str) -> str:
    """The DataVolume of a disk."""
    return cut(f"{machine}-{disk}", _NAME)


def cloud_init_secret(machine: str) -> str:
    """The Secret with first-boot documents that cannot stand in the machine."""
    return cut(f"{machine}-cloudinit", _NAME)


def image_secret(machine: str) -> str:
    """The Secret by which the root disk's image is fetched."""
    return cut(f"{machine}-image", _NAME)


def free(wanted: str, taken: set[str]) -> str:
    """A name that no disk of the machine has."""
    name, count = wanted, 0
    while name in taken:
        count += 1
        name = f"{wanted}-{count}"
    return name


def mac(namespace: str, machine: str, nic: str) -> str:
    """The hardware address of a card that has to be found by it: the same every time."""
    digest = hashlib.sha256(f"{namespace}/{machine}/{nic}".encode()).digest()
    return ":".join(f"{byte:02x}" for byte in (0x02, *digest[:5]))


def bridge(seed: str) -> str:
    """The name of a bridge that nobody has named: short enough for a network device."""
    return f"br-{hashlib.sha256(seed.encode()).hexdigest()[:8]}"


def reference(namespace: str | None, name: str, own: str) -> str:
    """`name`, or `namespace/name` when it is in another namespace."""
    return f"{namespace}/{name}" if namespace and namespace != own else name


def referred(text: str) -> tuple[str | None, str]:
    """The namespace, if there is one, and the name of a reference."""
    namespace, _, name = text.rpartition("/")
    return namespace or None, name


def as_json(value: object) -> str:
    """A value as the text of an annotation."""
    return msgspec.json.encode(value, order="deterministic").decode()


def name_of(resource: Resource) -> str:
    """The name of an object, or the beginning of one that is still to be made."""
    return resource.metadata.name or (resource.metadata.generateName or "").rstrip("-.")


def labels(vm: VirtrigaudVirtualMachine, product: str) -> dict[str, str]:
    """The labels on every generated object."""
    return {MANAGED_BY: product, MACHINE: cut(name_of(vm), _LABEL).rstrip("-.")}


def meta(vm: VirtrigaudVirtualMachine, name: str, product: str, annotations: dict[str, str] | None = None) -> ObjectMeta:
    """Metadata of an object that belongs to the machine."""
    return ObjectMeta(
        name=name,
        namespace=vm.metadata.namespace,
        labels=labels(vm, product),
        annotations=annotations or None,
        ownerReferences=owned_by(vm),
    )
