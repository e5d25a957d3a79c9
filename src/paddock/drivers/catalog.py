"""The drivers by the type of a Provider. A driver's module is loaded when its type is first wanted.

A driver of somebody else is named by its module: `find("mydriver:make")`.
"""

from collections.abc import Mapping
from importlib import import_module

import msgspec

from paddock.base.errors import Terminal
from paddock.base.nearest import nearest
from paddock.contract.factory import DriverFactory


class DriverUnavailable(Terminal):
    """A type of provider that has no driver here, or a driver that cannot be loaded."""


class DriverEntry(msgspec.Struct, frozen=True):
    """A type: the module that has its `make`, or the reason why there is none."""

    module: str = ""
    reason: str = ""


TYPES: Mapping[str, DriverEntry] = {
    "fake": DriverEntry("paddock.drivers.fake.factory"),
    "kubevirt": DriverEntry("paddock.drivers.kubevirt.factory"),
    # KubeVirt's objects on Paddock's own server, which runs them with QEMU
    "qemu": DriverEntry("paddock.drivers.kubevirt.factory"),
    "libvirt": DriverEntry(reason="Paddock has no libvirt driver; serve VirtRigaud's libvirt provider and give its address"),
    "vsphere": DriverEntry(reason="Paddock has no vSphere driver; serve VirtRigaud's vsphere provider and give its address"),
    "proxmox": DriverEntry(reason="Paddock has no Proxmox driver; serve VirtRigaud's proxmox provider and give its address"),
    "firecracker": DriverEntry(reason="there is no Firecracker driver, here or in VirtRigaud"),
}


def available() -> tuple[str, ...]:
    """The types that have a driver."""
    return tuple(name for name, entry in TYPES.items() if entry.module)


def find(type: str) -> DriverFactory:
    """Return the factory of a type, or of MODULE:NAME. Raises `DriverUnavailable`."""
    if ":" in type:
        module, _, name = type.partition(":")
        return _loaded(module, name)
    entry = TYPES.get(type)
    if entry is None:
        meant = nearest(type, TYPES)
        hint = f'did you mean "{meant}"?' if meant else f"the types are {', '.join(TYPES)}"
        raise DriverUnavailable(f'"{type}" is no type of provider', fix=hint)
    if not entry.module:
        raise DriverUnavailable(f"cannot serve a provider of type {type}", why=entry.reason)
    return _loaded(entry.module, "make")


def _loaded(module: str, name: str) -> DriverFactory:
    try:
        factory: DriverFactory = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise DriverUnavailable(f"cannot load the driver {module}:{name}", why=str(error)) from error
    return factory
