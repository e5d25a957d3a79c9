"""Behaviour of the storage kinds besides their schema: claims, volumes, classes (docs/spec/kube-api.md section 7)."""

from collections.abc import Iterator

from paddock.base.jsondata import Data
from paddock.kubernetes.core.storageclass import IS_DEFAULT, VOLUME_PROTECTION
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.server.builtin import claimsizes
from paddock.server.builtin.holding import hold
from paddock.server.builtin.trust import is_trusted
from paddock.server.resources.strategy import Strategy, WriteContext

# Somebody has to agree that nobody uses the claim any more.
PROTECTION = "kubernetes.io/pvc-protection"
_VOLUME_RULE = "core/volume"


def default_class(context: WriteContext) -> str | None:
    """The class of a claim that names none: of those that are marked, the newest."""
    marked = [each["metadata"] for each in context.view.list(claimsizes.CLASSES) if _is_default(each)]
    newest = max((meta.get("creationTimestamp", "") for meta in marked), default="")
    return min((meta["name"] for meta in marked if meta.get("creationTimestamp", "") == newest), default=None)


def _is_default(data: Data) -> bool:
    return (data["metadata"].get("annotations") or {}).get(IS_DEFAULT) == "true"


class PersistentVolumeClaimStrategy(Strategy):
    """A claim waits for a volume, and stays as long as it is used."""

    def returns_deleted(self) -> bool:
        return True

    def complete(self, new: Data) -> None:
        new.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """The default class, protection, and a phase."""
        spec = self._settled(new)
        if "storageClassName" not in spec and (name := default_class(context)):
            spec["storageClassName"] = name
        hold(new, PROTECTION)
        new["status"] = {"phase": "Pending"}
        return new

    def prepare_update(self, new: Data, old: Data, context: WriteContext) -> Data:
        """Defaults, again. A claim that a controller binds is bound with that write: its status follows from its volume."""
        self._settled(new)
        name = new["spec"].get("volumeName")
        if is_trusted(context) and name and name != old["spec"].get("volumeName"):
            volume = context.view.get("persistentvolumes", "", name)
            if volume is not None:
                offered = volume["spec"]
                bound = {"phase": "Bound", "accessModes": offered["accessModes"], "capacity": offered["capacity"]}
                new["status"] = {**(new.get("status") or {}), **bound}
        return new

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """A disk can be as large as the claim says."""
        yield from claimsizes.of_claim(new, old, context)

    def _settled(self, new: Data) -> Data:
        spec: Data = new["spec"]
        source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
        if source and not reference:
            spec["dataSourceRef"] = dict(source)
        elif reference and not source and not reference.get("namespace"):
            spec["dataSource"] = {key: value for key, value in reference.items() if key != "namespace"}
        return spec


class PersistentVolumeStrategy(Strategy):
    """A volume is free until a claim has it."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """A phase, and protection. What a controller makes for a claim is that claim's from the beginning."""
        owner = new["spec"].get("claimRef") or {}
        new["status"] = {"phase": "Bound" if is_trusted(context) and owner.get("uid") else "Pending"}
        hold(new, VOLUME_PROTECTION)
        return new

    def returns_deleted(self) -> bool:
        return True

    def complete(self, new: Data) -> None:
        """Volumes have filesystems, and stay."""
        spec: Data = new.setdefault("spec", {})
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
        spec.setdefault("volumeMode", "Filesystem")

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """A volume says how large it is and who may mount it; what it is made of does not change."""
        spec = new.get("spec") or {}
        if not (spec.get("capacity") or {}).get("storage"):
            yield finding.required(("spec", "capacity"), _VOLUME_RULE)
        if not spec.get("accessModes"):
            yield finding.required(("spec", "accessModes"), _VOLUME_RULE)
        if old is not None and spec.get("volumeMode") != (old.get("spec") or {}).get("volumeMode"):
            yield finding.invalid(("spec", "volumeMode"), spec.get("volumeMode"), "field is immutable", _VOLUME_RULE)


class StorageClassStrategy(Strategy):
    """Volumes are made at once and go with their claims, unless the class says otherwise."""

    def complete(self, new: Data) -> None:
        """At once, and with their claims."""
        new.setdefault("reclaimPolicy", "Delete")
        new.setdefault("volumeBindingMode", "Immediate")
