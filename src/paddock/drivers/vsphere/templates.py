"""Templates of machines, as images name them. For threads."""

from typing import Any

from pyVmomi import vim

from paddock.contract.payloads import ImagePayload
from paddock.driverkit import refusals
from paddock.drivers.vsphere.inventory import VSphereInventory


def find(inventory: VSphereInventory, image: ImagePayload) -> Any:
    """Return the template of an image; raises NotFound. A machine that is no template is refused: a clone would copy its secrets."""
    home = inventory.datacenter()
    found = inventory.named(vim.VirtualMachine, image.template_name, home.ref, ("config.template",))
    if not found.get("config.template"):
        what = f'"{image.template_name}" is a machine and no template'
        raise refusals.invalid(what, fix="convert it to a template, or name one")
    return found.ref
