"""Kinds by which storage drivers and clusters talk to each other (`storage.k8s.io`). Stored, and nothing here attaches anything."""

from collections.abc import Iterator

from paddock.base.jsondata import Data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server.resources.strategy import Strategy, WriteContext

GROUP = "storage.k8s.io"
_RULE = "core/storage-driver"


def _unchanged(new: Data, old: Data | None, *path: str) -> Iterator[Finding]:
    if old is None:
        return
    here, before = new, old
    for part in path[:-1]:
        here, before = here.get(part) or {}, before.get(part) or {}
    if here.get(path[-1]) != before.get(path[-1]):
        yield finding.invalid(path, here.get(path[-1]), "field is immutable", _RULE)


class DriverStrategy(Strategy):
    """Volumes persist unless the driver says otherwise."""

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """Yield a finding for each change of a field that existing volumes depend on."""
        yield from _unchanged(new, old, "spec", "attachRequired")
        yield from _unchanged(new, old, "spec", "volumeLifecycleModes")


class NodeDriversStrategy(Strategy):
    """A driver on a node stays as it registered."""

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        before = {each.get("name"): each for each in ((old or {}).get("spec") or {}).get("drivers") or ()}
        for each in (new.get("spec") or {}).get("drivers") or ():
            known = before.get(each.get("name"))
            if known is not None and {**known, "allocatable": None} != {**each, "allocatable": None}:
                yield finding.invalid(("spec", "drivers"), each, "field is immutable", _RULE)


class AttachmentStrategy(Strategy):
    """Nothing is attached yet, and what shall be attached does not change."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        new["status"] = {"attached": False}
        return new

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """One volume."""
        source = (new.get("spec") or {}).get("source") or {}
        path, why = ("spec", "source"), "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
        named, inline = source.get("persistentVolumeName"), source.get("inlineVolumeSpec")
        if named is None and inline is None:
            yield finding.required(path, _RULE, why)
        elif named is not None and inline is not None:
            yield finding.forbidden(path, why, _RULE)
        elif named == "":
            yield finding.required((*path, "persistentVolumeName"), _RULE, "must specify non empty persistentVolumeName")
        yield from _unchanged(new, old, "spec")


class CapacityStrategy(Strategy):
    """Keeps the topology and the storage class."""

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        yield from _unchanged(new, old, "nodeTopology")
        yield from _unchanged(new, old, "storageClassName")


class AttributesStrategy(Strategy):
    """Volumes were made by the class, so it does not change."""

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        if not new.get("parameters"):
            yield finding.required(("parameters",), _RULE, "must contain at least one key/value pair")
        yield from _unchanged(new, old, "driverName")
        yield from _unchanged(new, old, "parameters")


STRATEGIES: dict[tuple[str, str], Strategy] = {
    (GROUP, "CSIDriver"): DriverStrategy(),
    (GROUP, "CSINode"): NodeDriversStrategy(),
    (GROUP, "VolumeAttachment"): AttachmentStrategy(),
    (GROUP, "CSIStorageCapacity"): CapacityStrategy(),
    (GROUP, "VolumeAttributesClass"): AttributesStrategy(),
}
