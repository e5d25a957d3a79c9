"""Disks that belong to one machine alone, as templates of that machine.

Vitistack makes a claim beside the machine for each disk, and KubeVirt's manifests may have a DataVolume beside it. Stakater and VirtRigaud
say of a disk what a template says, so a conversion to them reads these objects as templates; otherwise sizes and sources would be lost.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from paddock.fleet.documents.rendering import RenderedObject
from paddock.kubernetes import catalog
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim
from paddock.kubernetes.meta.storage import StorageSpec
from paddock.kubernetes.meta.world import namespace_of
from paddock.kubernetes.schema.field import Empty
from paddock.kubevirt.kinds.datavolume import DataVolumeSource, DataVolumeSpec
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate, DataVolumeTemplateMeta, VirtualMachine
from paddock.kubevirt.kinds.volumes import DataVolumeVolume, Volume

_LAST = 1000


def folded(hub: list[RenderedObject], target: str) -> list[RenderedObject]:
    """Return the objects with each disk that one machine alone uses inside that machine."""
    dialect = catalog.dialect(target)
    if not dialect.makes_disks:
        return hub
    machines = [each.value for each in hub if isinstance(each.value, VirtualMachine)]
    users = Counter((namespace_of(vm), name) for vm in machines for name in _claims(vm))
    disks = {
        (namespace_of(each.value), each.value.metadata.name): template
        for each in hub
        if (template := _template(each)) is not None
        and each.value is not None
        and users[namespace_of(each.value), each.value.metadata.name] == 1
    }
    inside: set[tuple[str, str]] = set()
    found = []
    for each in hub:
        if isinstance(each.value, VirtualMachine):
            own = {name: disks[key] for name in _claims(each.value) if (key := (namespace_of(each.value), name)) in disks}
            root = own.get(_root(each.value))
            if dialect.keeps_empty_root and root is not None and (root.spec.source is None or root.spec.source.blank is not None):
                del own[_root(each.value)]
            inside.update((namespace_of(each.value), name) for name in own)
            found.append(msgspec.structs.replace(each, value=_with(each.value, own)))
        else:
            found.append(each)
    return [
        each for each in found if not (_template(each) and each.value and (namespace_of(each.value), each.value.metadata.name) in inside)
    ]


def _template(each: RenderedObject) -> DataVolumeTemplate | None:
    """Return a disk object as a template; None for the user's existing claims and for claims with content."""
    value = each.value
    if isinstance(value, DataVolume):
        return DataVolumeTemplate(metadata=_named(value.metadata.name), spec=value.spec)
    spec = value.spec if isinstance(value, PersistentVolumeClaim) and each.generated else None
    if value is None or spec is None or spec.dataSource is not None or spec.dataSourceRef is not None:
        return None
    storage = StorageSpec(**{name: getattr(spec, name) for name in StorageSpec.__struct_fields__})
    blank = DataVolumeSpec(source=DataVolumeSource(blank=Empty()), storage=storage)
    return DataVolumeTemplate(metadata=_named(value.metadata.name), spec=blank)


def _named(name: str) -> DataVolumeTemplateMeta:
    return DataVolumeTemplateMeta(name=name)


def _claims(vm: VirtualMachine) -> Iterator[str]:
    """The claims and DataVolumes that the machine uses and that no template of its own makes."""
    templates = {template.metadata.name for template in vm.spec.dataVolumeTemplates or () if template.metadata}
    for volume in vm.spec.template.spec.volumes or ():
        name = _claim(volume)
        if name and name not in templates:
            yield name


def _claim(volume: Volume) -> str:
    if volume.dataVolume is not None:
        return volume.dataVolume.name
    return volume.persistentVolumeClaim.claimName if volume.persistentVolumeClaim is not None else ""


def _root(vm: VirtualMachine) -> str:
    """The claim of the disk that is booted from; empty when it has none."""
    volumes = {volume.name: volume for volume in vm.spec.template.spec.volumes or ()}
    disks = [disk for disk in vm.spec.template.spec.domain.devices.disks or () if disk.cdrom is None and disk.lun is None]
    bootable = [disk for disk in disks if (volume := volumes.get(disk.name)) and (_claim(volume) or volume.containerDisk is not None)]
    first = min(bootable, key=lambda disk: disk.bootOrder or _LAST, default=None)
    return _claim(volumes[first.name]) if first is not None else ""


def _with(vm: VirtualMachine, own: dict[str, DataVolumeTemplate]) -> VirtualMachine:
    """The machine with these disks as templates."""
    if not own:
        return vm
    instance = vm.spec.template.spec
    volumes = [_made(volume) if _claim(volume) in own else volume for volume in instance.volumes or ()]
    running = msgspec.structs.replace(vm.spec.template, spec=msgspec.structs.replace(instance, volumes=volumes))
    templates: Iterable[DataVolumeTemplate] = (*(vm.spec.dataVolumeTemplates or ()), *own.values())
    return msgspec.structs.replace(vm, spec=msgspec.structs.replace(vm.spec, template=running, dataVolumeTemplates=list(templates)))


def _made(volume: Volume) -> Volume:
    """The volume as one that a template fills."""
    claim = volume.persistentVolumeClaim
    if claim is None:
        return volume
    filled = DataVolumeVolume(name=claim.claimName, hotpluggable=claim.hotpluggable)
    return msgspec.structs.replace(volume, persistentVolumeClaim=None, dataVolume=filled)
