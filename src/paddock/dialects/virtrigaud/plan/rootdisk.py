"""The source of a machine's first disk as the provider contract has it: by the Provider's type, or prepared (rulings 0.18 and 2.1.2)."""

from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET

from paddock.base import quantity
from paddock.contract import specs
from paddock.contract.payloads import ImagePayload
from paddock.contract.specs import (
    HTTPImageSource,
    ImagePrepare,
    LibvirtImageSource,
    ProxmoxImageSource,
    RegistryImageSource,
    VSphereImageSource,
)
from paddock.dialects.virtrigaud.kinds.machine import ImportedDiskRef
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmclass import VMClass
from paddock.dialects.virtrigaud.kinds.vmimage import ProviderImage, VMImage
from paddock.dialects.virtrigaud.plan import marks, reasons
from paddock.dialects.virtrigaud.plan.refusals import Refusal

_TEMPLATE, _LIBVIRT = "template", "libvirt"
_GIB = 1 << 30
_IMPORTED_DIRECTORY = "/var/lib/libvirt/images"
_SUFFIXES = {".qcow2": "qcow2", ".raw": "raw", ".img": "raw", ".vmdk": "vmdk", ".vhd": "vhd", ".vhdx": "vhdx", ".iso": "iso", ".ova": "ova"}


def imported(disk: ImportedDiskRef) -> ImagePayload:
    """An existing disk; one without a path lies where libvirt keeps its images."""
    path = disk.path or f"{_IMPORTED_DIRECTORY}/{disk.diskID}.{disk.format}"
    return ImagePayload(path=path, format=disk.format, checksum_type="sha256")


def size_problem(disk: ImportedDiskRef, vmclass: VMClass | None, bytes: int) -> str:
    """Return how an imported disk differs from the size that is expected; empty for one that has it, or has grown to its class's."""
    expected, actual = disk.sizeGiB or 0, -(-bytes // _GIB)
    defaults = vmclass.spec.diskDefaults if vmclass is not None else None
    grown = max(expected, -(-quantity.whole(defaults.size) // _GIB) if defaults is not None else 0)
    if not bytes or actual in (expected, grown):
        return ""
    return f"the imported disk {disk.diskID} has {actual} GiB, and spec.importedDisk.sizeGiB expects {expected}"


def imported_data(vm: VirtrigaudVirtualMachine) -> dict[str, str]:
    """The paths of imported disks that are the machine's data disks, by the disks' names; a migration has noted them."""
    try:
        return msgspec.json.decode((vm.metadata.annotations or {}).get(marks.IMPORTED_DISKS, "{}"), type=dict[str, str])
    except msgspec.MsgspecError:
        return {}


def from_image(image: VMImage, provider_type: str, prepared: ProviderImage | None) -> ImagePayload:
    """The image for a type of Provider, at its prepared location if the Provider has prepared it."""
    payload = _from_block(image, provider_type)
    if prepared is None or not prepared.available:
        if not any((payload.template_name, payload.path, payload.url)):
            raise _no_source(image, provider_type)
        return payload
    if provider_type == _LIBVIRT:
        return msgspec.structs.replace(payload, path=prepared.path or prepared.id or payload.path, url="")
    if provider_type in ("vsphere", "proxmox"):
        return msgspec.structs.replace(payload, template_name=prepared.id or prepared.path or payload.template_name, url="")
    return msgspec.structs.replace(payload, template_name=prepared.id or "", path=prepared.path or "", url="")


def _from_block(image: VMImage, provider_type: str) -> ImagePayload:
    source = image.spec.source
    name = specs.image_block(source, provider_type)
    block = getattr(source, name) if name is not None else None
    checked = (image.spec.prepare or ImagePrepare()).validateChecksum
    payload = ImagePayload(format=_TEMPLATE)
    if isinstance(block, VSphereImageSource):
        payload = _vsphere(block, image)
    elif isinstance(block, LibvirtImageSource):
        # A path is one of libvirt's host; a Provider of another type takes the address.
        path = (block.path or "") if provider_type == _LIBVIRT else ""
        payload = ImagePayload(path=path, url="" if path else block.url or "", format=block.format)
    elif isinstance(block, ProxmoxImageSource):
        named = block.templateName or ""
        template = str(block.templateID) if block.templateID is not None else named
        payload = ImagePayload(
            template_name=template,
            format=block.format,
            full_clone=block.fullClone,
            node=block.node or UNSET,
        )
    elif isinstance(block, HTTPImageSource):
        payload = ImagePayload(url=block.url, format=_format_of(block.url))
    elif isinstance(block, RegistryImageSource):
        payload = ImagePayload(url=f"docker://{block.image}", format=block.format)
    elif name is None:
        raise _no_source(image, provider_type)
    checksum = getattr(block, "checksum", None) if checked and payload.url else None
    if checksum:
        return msgspec.structs.replace(payload, checksum=checksum, checksum_type=getattr(block, "checksumType", ""))
    return payload


def _vsphere(block: VSphereImageSource, image: VMImage) -> ImagePayload:
    if block.templateName:
        return ImagePayload(template_name=block.templateName, format=_TEMPLATE)
    if block.ovaURL:
        return ImagePayload(url=block.ovaURL, format="ova")
    if block.contentLibrary is not None:
        place = f"{image.metadata.namespace}/{image.metadata.name}"
        what = f"VMImage {place} names an item of a content library, and no driver deploys one"
        raise Refusal(what, fix="deploy it as a template in vCenter and give templateName, or give ovaURL", reason=reasons.UNSUPPORTED)
    return ImagePayload(format=_TEMPLATE)


def _no_source(image: VMImage, provider_type: str) -> Refusal:
    place = f"{image.metadata.namespace}/{image.metadata.name}"
    fix = f"add spec.source.{provider_type}, spec.source.http or spec.source.registry"
    return Refusal(f"VMImage {place} has no usable source for a Provider of type {provider_type}", fix=fix)


def _format_of(url: str) -> str:
    path = urlsplit(url).path.lower()
    return next((found for suffix, found in _SUFFIXES.items() if path.endswith(suffix)), "qcow2")
