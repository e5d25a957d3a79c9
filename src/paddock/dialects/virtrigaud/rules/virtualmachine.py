"""The rules of VirtRigaud's VirtualMachine, and of changing one."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from paddock.dialects.virtrigaud.rules import machine
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding, Path
from paddock.kubernetes.schema.kind import AdmissionSettings, Cel, transition

if TYPE_CHECKING:
    from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine

SPEC: Path = ("spec",)


@transition("virtrigaud/disk-shrink", Cel("spec.disks[].sizeGiB", "self >= oldSelf", "a disk cannot shrink", "", "FieldValueForbidden"))
def disks_do_not_shrink(old: "VirtrigaudVirtualMachine", new: "VirtrigaudVirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """A disk may grow and never shrinks."""
    before = {disk.name: disk for disk in old.spec.disks or ()}
    for index, disk in enumerate(new.spec.disks or ()):
        was = before.get(disk.name)
        if was is not None and disk.sizeGiB < was.sizeGiB:
            why = f"a disk cannot shrink, and {disk.name} has {was.sizeGiB} GiB; make a new disk and copy what is needed"
            yield finding.forbidden((*SPEC, "disks", index, "sizeGiB"), why, "virtrigaud/disk-shrink")


@transition("virtrigaud/disk-remade")
def disks_stay_where_they_are(
    old: "VirtrigaudVirtualMachine", new: "VirtrigaudVirtualMachine", settings: AdmissionSettings
) -> Iterator[Finding]:
    """A disk stays in its storage class and with its provisioning; only a new disk gets others (a warning)."""
    before = {disk.name: disk for disk in old.spec.disks or ()}
    for index, disk in enumerate(new.spec.disks or ()):
        was = before.get(disk.name)
        for name in ("storageClass", "type", "scsi") if was is not None else ():
            if getattr(was, name) != getattr(disk, name):
                text = f"{name} counts when a disk is made; the disk {disk.name} stays as it is"
                yield finding.warning((*SPEC, "disks", index, name), text, "virtrigaud/disk-remade")


@transition("virtrigaud/provider-bound")
def provider_stays(old: "VirtrigaudVirtualMachine", new: "VirtrigaudVirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """A machine that a provider has made stays with it: another reference would leave the machine behind, without an owner."""
    if old.status is None or not old.status.id:
        return
    namespace = old.metadata.namespace
    before, after = old.spec.providerRef, new.spec.providerRef
    if after.name and (before.name, before.namespace or namespace) != (after.name, after.namespace or namespace):
        why = f"the machine exists at {before.name} as {old.status.id}; move it with a VMMigration"
        yield finding.forbidden((*SPEC, "providerRef"), why, "virtrigaud/provider-bound")


@transition("virtrigaud/source-used")
def source_counts_once(old: "VirtrigaudVirtualMachine", new: "VirtrigaudVirtualMachine", settings: AdmissionSettings) -> Iterator[Finding]:
    """Image and imported disk count when a machine is made (a warning)."""
    if old.status is None or not old.status.id:
        return
    for name in ("imageRef", "importedDisk"):
        if getattr(old.spec, name) != getattr(new.spec, name):
            text = f"{name} counts when a machine is made; this one keeps the disk it has"
            yield finding.warning((*SPEC, name), text, "virtrigaud/source-used")


RULES = machine.rules_at("spec", lambda vm: vm.spec, lambda vm: vm.status is not None and bool(vm.status.id))
TRANSITIONS = (disks_do_not_shrink, disks_stay_where_they_are, provider_stays, source_counts_once)
