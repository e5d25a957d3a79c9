"""The sources of a machine's DataVolumes where their templates name DataSources (docs/spec/kubermatic.md 2.3 and section 3). Pure.

An address is written into the DataVolume when that is made, so that another address later is for new DataVolumes only. On this host a
claim or a snapshot is, too, as KubeVirt does it; for a cluster, a source that CDI itself can follow stays a name. As long as a DataSource
cannot be used, nothing is made: the machine waits for it, and says so.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from paddock.kubernetes.meta.conditions import Condition
from paddock.kubernetes.meta.world import namespace_of
from paddock.kubevirt.kinds.datasource import CDI_SOURCES, DataSource, source_type
from paddock.kubevirt.kinds.datavolume import DataVolumeSource, NamespacedReference, SourceReference
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.extendedsources import (
    DATA_SOURCE,
    IMMEDIATE,
    RESOLVED,
    Find,
    golden_name,
    is_cached,
    is_extended,
    needs_secret,
    references,
)
from paddock.kubevirt.kinds.virtualmachine import VirtualMachine

NOT_FOUND, NOT_READY, CROSS_NAMESPACE = "DataSourceNotFound", "DataSourceNotReady", "CrossNamespaceSecret"


class SourceBlocker(msgspec.Struct, frozen=True):
    """The reason why a DataVolume cannot be made yet: one of the condition DataSourceResolved, and the remedy."""

    reason: str
    message: str


class InlineSource(msgspec.Struct, frozen=True):
    """An address for a DataVolume, and the DataSource it was taken from."""

    source: DataVolumeSource
    name: str


def resolve(reference: SourceReference, namespace: str, find: Find) -> InlineSource | SourceBlocker | None:
    """Return the present meaning of a reference from a namespace; None: it stays a name, which is followed where disks are filled."""
    place = reference.namespace or namespace
    full = f"{place}/{reference.name}"
    found = find(place, reference.name)
    if found is None:
        return SourceBlocker(NOT_FOUND, f"the DataSource {full} is not there; create it, the machine waits for it")
    stands_for = _stands_for(found, find)
    if place != namespace and stands_for is not None and needs_secret(stands_for.spec.source):
        fix = f"use a DataSource of the namespace {namespace}"
        return SourceBlocker(CROSS_NAMESPACE, f"the DataSource {full} needs a Secret and cannot be used from another namespace; {fix}")
    unready = _unready(found)
    if unready is not None:
        return SourceBlocker(NOT_READY, f"the DataSource {full} cannot be used{unready}")
    if stands_for is None or source_type(stands_for.spec.source) in CDI_SOURCES:
        return None
    if is_cached(stands_for) and place == namespace:
        # Copies across namespaces are a matter of rights; from there the image is fetched like any other.
        return InlineSource(DataVolumeSource(pvc=NamespacedReference(namespace=place, name=golden_name(stands_for))), full)
    kind = source_type(stands_for.spec.source)
    member: Any = getattr(stands_for.spec.source, kind)
    if place != namespace and getattr(member, "certConfigMap", None):
        # What is to be trusted is read where the DataSource is, which a DataVolume by itself cannot say.
        return None
    return InlineSource(DataVolumeSource(**{kind: member}), full)


def inlined(volume: DataVolume, inline_source: InlineSource) -> DataVolume:
    """The DataVolume with its address."""
    annotations = {**(volume.metadata.annotations or {}), DATA_SOURCE: inline_source.name}
    metadata = msgspec.structs.replace(volume.metadata, annotations=annotations)
    spec = msgspec.structs.replace(volume.spec, sourceRef=None, source=inline_source.source)
    return msgspec.structs.replace(volume, metadata=metadata, spec=spec)


def followed(volume: DataVolume, find: Find) -> DataVolume:
    """The DataVolume with the claim or the snapshot that its reference stands for, as it is now; one without such a reference stays."""
    reference, namespace = volume.spec.sourceRef, namespace_of(volume)
    found = find(reference.namespace or namespace, reference.name) if reference is not None else None
    stands_for = _stands_for(found, find) if found is not None else None
    if stands_for is None:
        return volume
    claim, snapshot = stands_for.spec.source.pvc, stands_for.spec.source.snapshot
    if (named := claim or snapshot) is None:
        return volume
    copied = NamespacedReference(namespace=named.namespace or namespace_of(stands_for), name=named.name)
    source = DataVolumeSource(pvc=copied) if claim is not None else DataVolumeSource(snapshot=copied)
    return msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, sourceRef=None, source=source))


def is_lazy(machine: VirtualMachine, find: Find) -> bool:
    """Return whether the DataVolumes wait until the machine starts: Kubermatic's do, KubeVirt's do not, and the user's annotation wins.

    A machine that another dialect's controller has created gets its DataVolumes at once, as on a cluster, whatever its DataSource is.
    """
    said = (machine.metadata.annotations or {}).get(IMMEDIATE)
    if said is not None:
        return said == "false"
    owner = next((each for each in machine.metadata.ownerReferences or () if each.controller), None)
    if owner is not None and owner.kind != "VirtualMachinePool":
        return False
    return is_extended(machine.spec.dataVolumeTemplates, namespace_of(machine), find)


def conditions(machine: VirtualMachine, sources: Sequence[InlineSource | SourceBlocker | None]) -> Sequence[Condition]:
    """The condition DataSourceResolved; none for a machine that names no DataSource."""
    if next(references(machine.spec.dataVolumeTemplates), None) is None:
        return ()
    held = next((each for each in sources if isinstance(each, SourceBlocker)), None)
    if held is not None:
        return (Condition(type=RESOLVED, status="False", reason=held.reason, message=held.message),)
    return (Condition(type=RESOLVED, status="True", reason="Resolved"),)


def _stands_for(source: DataSource, find: Find) -> DataSource | None:
    """The DataSource itself, or the one that it names; None: it is unknown, and its own condition says why."""
    to = source.spec.source.dataSource
    if to is None:
        return source
    own = namespace_of(source)
    if (to.namespace or own) != own or to.name == source.metadata.name:
        return None
    return find(own, to.name)


def _unready(source: DataSource) -> str | None:
    """Return the reason why a DataSource cannot be used, from its own status; None when it can."""
    conditions = (source.status.conditions if source.status is not None else None) or ()
    ready = next((each for each in conditions if each.type == "Ready"), None)
    if ready is None:
        return " yet: nobody has looked at it"
    return None if ready.status == "True" else f" ({ready.reason}): {ready.message}"
