"""The names and labels of what a Stakater machine becomes."""

import hashlib

from paddock.dialects.stakater.kinds.virtualmachine import StakaterVirtualMachine
from paddock.dialects.stakater.rules import MACHINE_LABEL, MANAGED_BY
from paddock.kubernetes.meta.objects import ObjectMeta, owned_by

ROOT_DISK = "rootdisk"
CLOUD_INIT_DISK = "cloudinitdisk"
# A Service's name is a DNS label.
_SERVICE_NAME = 63


def data_volume(machine: str, disk: str) -> str:
    """The DataVolume of a disk."""
    return f"{machine}-{disk}"


def ssh_key_secret(machine: str) -> str:
    """The Secret with the inline SSH keys."""
    return f"{machine}-ssh-key"


def cloud_init_secret(machine: str) -> str:
    """The Secret with user data that cannot stand in the machine."""
    return f"{machine}-cloudinit"


def service(machine: str) -> str:
    """The Service; a name of its kind begins with a letter and is short."""
    name = f"vm-{machine}-lb" if machine[:1].isdigit() else f"{machine}-lb"
    if len(name) <= _SERVICE_NAME:
        return name
    digest = hashlib.sha256(machine.encode()).hexdigest()[:8]
    return f"{name[: _SERVICE_NAME - 12]}-{digest}-lb"


def labels(vm: StakaterVirtualMachine, product: str) -> dict[str, str]:
    """The two labels on every generated object."""
    return {MANAGED_BY: product, MACHINE_LABEL: vm.metadata.name}


def meta(vm: StakaterVirtualMachine, name: str, product: str) -> ObjectMeta:
    """Metadata of a generated object."""
    return ObjectMeta(
        name=name,
        namespace=vm.metadata.namespace,
        labels=labels(vm, product),
        ownerReferences=owned_by(vm),
    )
