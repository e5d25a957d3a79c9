"""The template of a VMSet: its revision, the machine that it describes, and what a change of it means for a machine that exists.

A revision is the sum of the template. A change of labels, annotations, power state, processors and memory, and the growth and addition of
data disks reach a machine in place; any other change replaces it.
"""

import hashlib
from enum import StrEnum

import msgspec

from paddock.base.jsondata import Data, copied
from paddock.dialects.virtrigaud.kinds.machine import DiskSpec, VirtrigaudMachineSpec, VirtualMachineResources
from paddock.dialects.virtrigaud.kinds.shared import API_VERSION
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudVirtualMachine
from paddock.dialects.virtrigaud.kinds.vmset import SetTemplate, VMSet
from paddock.dialects.virtrigaud.plan import marks, reasons
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.kubernetes.meta import selectors
from paddock.kubernetes.meta.fieldview import whole
from paddock.kubernetes.meta.objects import ObjectMeta, OwnerReference, TemplateMeta
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import namespace_of

_DIGITS = 10


class TemplateChange(StrEnum):
    """The way to bring a machine to another template."""

    NONE = ""
    # nothing that the provider knows of changes
    METADATA = "metadata"
    IN_PLACE = "in-place"
    REPLACE = "replace"


def revision_of(template: SetTemplate) -> str:
    """The revision of a template. Two templates of the same content have the same one."""
    return hashlib.sha256(msgspec.json.encode(to_data(template), order="deterministic")).hexdigest()[:_DIGITS]


def name_of(vmset: VMSet, ordinal: int) -> str:
    """The name of the machine with an ordinal."""
    return f"{vmset.metadata.name}-{ordinal}"


def ordinal_of(vmset: VMSet, name: str) -> int | None:
    """The ordinal in a machine's name; None for a name that the set does not give."""
    text = name.removeprefix(f"{vmset.metadata.name}-")
    return int(text) if text != name and text.isdecimal() and str(int(text)) == text else None


def refusal(vmset: VMSet) -> Refusal | None:
    """Return why the controller cannot carry out a set at all."""
    spec = vmset.spec
    labels = (spec.template.metadata.labels if spec.template.metadata is not None else None) or {}
    if selectors.is_empty(spec.selector) or not selectors.matches(spec.selector, labels):
        what = f"spec.selector ({selectors.text(spec.selector)}) does not match the labels of spec.template"
        return Refusal(what, fix="add the selector's labels to spec.template.metadata.labels")
    if spec.volumeClaimTemplates:
        what = "spec.volumeClaimTemplates cannot be used: the provider contract has no field for claims"
        return Refusal(what, fix="use spec.template.spec.disks, and remove spec.volumeClaimTemplates", reason=reasons.UNSUPPORTED)
    return None


def ineffective(vmset: VMSet) -> tuple[str, ...]:
    """The fields of a set that have no effect on virtual machines of a provider."""
    given = {
        "spec.serviceName": vmset.spec.serviceName,
        "spec.persistentVolumeClaimRetentionPolicy": vmset.spec.persistentVolumeClaimRetentionPolicy,
    }
    return tuple(name for name, value in given.items() if value is not None)


# --- machines -------------------------------------------------------------------------------------------------------------


def machine(vmset: VMSet, ordinal: int, revision: str, template: SetTemplate) -> VirtrigaudVirtualMachine:
    """The machine with an ordinal, as a revision of the template describes it."""
    given = template.metadata or TemplateMeta()
    owner = OwnerReference(
        apiVersion=API_VERSION,
        kind="VMSet",
        name=vmset.metadata.name,
        uid=vmset.metadata.uid or "",
        controller=True,
        blockOwnerDeletion=True,
    )
    metadata = ObjectMeta(
        name=name_of(vmset, ordinal),
        namespace=namespace_of(vmset),
        labels={**(given.labels or {}), marks.SET_REVISION: revision},
        annotations=dict(given.annotations) if given.annotations else None,
        ownerReferences=[owner],
    )
    return VirtrigaudVirtualMachine(apiVersion=API_VERSION, kind="VirtualMachine", metadata=metadata, spec=whole(template.spec))


def template_of(vm: VirtrigaudVirtualMachine) -> SetTemplate:
    """A template that describes a machine as it is, for one whose revision nobody knows any more."""
    labels = {name: value for name, value in (vm.metadata.labels or {}).items() if name != marks.SET_REVISION}
    return SetTemplate(metadata=TemplateMeta(labels=labels or None, annotations=vm.metadata.annotations), spec=vm.spec)


# --- changes --------------------------------------------------------------------------------------------------------------


def change(old: SetTemplate, new: SetTemplate) -> TemplateChange:
    """Return the way to bring a machine from one template to another."""
    if to_data(_fixed(old.spec)) != to_data(_fixed(new.spec)) or not _disks_can_stay(old.spec.disks or [], new.spec.disks or []):
        return TemplateChange.REPLACE
    if to_data(old.spec) != to_data(new.spec):
        return TemplateChange.IN_PLACE
    return TemplateChange.METADATA


def _fixed(spec: VirtrigaudMachineSpec) -> VirtrigaudMachineSpec:
    """A spec without what can change in place."""
    gpu = spec.resources.gpu if spec.resources is not None else None
    resources = VirtualMachineResources(gpu=gpu) if gpu is not None else None
    return msgspec.structs.replace(spec, powerState=None, resources=resources, disks=None)


def _disks_can_stay(old: list[DiskSpec], new: list[DiskSpec]) -> bool:
    """Return whether disks only grow or come on top."""
    wanted = {each.name: each for each in new}
    return all(
        each.name in wanted
        and wanted[each.name].sizeGiB >= each.sizeGiB
        and msgspec.structs.replace(wanted[each.name], sizeGiB=0) == msgspec.structs.replace(each, sizeGiB=0)
        for each in old
    )


def rewrite(vm: Data, old: SetTemplate, new: SetTemplate, revision: str) -> Data:
    """The merge patch that brings a machine to another template in place. A disk that was made larger by hand stays as large."""
    spec: Data = {"powerState": new.spec.powerState}
    resources = new.spec.resources
    before = (vm.get("spec") or {}).get("resources")
    if resources is not None:
        spec["resources"] = {"cpu": resources.cpu, "memoryMiB": resources.memoryMiB}
    elif before is not None:
        spec["resources"] = None
    if new.spec.disks:
        spec["disks"] = _grown((vm.get("spec") or {}).get("disks") or [], new.spec.disks)
    metadata = {
        "labels": {**_replaced(old.metadata, new.metadata, "labels"), marks.SET_REVISION: revision},
        "annotations": _replaced(old.metadata, new.metadata, "annotations"),
    }
    return {"metadata": metadata, "spec": spec}


def _grown(has: list[Data], disks: list[DiskSpec]) -> list[Data]:
    sizes = {each.get("name"): each.get("sizeGiB", 0) for each in has}
    made = [{**to_data(each), "sizeGiB": max(each.sizeGiB, sizes.get(each.name, 0))} for each in disks]
    names = {each.name for each in disks}
    return [*made, *(copied(each) for each in has if each.get("name") not in names)]


def _replaced(old: TemplateMeta | None, new: TemplateMeta | None, member: str) -> dict[str, str | None]:
    """The labels or annotations of the new template; those of the old one alone are removed."""
    before, after = (getattr(each, member) if each is not None else None for each in (old, new))
    return {**dict.fromkeys(before or {}), **(after or {})}
