"""From definitions to resources: what a CustomResourceDefinition makes the server serve, kept current with the store.

The registry is changed in the commit of a definition's write, before its writer is answered: discovery, OpenAPI and the
resource itself are there when the call returns.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.kubernetes.meta.jsonpath import BadPath, compile_path
from paddock.kubernetes.schema.kind import AGE, Column, Scale
from paddock.server.context import ServerParts
from paddock.server.custom import naming
from paddock.server.custom.conversion import Webhook, WebhookConverter
from paddock.server.custom.definition import COLLECTION
from paddock.server.custom.naming import NamesInUse
from paddock.server.custom.owndefinitions import OwnKinds, is_marker
from paddock.server.custom.pipeline import StructuralPipeline
from paddock.server.objects.encoding import decode
from paddock.server.resources.registry import version_order
from paddock.server.resources.resource import ALL_VERBS, ServedResource, Subresource
from paddock.server.resources.strategy import CustomStrategy, WriteContext
from paddock.server.store.contract import CommittedWrite
from paddock.server.webhooks import Caller, ServiceView

_ENDING_VERBS = ("delete", "deletecollection", "get", "list", "watch")
_SUBRESOURCE_VERBS = ("get", "patch", "update")
# A path that leads nowhere, for a column whose own path nobody can read.
_NOWHERE = ".\u0000"


class EndingStrategy(CustomStrategy):
    """Objects of a definition that is being deleted: no new ones."""

    def prepare_create(self, new: Data, context: WriteContext) -> Data:
        raise failure.method_not_allowed("create not allowed while custom resource definition is terminating")


_CUSTOM, _ENDING = CustomStrategy(), EndingStrategy()


def is_served(crd: Data) -> bool:
    """Return whether a definition's names are accepted and it is established."""
    status = crd.get("status") or {}
    return naming.holds(status, "NamesAccepted") and naming.holds(status, "Established")


def is_ending(crd: Data) -> bool:
    """Return whether a definition is being deleted."""
    return bool(crd["metadata"].get("deletionTimestamp"))


def collection_of(crd: Data) -> str:
    """Return the collection of a definition's objects, which has its name."""
    return str(crd["metadata"]["name"])


class ConversionContext(NamedTuple):
    """The parts that a webhook call needs."""

    caller: Caller
    view: ServiceView


class DefinedResources:
    """The resources of one definition."""

    def __init__(self, crd: Data, revision: int, former: "DefinedResources | None", asking: ConversionContext) -> None:
        self.crd = crd
        spec = crd["spec"]
        versions = [each for each in spec["versions"] if (each.get("schema") or {}).get("openAPIV3Schema") is not None]
        self._pipelines = _pipelines(versions, former)
        self.storage = next(each["name"] for each in spec["versions"] if each.get("storage"))
        converts = (spec.get("conversion") or {}).get("strategy") == "Webhook"
        self.webhook = Webhook(crd, self._pipelines, asking.caller, asking.view) if converts and len(versions) > 1 else None
        offered = [each for each in versions if each.get("served")]
        uniform = len({id(each) for each in self._pipelines.values()}) == 1
        self.settled_from = 0 if not uniform else self._settled_from(revision, former)
        self.resources = tuple(self._resource(each, uniform) for each in offered) if is_served(crd) else ()
        stored = next((each for each in versions if each["name"] == self.storage), None)
        # What deletes the objects of a definition that is not served.
        self.any_resource = self._resource(stored, uniform) if stored is not None else None

    def _settled_from(self, revision: int, former: "DefinedResources | None") -> int:
        """Objects written before this revision may lack a default."""
        if former is not None and former._pipelines.get(former.storage) is self._pipelines.get(self.storage):
            return former.settled_from
        return revision

    def _resource(self, version: Data, uniform: bool) -> ServedResource:
        spec, names = self.crd["spec"], self.crd["spec"]["names"]
        pipeline = self._pipelines[version["name"]]
        below = version.get("subresources") or {}
        scale = below.get("scale")
        subresources = [Subresource("status", _SUBRESOURCE_VERBS)] if below.get("status") is not None else []
        if scale is not None:
            subresources.append(Subresource("scale", _SUBRESOURCE_VERBS, "Scale", "autoscaling/v1"))
        return ServedResource(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            kind=names["kind"],
            collection=collection_of(self.crd),
            pipeline=pipeline,
            strategy=_ENDING if is_ending(self.crd) else _CUSTOM,
            stored_version=f"{spec['group']}/{self.storage}",
            singular=names.get("singular") or "",
            lists=names.get("listKind") or "",
            namespaced=spec["scope"] == "Namespaced",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            verbs=ALL_VERBS,
            offered=_ENDING_VERBS if is_ending(self.crd) else (),
            status=below.get("status") is not None,
            scale=None if scale is None else _scale(scale),
            subresources=tuple(subresources),
            columns=tuple(_columns(version)),
            selectable=tuple(each["jsonPath"].removeprefix(".") for each in version.get("selectableFields") or ()),
            deprecation=_deprecation(spec, version),
            from_stored=self._reader(pipeline, uniform=uniform),
            to_stored=None if uniform or version["name"] == self.storage else self._pipelines[self.storage].prune,
            conversion=None if self.webhook is None else WebhookConverter(self.webhook, f"{spec['group']}/{version['name']}"),
            settled_from=self.settled_from,
        )

    def _reader(self, pipeline: StructuralPipeline, *, uniform: bool) -> Callable[[Data], Data] | None:
        """Return a reader of stored objects: defaults come from the stored version, members from the requested one."""
        if uniform:
            # A definition that has never changed has no objects of another schema.
            return pipeline.settle if self.crd["metadata"].get("generation") != 1 else None
        storage = self._pipelines[self.storage]

        def read(data: Data) -> Data:
            own = self._pipelines.get(data["apiVersion"].rpartition("/")[2], storage)
            settled = own.settle(data)
            return settled if own is pipeline else pipeline.prune(settled)

        return read


