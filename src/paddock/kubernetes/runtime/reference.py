"""References from one object to another."""

from typing import Any

import msgspec

from paddock.base.jsondata import Data
from paddock.kubernetes.client.target import Target
from paddock.kubernetes.runtime.cache import CachedOwner, Meta


class InvolvedObject(msgspec.Struct, frozen=True):
    """An object, as events and messages name it."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""
    revision: str = ""

    def data(self) -> Data:
        pairs = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "resourceVersion": self.revision,
        }
        return {name: value for name, value in pairs.items() if value}


def reference(target: Target[Any], meta: Meta) -> InvolvedObject:
    """The reference to an object that was seen."""
    return InvolvedObject(target.api_version, target.kind, meta.namespace or "", meta.name, meta.uid, meta.resourceVersion)


def owner_reference(owner: InvolvedObject, *, controller: bool = True, blocks: bool = True) -> Data:
    """Return the reference in the metadata of an object that is deleted with its owner."""
    data: Data = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
    if controller:
        data["controller"] = True
    if blocks:
        data["blockOwnerDeletion"] = True
    return data


def owned(data: Data, owner: InvolvedObject, *, controller: bool = True) -> Data:
    """The object with its owner among its owners; one that is there already is replaced."""
    metadata = data["metadata"]
    others = [each for each in metadata.get("ownerReferences") or () if each.get("uid") != owner.uid]
    return {**data, "metadata": {**metadata, "ownerReferences": [*others, owner_reference(owner, controller=controller)]}}


def is_owned(meta: Meta, uid: str) -> bool:
    """Return whether an object is deleted with this owner."""
    return any(each.uid == uid for each in meta.ownerReferences or ())


def controlled_by_another(meta: Meta, uid: str) -> CachedOwner | None:
    """The owner that controls an object, when it is not this one."""
    owner = meta.owner
    return owner if owner is not None and owner.uid != uid else None
