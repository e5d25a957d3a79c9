"""A KubeVirt machine that is being read: its parts by name, what it was made from, and what may be looked up for it."""

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

from paddock.dialects.virtrigaud.kinds.shared import ObjectRef
from paddock.dialects.virtrigaud.translate import marks
from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubernetes.meta.redaction import shown
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.translated import LossCollector
from paddock.kubernetes.meta.world import ObjectSet, namespace_of
from paddock.kubernetes.schema.finding import Path
from paddock.kubevirt.kinds.devices import Disk
from paddock.kubevirt.kinds.instance import VirtualMachineInstanceSpec
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate, VirtualMachine
from paddock.kubevirt.kinds.volumes import CloudInitSource, Volume

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z", re.ASCII)
_LAST = 1000


@dataclasses.dataclass(frozen=True)
class MachineReader:
    vm: VirtualMachine
    object_set: ObjectSet
    rendering: Rendering
    ledger: LossCollector

    @property
    def name(self) -> str:
        return marks.name_of(self.vm)

    @property
    def namespace(self) -> str:
        return namespace_of(self.vm)

    @property
    def instance(self) -> VirtualMachineInstanceSpec:
        return self.vm.spec.template.spec

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations of the machine."""
        return self.vm.metadata.annotations or {}

    @property
    def volumes(self) -> dict[str, Volume]:
        return {volume.name: volume for volume in self.instance.volumes or ()}

    @property
    def templates(self) -> dict[str, DataVolumeTemplate]:
        """Templates of DataVolumes by name."""
        return {template_name(template): template for template in self.vm.spec.dataVolumeTemplates or ()}

    def template_of(self, volume: Volume | None) -> DataVolumeTemplate | None:
        """The template that fills a volume."""
        name = claim_of(volume)
        return self.templates.get(name) if name else None

    @property
    def disks(self) -> list[Disk]:
        """The disks as they stand there, and those that KubeVirt makes for volumes without one."""
        given = list(self.instance.domain.devices.disks or ())
        named = {disk.name for disk in given} | {each.name for each in self.instance.domain.devices.filesystems or ()}
        return [*given, *(Disk(name=volume.name) for volume in self.instance.volumes or () if volume.name not in named)]

    @property
    def root(self) -> Disk | None:
        """The disk that is booted from: the first in boot order, else the first that is a hard disk."""
        plain = [disk for disk in self.disks if self._is_hard_disk(disk)]
        return min(plain, key=lambda disk: disk.bootOrder or _LAST, default=None)

    def _is_hard_disk(self, disk: Disk) -> bool:
        volume = self.volumes.get(disk.name)
        if volume is None or disk.cdrom is not None or disk.lun is not None:
            return False
        return claim_of(volume) is not None or volume.containerDisk is not None

    @property
    def cloud_init(self) -> tuple[int, CloudInitSource] | None:
        """The place of the volume with the guest's documents, and its content."""
        for index, volume in enumerate(self.instance.volumes or ()):
            content = documents_of(volume)
            if content is not None:
                return index, content
        return None

    def reference(self, mark: str, fallback: str) -> ObjectRef:
        """Return the reference in the machine's annotation; without one, an invented name."""
        namespace, name = marks.referred(self.annotations.get(mark, ""))
        if not is_name(name) or (namespace is not None and not is_name(namespace)):
            return ObjectRef(name=plain(fallback))
        return ObjectRef(name=name, namespace=namespace)

    def lose(self, path: Path, value: Any, why: str, instead: str) -> None:
        """Note a loss; secrets are not repeated."""
        self.ledger.lose(path, shown(VirtualMachine, path, value), why, instead)

    def metadata_of(self, ref: ObjectRef) -> ObjectMeta:
        """Metadata of an object that the machine refers to."""
        return ObjectMeta(name=ref.name, namespace=ref.namespace or self.vm.metadata.namespace)


def is_name(text: str) -> bool:
    """Return whether a text can be a name in VirtRigaud's references."""
    return len(text) <= 253 and _NAME.match(text) is not None


def plain(text: str) -> str:
    """A text as a name in VirtRigaud's references."""
    made = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return marks.cut(made, 253) or "machine"


def template_name(template: DataVolumeTemplate) -> str:
    """The name of a template."""
    return (template.metadata.name if template.metadata is not None else None) or ""


def claim_of(volume: Volume | None) -> str | None:
    """The claim that a volume is."""
    if volume is None:
        return None
    if volume.dataVolume is not None:
        return volume.dataVolume.name
    return volume.persistentVolumeClaim.claimName if volume.persistentVolumeClaim is not None else None


def documents_of(volume: Volume) -> CloudInitSource | None:
    """The documents that a volume carries to the guest."""
    return volume.cloudInitNoCloud or volume.cloudInitConfigDrive


def from_json(text: str | None) -> Any:
    """The value of an annotation, or None when somebody else has written something else there."""
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
