"""The server's own kinds, shown as definitions: `kubectl get crd` lists what is served, and installers find what they wait for.

Only a marker of each is stored, for its metadata; everything else is what the running server declares, so a new release changes
it without a write. Clients may label and annotate these definitions. Their spec and status stay, and they cannot be deleted.
"""

from collections.abc import Iterable
from functools import cached_property, partial

import orjson

from paddock.base.jsondata import Data
from paddock.kubernetes import catalog
from paddock.kubernetes.schema.generate import crd
from paddock.kubernetes.schema.kind import KindFacts
from paddock.server.context import ServerParts
from paddock.server.custom.definition import COLLECTION, GROUP, KIND
from paddock.server.objects.encoding import decode, stamp
from paddock.server.resources.registry import ResourceRegistry
from paddock.server.store.contract import StoreKey

API_VERSION = f"{GROUP}/v1"
_MANAGER = "paddock"


class _Own:
    """One kind of the server."""

    def __init__(self, kind: KindFacts) -> None:
        self._kind = kind

    @cached_property
    def spec(self) -> bytes:
        """The generated spec; made when somebody looks, kept as text because that is a tenth of the memory."""
        return orjson.dumps(crd.manifest(catalog.declaration(self._kind))["spec"])

    def versions(self) -> tuple[str, ...]:
        return tuple(each.name for each in self._kind.versions)


class OwnKinds:
    """The definitions of the kinds that the server serves by itself."""

    def __init__(self, kinds: Iterable[KindFacts], registry: ResourceRegistry) -> None:
        served = (each for each in kinds if crd.wanted(each) and registry.find(each.group, each.versions[0].name, each.plural))
        self._own = {crd.name_of(each): _Own(each) for each in served}

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._own

    def shown(self, data: Data) -> Data:
        """A stored definition as clients see it."""
        own = self._own.get(data["metadata"].get("name", ""))
        if own is None:
            return data
        spec = orjson.loads(own.spec)
        return {**data, "spec": spec, "status": _status(spec, data["metadata"].get("creationTimestamp") or "")}

    def stored(self, data: Data) -> Data:
        """The part of a definition that is kept."""
        if data["metadata"].get("name") not in self._own:
            return data
        return {key: value for key, value in data.items() if key not in ("spec", "status")}

    def ignored(self, sent: Data) -> str:
        """Return a warning for a client whose spec was ignored."""
        name = sent["metadata"]["name"]
        versions = (sent.get("spec") or {}).get("versions") or ()
        strange = sorted({str(each.get("name")) for each in versions if each.get("served")} - set(self._own[name].versions()))
        text = f"{name} is served by Paddock itself: its schema and versions stay as they are, only labels and annotations are taken"
        return f"{text}; not served here: {', '.join(strange)}" if strange else text

    async def ensure(self, parts: ServerParts) -> None:
        """Store the markers that are missing, and remove those of kinds that are served no longer."""
        found = {record.key.name: record for record in parts.store.scan(COLLECTION)}
        pending = []
        for name in self._own:
            before = found.get(name)
            old = None if before is None else decode(before.value)
            if old is not None and is_marker(old):
                continue
            new = self._marker(name, parts) if old is None else self.stored(old)
            key = StoreKey(COLLECTION, "", name)
            pending.append(parts.store.put(key, before.revision if before else 0, partial(stamp, new)))
        for name, record in found.items():
            if name not in self._own and is_marker(decode(record.value)):
                pending.append(parts.store.delete(record.key, record.revision, partial(_unchanged, record.value)))
        for each in pending:
            await each.committed()

    def _marker(self, name: str, parts: ServerParts) -> Data:
        now = parts.clock.now()
        owned = {"manager": _MANAGER, "operation": "Update", "apiVersion": API_VERSION, "time": now, "fieldsType": "FieldsV1"}
        metadata = {"name": name, "uid": parts.clock.uid(), "creationTimestamp": now, "generation": 1}
        metadata["managedFields"] = [{**owned, "fieldsV1": {"f:spec": {}}}]
        return {"apiVersion": API_VERSION, "kind": KIND.kind, "metadata": metadata}


def _unchanged(value: bytes, _: int) -> bytes:
    return value


def is_marker(stored: Data) -> bool:
    """Return whether a stored definition stands for a kind of the server's own."""
    return "spec" not in stored


def _status(spec: Data, since: str) -> Data:
    said = (
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    )
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": since, "reason": reason, "message": text} for kind, reason, text in said
    ]
    stored = [each["name"] for each in spec["versions"] if each["storage"]]
    return {"conditions": conditions, "acceptedNames": spec["names"], "storedVersions": stored}