def _pipelines(versions: list[Data], former: DefinedResources | None) -> dict[str, StructuralPipeline]:
    """A pipeline for each version; versions with one schema share it, and an unchanged schema keeps the one it had."""
    known = list(dict.fromkeys(former._pipelines.values())) if former is not None else []
    made: dict[str, StructuralPipeline] = {}
    for version in versions:
        schema = version["schema"]["openAPIV3Schema"]
        found = next((each for each in known if each.schema == schema), None)
        if found is None:
            found = StructuralPipeline(schema)
            known.append(found)
        made[version["name"]] = found
    return made


def _scale(said: Data) -> Scale:
    return Scale(said["specReplicasPath"], said["statusReplicasPath"], said.get("labelSelectorPath") or "")


def _columns(version: Data) -> Iterator[Column]:
    columns = version.get("additionalPrinterColumns")
    if not columns:
        yield AGE
        return
    for each in columns:
        path = each["jsonPath"]
        try:
            compile_path(path)
        except BadPath:
            path = _NOWHERE
        text = each.get("description") or f"Custom resource definition column (in JSONPath format): {each['jsonPath']}"
        yield Column(each["name"], path, each["type"], text, (each.get("priority") or 0) > 0, each.get("format") or "")


def _deprecation(spec: Data, version: Data) -> str:
    if not version.get("deprecated"):
        return ""
    kind = spec["names"]["kind"]
    text = f"{spec['group']}/{version['name']} {kind} is deprecated"
    better = [each["name"] for each in spec["versions"] if each.get("served") and not each.get("deprecated")]
    better = sorted((each for each in better if version_order(each) < version_order(version["name"])), key=version_order)
    return str(version.get("deprecationWarning") or (f"{text}; use {spec['group']}/{better[0]} {kind}" if better else text))


class DefinitionServer:
    """All definitions of a store, as resources of a registry."""

    def __init__(self, parts: ServerParts, own: OwnKinds) -> None:
        self._own = own
        self._registry = registry = parts.registry
        self._following = parts.following
        self._asking = ConversionContext(parts.caller, parts.view)
        store = parts.store
        self._made: dict[str, DefinedResources] = {}
        for record in store.scan(COLLECTION):
            crd = decode(record.value)
            if record.key.name not in own and not is_marker(crd):
                self._made[record.key.name] = DefinedResources(crd, record.revision, None, self._asking)
        loaded = [resource for made in self._made.values() for resource in made.resources]
        if loaded:
            registry.add(*loaded)
        store.follow(self._changed)

    def made(self, name: str) -> DefinedResources | None:
        """Return the resources of a definition, or None."""
        return self._made.get(name)

    def names(self) -> tuple[str, ...]:
        return tuple(self._made)

    def builtin(self, group: str) -> Iterator[NamesInUse]:
        """The names that resources without a definition have in a group."""
        custom = {id(resource) for made in self._made.values() for resource in made.resources}
        for each in self._registry:
            if each.group == group and id(each) not in custom:
                yield NamesInUse(each.plural, each.singular, each.short_names, each.kind, each.list_kind)

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        for change in changes:
            if change.key.collection == COLLECTION and change.key.name not in self._own:
                self._take(change)

    def _take(self, change: CommittedWrite) -> None:
        name = change.key.name
        former = self._made.pop(name, None)
        if not change.deleted:
            crd = decode(change.value)
            if former is not None and _same(former.crd, crd):
                former.crd = crd
                self._made[name] = former
                return
            self._made[name] = DefinedResources(crd, change.revision, former, self._asking)
        if former is not None and former.webhook is not None:
            former.webhook.retired = True
        made = self._made.get(name)
        old, new = (former.resources if former else ()), (made.resources if made else ())
        offered = {(each.group, each.version, each.plural) for each in new}
        self._registry.replace([each for each in old if (each.group, each.version, each.plural) not in offered], new)
        if old:
            self._following.end_collection(name)


def _same(former: Data, crd: Data) -> bool:
    """Return whether nothing that is served has changed: a status that says the same."""
    return former["spec"] == crd["spec"] and is_served(former) == is_served(crd) and is_ending(former) == is_ending(crd)
