"""Templates of machines, as images name them. For threads."""

from pyVmomi import vim

from paddock.contract.payloads import ImagePayload
from paddock_drivers.kit import refusals
from paddock_drivers.vsphere.inventory import InventoryRow, VSphereInventory


def find(inventory: VSphereInventory, image: ImagePayload) -> InventoryRow:
    """Return the template of an image, or the machine that stands for one while it is off; raises NotFound and Conflict."""
    home = inventory.datacenter()
    found = inventory.named(vim.VirtualMachine, image.template_name, home.ref, ("config.template", "runtime.powerState"))
    if not found.get("config.template") and str(found.get("runtime.powerState")) != "poweredOff":
        what = f'"{image.template_name}" is a machine that is not off'
        raise refusals.conflict(what, why="the disks of a running machine are copied as a power cut leaves them", fix="power it off")
    return found
