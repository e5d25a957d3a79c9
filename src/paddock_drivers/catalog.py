"""The drivers by the type of a Provider. A driver's module is loaded when its type is first wanted.

A driver of somebody else is named by its module: `find("mydriver:make")`.
"""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec

import msgspec

from paddock.base.errors import Terminal
from paddock.base.nearest import nearest
from paddock.contract.factory import DriverFactory


class DriverUnavailable(Terminal):
    """A type of provider that has no driver here, or a driver that cannot be loaded."""


class DriverEntry(msgspec.Struct, frozen=True):
    """A type: the module that has its `make`, or the reason why there is none. `apart`: why no server runs it as its own child."""

    module: str = ""
    reason: str = ""
    apart: str = ""
    # a library that Paddock does without elsewhere, and what installs it
    library: str = ""
    install: str = ""

    @property
    def lack(self) -> str:
        """The reason why the driver cannot be served here; empty if it can."""
        if self.library and find_spec(self.library) is None:
            return f"the Python library {self.library} is not installed; {self.install}"
        return self.reason


_VSPHERE = "`pip install 'paddock[vsphere]'`"
_LIBVIRT = "install libvirt-dev, pkg-config and gcc, and then `pip install 'paddock[libvirt]'`"


TYPES: Mapping[str, DriverEntry] = {
    "fake": DriverEntry("paddock_drivers.fake.factory"),
    "kubevirt": DriverEntry("paddock_drivers.kubevirt.factory"),
    # KubeVirt's objects on Paddock's own server, which runs them with QEMU
    "qemu": DriverEntry("paddock_drivers.kubevirt.factory"),
    "libvirt": DriverEntry("paddock_drivers.libvirt.factory", library="libvirt", install=_LIBVIRT),
    "vsphere": DriverEntry("paddock_drivers.vsphere.factory", library="pyVmomi", install=_VSPHERE),
    "proxmox": DriverEntry("paddock_drivers.proxmox.factory"),
    "firecracker": DriverEntry(
        "paddock_drivers.firecracker.factory",
        apart="machines are processes of their host that outlive this server; run `paddock provider serve --type firecracker` there",
    ),
}


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
    if entry.lack:
        raise DriverUnavailable(f"cannot serve a provider of type {type}", why=entry.lack)
    return _loaded(entry.module, "make")


def _loaded(module: str, name: str) -> DriverFactory:
    try:
        factory: DriverFactory = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise DriverUnavailable(f"cannot load the driver {module}:{name}", why=str(error)) from error
    return factory
