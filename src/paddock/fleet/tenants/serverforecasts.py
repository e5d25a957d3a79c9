"""The outlook for the quotas of a server if objects were applied."""

from collections.abc import Iterable, Sequence

import msgspec

from paddock.base.jsondata import Data
from paddock.fleet.documents.inputobjects import InputObjects, collected
from paddock.fleet.documents.objects import InputObject
from paddock.fleet.servers import surroundings
from paddock.fleet.servers.session import ServerSession
from paddock.fleet.tenants import forecasting
from paddock.fleet.tenants.tenancy import QUOTAS
from paddock.kubernetes import admission, catalog
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.options import Selection
from paddock.kubernetes.client.target import Key, Target, plain
from paddock.kubernetes.meta.manifests.document import Document, Position, SourceMap
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.quotas import measuring
from paddock.kubernetes.quotas.measuring import INSTANCES, ObjectUsage
from paddock.kubernetes.schema.kind import AdmissionSettings
from paddock.kubernetes.targets import kind_target
from paddock.kubevirt.plan.machine import instancetypes
from paddock.kubevirt.plan.quotas.becoming import MACHINES, POOLS, ObjectKey, PlannedObject, PresentObjects
from paddock.kubevirt.plan.quotas.forecast import QuotaForecast, forecast

_VMS = kind_target("kubevirt.io", "VirtualMachine")
_VMIS = kind_target("kubevirt.io", "VirtualMachineInstance")
# An instancetype is found in one round, those of machines that it brings to light in the next.
_ROUNDS = 4


async def on_server(session: ServerSession, objects: InputObjects) -> QuotaForecast:
    """Return the outlook of objects for the quotas of their namespaces, as far as the user may read them."""
    keys = [forecasting.key_of(each.data) for each in objects.subjects]
    quotas = await _quotas(session, sorted({each.namespace for each in keys if each is not None}))
    if not quotas:
        return QuotaForecast()
    objects = msgspec.structs.replace(objects, object_set=objects.object_set.within(await around(session, objects)))
    present = await _present(session, sorted({each["metadata"]["namespace"] for each in quotas}))
    found = await _planned(session, objects, present)
    usage = dict(present.usage)
    bounded = {each["metadata"]["namespace"] for each in quotas}
    for each in found:
        if each.key not in usage and each.key.namespace in bounded and (there := await _usage(session, each.key)) is not None:
            usage[each.key] = there
    return forecast(quotas, found, usage)


async def of_data(session: ServerSession, data: Data) -> QuotaForecast:
    """Return the outlook of one object as it would be stored."""
    document = Document("server", data, SourceMap(None, None, ""), Position(0, 0), ())
    subject = InputObject(document, admission.admit(data, AdmissionSettings()))
    return await on_server(session, collected([subject], lambda _: None))


async def around(session: ServerSession, objects: InputObjects) -> list[Resource]:
    """Return what objects refer to on the server, as far as translations to KubeVirt look at it."""
    found = [await surroundings.read(session.client, each.data, surroundings.TRANSLATED) for each in objects.subjects]
    return [resource for resources in found for resource in resources]


async def _quotas(session: ServerSession, namespaces: Iterable[str]) -> list[Data]:
    found: list[Data] = []
    for namespace in namespaces:
        try:
            found += (await session.client.list(QUOTAS, Selection(namespace=namespace))).items
        except (Forbidden, NotFound):
            continue
    return found


async def _present(session: ServerSession, namespaces: Iterable[str]) -> PresentObjects:
    """Return the machines and instances of some namespaces."""
    usage: dict[ObjectKey, ObjectUsage] = {}
    replicas: dict[ObjectKey, set[str]] = {}
    for namespace in namespaces:
        for each in (await session.client.list(_VMIS, Selection(namespace=namespace))).items:
            usage[ObjectKey(INSTANCES, namespace, each["metadata"]["name"])] = measuring.measured(INSTANCES, each)
        for each in (await session.client.list(_VMS, Selection(namespace=namespace))).items:
            name = each["metadata"]["name"]
            usage[ObjectKey(MACHINES, namespace, name)] = ObjectUsage(measuring.counted(MACHINES))
            for owner in each["metadata"].get("ownerReferences") or ():
                if owner.get("kind") == "VirtualMachinePool":
                    replicas.setdefault(ObjectKey(POOLS, namespace, owner["name"]), set()).add(name)
    return PresentObjects(lambda *_: None, usage, {key: frozenset(names) for key, names in replicas.items()})


async def _planned(session: ServerSession, objects: InputObjects, present: PresentObjects) -> Sequence[PlannedObject]:
    """Return everything that objects become. Instancetypes that are named on the way are fetched."""
    known: dict[ObjectKey, Data | None] = {}
    for _ in range(_ROUNDS):
        asked: set[ObjectKey] = set()

        def find(resource: str, namespace: str, name: str, asked: set[ObjectKey] = asked) -> Data | None:
            key = ObjectKey(resource, namespace, name)
            if key not in known:
                asked.add(key)
            return known.get(key)

        found = list(forecasting.planned(objects, msgspec.structs.replace(present, find=find)))
        if not asked:
            break
        for key in asked:
            known[key] = await _find(session, key)
    return found


async def _find(session: ServerSession, key: ObjectKey) -> Data | None:
    plural, _, group = key.collection.partition(".")
    if key.collection == instancetypes.REVISIONS:
        target = plain(group, "v1", plural, "ControllerRevision")
    else:
        kind = next(each for pair in instancetypes.KINDS.values() for each in pair if instancetypes.resource_of(each) == key.collection)
        target = plain(group, "v1beta1", plural, kind, namespaced=bool(key.namespace))
    try:
        return await session.client.find(target, Key(key.namespace, key.name))
    except Forbidden:
        return None


async def _usage(session: ServerSession, key: ObjectKey) -> ObjectUsage | None:
    """Return what an object takes that is there. Of most objects only the metadata is read."""
    target = _target(key)
    if target is None:
        return None
    try:
        if measuring.is_weighed(key.collection):
            return measuring.measured(key.collection, await session.client.get(target, Key(key.namespace, key.name)))
        await session.client.metadata(target, Key(key.namespace, key.name))
    except (NotFound, Forbidden):
        return None
    return ObjectUsage(measuring.counted(key.collection))


def _target(key: ObjectKey) -> Target[Data] | None:
    plural, _, group = key.collection.partition(".")
    found = next((each for each in catalog.facts() if (each.group, each.plural) == (group, plural)), None)
    return plain(group, found.storage_version, plural, found.kind) if found is not None else None
