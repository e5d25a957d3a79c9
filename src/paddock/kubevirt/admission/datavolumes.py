"""Behaviour of a DataVolume besides its schema: its claim's name must be free, and it copies only what its creator may
(docs/spec/kubevirt.md 5.1).

The server records the creator, since a DataSource may come, or change, after the DataVolume that refers to it.
"""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.finding import Finding
from paddock.kubevirt.kinds.datasource import DataSource
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.plan.storage import contents, requesters
from paddock.kubevirt.plan.storage.contents import POPULATED_FOR, Lookup, VolumeContent
from paddock.kubevirt.plan.storage.datavolumeclaims import ADOPT
from paddock.kubevirt.plan.storage.requesters import Maker
from paddock.server.builtin import claimsizes
from paddock.server.resources.strategy import CustomStrategy, ObjectView, WriteContext
from paddock.server.security.attributes import Attributes
from paddock.server.security.rbac import Rbac

GROUP = "cdi.kubevirt.io"
_CLAIMS, _SOURCES, _MACHINES = "persistentvolumeclaims", f"datasources.{GROUP}", "virtualmachines.kubevirt.io"
_RULE = "kubevirt/data-volume-target"
T = TypeVar("T")


class DataVolumeStrategy(CustomStrategy):
    """A DataVolume knows who made it."""

    def __init__(self, judge: Rbac) -> None:
        self._judge = judge

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Record the creator in place of the one in the body, and refuse copies that the creator may not make."""
        maker = _maker(new, context)
        _annotate(new, requesters.note(maker.user, maker.groups))
        self._permit(new, context)
        return new

    def prepare_update(self, new: Data, old: Data, context: WriteContext) -> Data:
        """Keep the creator."""
        _annotate(new, (old["metadata"].get("annotations") or {}).get(requesters.MAKER))
        return new

    def validate(self, new: Data, old: Data | None, context: WriteContext) -> Iterator[Finding]:
        """A disk can be as large as it says; the name of its claim is free, or the claim is its own or may be taken over."""
        if old is not None:
            return
        yield from claimsizes.of_data_volume(new, context)
        meta = new["metadata"]
        namespace, name, notes = meta.get("namespace", ""), meta.get("name", ""), meta.get("annotations") or {}
        claim = context.view.get(_CLAIMS, namespace, name) if name else None
        if claim is None or notes.get(ADOPT) == "true" or _is_for(claim, name):
            return
        yield finding.invalid(("metadata", "name"), name, f"Destination PVC {namespace}/{name} already exists", _RULE)

    def _permit(self, new: Data, context: WriteContext) -> None:
        """Raise a `Failure` when something of another namespace would be copied in the name of one who may not."""
        try:
            volume = msgspec.convert(new, DataVolume)
        except msgspec.ValidationError:
            # Its schema says so in a moment.
            return
        namespace = volume.metadata.namespace or ""
        if contents.PREPOPULATED in (volume.metadata.annotations or {}):
            # Nothing is copied.
            return
        found = contents.of_data_volume(volume, _lookup(context.view))
        if not isinstance(found, VolumeContent) or found.kind not in ("pvc", "snapshot") or found.namespace == namespace:
            return
        maker = requesters.maker_of(volume.metadata, namespace)
        if maker is None or not self._may(maker, found):
            who = maker.user if maker is not None else context.user
            why = f"User {who} has insufficient permissions in clone source namespace {found.namespace}; {requesters.FIX}"
            raise failure.forbidden(failure.FailureTarget(volume.metadata.name, GROUP, "datavolumes"), why)

    def _may(self, maker: Maker, content: VolumeContent) -> bool:
        def creates(right: tuple[str, str, str]) -> bool:
            return self._judge.allows(Attributes(maker.user, maker.groups, "create", *right, content.namespace))

        return any(all(map(creates, rights)) for rights in requesters.rights(content.kind))


class DataImportCronStrategy(CustomStrategy):
    """A DataImportCron knows who made it: it copies claims in his name."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        """Record the creator in place of the one in the body."""
        _annotate(new, requesters.note(context.user, context.groups))
        return new

    def prepare_update(self, new: Data, old: Data, context: WriteContext) -> Data:
        """Keep the creator."""
        _annotate(new, requesters.note_of_cron(old))
        return new


def _maker(new: Data, context: WriteContext) -> Maker:
    """Return in whose name a DataVolume asks: a controller makes that of a machine for the machine's service account."""
    meta = new["metadata"]
    owner = next(
        (each for each in meta.get("ownerReferences") or () if each.get("controller") and each.get("kind") == "VirtualMachine"), None
    )
    if owner is None or requesters.MASTERS not in context.groups:
        return Maker(context.user, context.groups)
    machine = context.view.get(_MACHINES, meta.get("namespace", ""), owner["name"]) or {}
    template = ((machine.get("spec") or {}).get("template") or {}).get("spec") or {}
    return requesters.service_account(meta.get("namespace", ""), requesters.account_of(template))


def _annotate(new: Data, maker: str | None) -> None:
    meta = new["metadata"]
    notes = {key: value for key, value in (meta.get("annotations") or {}).items() if key != requesters.MAKER}
    if maker is not None:
        notes[requesters.MAKER] = maker
    if notes or meta.get("annotations"):
        meta["annotations"] = notes


def _is_for(claim: Data, name: str) -> bool:
    meta = claim["metadata"]
    owned = any(each.get("kind") == "DataVolume" and each.get("name") == name for each in meta.get("ownerReferences") or ())
    return owned or (meta.get("annotations") or {}).get(POPULATED_FOR) == name


def _lookup(view: ObjectView) -> Lookup:
    """DataSources as they are now; nothing else is asked for."""

    def reading(resource: str, cls: type[T]) -> Callable[[str, str], T | None]:
        def read(namespace: str, name: str) -> T | None:
            data = view.get(resource, namespace, name)
            return None if data is None else msgspec.convert(data, cls)

        return read

    def none(namespace: str, name: str) -> Any:
        return None

    return Lookup(data_volume=none, data_source=reading(_SOURCES, DataSource), import_source=none, upload_source=none, clone_source=none)
