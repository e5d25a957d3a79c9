"""The outlook for the quotas of manifests, without a server."""

from collections.abc import Iterator
from importlib import import_module

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.dialects import translators as catalog
from paddock.fleet.documents.inputobjects import InputObjects
from paddock.fleet.documents.objects import InputObject
from paddock.fleet.documents.rendering import dialect_of
from paddock.kubernetes import admission
from paddock.kubernetes import catalog as dialects
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.meta.world import DEFAULT_NAMESPACE, ObjectSet
from paddock.kubernetes.quotas.measuring import ObjectUsage, counted
from paddock.kubevirt.plan.machine import commoninstancetypes, commonpreferences, instancetypes
from paddock.kubevirt.plan.quotas.becoming import ObjectKey, PlannedObject, PresentObjects, become
from paddock.kubevirt.plan.quotas.forecast import QuotaForecast, forecast

_QUOTA = ("", "ResourceQuota")


def of_manifests(old: InputObjects, new: InputObjects) -> QuotaForecast:
    """Return the outlook of what is new in manifests, for the quotas that they hold. The status of a quota says what is used."""
    bounds = {_place(each): each for side in (old, new) for each in _of_kind(side)}
    used = {_place(each): each.get("status") for each in _of_kind(old)}
    quotas = [each if each.get("status") else {**each, "status": used.get(place)} for place, each in bounds.items()]
    if not quotas:
        return QuotaForecast()
    find = _finder(old, new)
    before = list(planned(old, PresentObjects(find)))
    pools: dict[ObjectKey, set[str]] = {}
    for each in before:
        if each.parent is not None and "pool" in each.parent.collection:
            pools.setdefault(each.parent, set()).add(each.key.name)
    present = PresentObjects(find, {each.key: each.usage for each in before}, {key: frozenset(names) for key, names in pools.items()})
    return forecast(quotas, planned(new, present), present.usage)


def planned(gathered: InputObjects, present: PresentObjects) -> Iterator[PlannedObject]:
    """Yield everything that objects become, each once, in their order."""
    seen: set[ObjectKey] = set()
    for subject in gathered.subjects:
        for each in _of_subject(subject, gathered.object_set, present):
            if each.key not in seen:
                seen.add(each.key)
                yield each


def key_of(data: Data) -> ObjectKey | None:
    """Return the place of an object; None for a kind that Paddock does not declare."""
    group, _ = admission.split_api_version(data.get("apiVersion"))
    kind = dialects.find(group, str(data.get("kind")))
    if kind is None or not kind.namespaced:
        return None
    metadata = data.get("metadata") or {}
    collection = f"{kind.plural}.{group}" if group else kind.plural
    return ObjectKey(collection, str(metadata.get("namespace") or DEFAULT_NAMESPACE), str(metadata.get("name") or ""))


def _of_subject(subject: InputObject, objects: ObjectSet, present: PresentObjects) -> Iterator[PlannedObject]:
    key, value, dialect = key_of(subject.data), subject.admission.value, dialect_of(subject)
    if key is None:
        return
    if dialect is None or value is None:
        yield from become(key, subject.data, subject.title, present)
        return
    is_front = dialects.dialect(dialect).is_front
    if is_front:
        yield PlannedObject(key, subject.title, ObjectUsage(counted(key.collection)))
    quotas = import_module(module) if (module := dialects.dialect(dialect).quotas) else None
    sources = [value] if quotas is None else list(quotas.machines(value))
    for source in sources:
        if source is not value and (place := key_of(to_data(source))) is not None:
            yield PlannedObject(place, subject.title, ObjectUsage(counted(place.collection)), key)
    try:
        translated = [source for source in sources if quotas is None or not quotas.is_elsewhere(source, objects)]
        made = [to_data(each) for source in translated for each in catalog.to_kubevirt(dialect)(source, objects, Rendering()).value]
    except PaddockError as error:
        yield PlannedObject(ObjectKey("", key.namespace, key.name), subject.title, ObjectUsage({}), key, str(error))
        return
    for data in made:
        place = key_of(data)
        if place is not None:
            is_same = not is_front and place.name == key.name
            status = {"status": subject.data["status"]} if is_same and subject.data.get("status") else {}
            yield from become(place, {**data, **status}, subject.title, present, None if is_same else key)


def _of_kind(gathered: InputObjects) -> Iterator[Data]:
    for each in gathered.subjects:
        group, _ = admission.split_api_version(each.data.get("apiVersion"))
        if (group, each.data.get("kind")) == _QUOTA and (each.data.get("metadata") or {}).get("name"):
            yield each.data


def _place(data: Data) -> tuple[str, str]:
    return data["metadata"].get("namespace") or DEFAULT_NAMESPACE, data["metadata"]["name"]


def _finder(*sides: InputObjects) -> instancetypes.Find:
    """Return what finds the instancetypes and preferences of manifests, and the common ones of KubeVirt."""
    known: dict[ObjectKey, Data] = {}
    for each in (*commoninstancetypes.instancetypes(), *commonpreferences.preferences()):
        known[ObjectKey(instancetypes.resource_of(each["kind"]), "", each["metadata"]["name"])] = each
    kinds = {kind for pair in instancetypes.KINDS.values() for kind in pair}
    for side in sides:
        for subject in side.subjects:
            kind, metadata = subject.data.get("kind"), subject.data.get("metadata") or {}
            if kind in kinds:
                namespace = "" if "Cluster" in str(kind) else metadata.get("namespace") or DEFAULT_NAMESPACE
                known[ObjectKey(instancetypes.resource_of(str(kind)), namespace, str(metadata.get("name")))] = subject.data
    return lambda resource, namespace, name: known.get(ObjectKey(resource, namespace, name))
