"""Gathers what an explanation asks for: a few requests at a time, each thing once.

Which objects matter is decided in `paddock.fleet.diagnosis`; here they are fetched. Of Secrets and ConfigMaps it asks for the metadata.
Objects that the user may not read are noted and nothing else.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

import orjson

from paddock.base.clock import Clock
from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.fleet.diagnosis import walk
from paddock.fleet.diagnosis.scene import Ask, ChildQuery, EventQuery, ObjectPlace, ObjectSnapshot
from paddock.kubernetes import catalog
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Forbidden, NotFound, Unauthorized, Unreachable
from paddock.kubernetes.client.options import Selection
from paddock.kubernetes.client.target import EVENTS, Key, Target, plain
from paddock.kubernetes.schema.dialect import KindId
from paddock.kubevirt.plan.changes.references import CONFIG_MAP, SECRET

# A chain that is longer than this many steps tells nothing new.
_MOST_ROUNDS = 12
_AT_A_TIME = 8
# Kinds that nobody declares here: their versions and plurals. None of them is without a namespace but those that say so.
_PLAIN: Mapping[KindId, tuple[str, str, bool]] = {
    ("", "Endpoints"): ("v1", "endpoints", True),
    ("", "Node"): ("v1", "nodes", False),
    ("", "Pod"): ("v1", "pods", True),
    ("scheduling.k8s.io", "PriorityClass"): ("v1", "priorityclasses", False),
}
_METADATA_ONLY = (SECRET, CONFIG_MAP)


class ServerReader:
    """One look at a server."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._turns = asyncio.Semaphore(_AT_A_TIME)
        # group -> the versions that the server has, the preferred one first; None until it was asked
        self._versions: Mapping[str, tuple[str, ...]] | None = None
        self._objects: dict[ObjectPlace, Data] = {}
        self._missing: set[ObjectPlace] = set()
        self._blind: dict[Ask, str] = {}
        self._absent: set[KindId] = set()
        self._lists: dict[ChildQuery, tuple[ObjectPlace, ...]] = {}
        self._events: dict[EventQuery, tuple[Data, ...]] = {}

    async def find(self, candidates: Sequence[ObjectPlace]) -> list[ObjectPlace]:
        """Those of the objects that are there, in their order. Raises `Forbidden` when the user may read none."""
        await self._ask(candidates)
        found = [each for each in candidates if each in self._objects]
        if not found and self._blind:
            refused = next(iter(self._blind.values()))
            raise ObjectUnavailable(f"cannot look at {candidates[0].name}", why=refused, fix="ask for the right to get it")
        return found

    async def gather(self, start: ObjectPlace) -> ObjectSnapshot:
        """Everything that an explanation of the object needs."""
        for _ in range(_MOST_ROUNDS):
            scene = self._scene()
            wanted = walk.asks(scene, start)
            if not wanted:
                break
            await self._ask(wanted)
        return self._scene()

    def _scene(self) -> ObjectSnapshot:
        return ObjectSnapshot(
            now=self._clock.seconds(),
            objects=dict(self._objects),
            missing=frozenset(self._missing),
            blind=dict(self._blind),
            absent=frozenset(self._absent),
            lists=dict(self._lists),
            events=dict(self._events),
        )

    # --- asking -----------------------------------------------------------------------------------------------------------

    async def _ask(self, asks: Iterable[Ask]) -> None:
        if self._versions is None:
            self._versions = await self._served()
        await asyncio.gather(*(self._one(each) for each in sorted(asks, key=str)))

    async def _served(self) -> Mapping[str, tuple[str, ...]]:
        """The groups that the server has."""
        try:
            said = orjson.loads(await self._client.request("GET", "/apis"))
        except (Forbidden, NotFound):
            # Whoever may not ask is answered with the versions that are known here.
            return {}
        return {each["name"]: _versions_of(each) for each in said.get("groups") or ()}

    async def _one(self, asked: Ask) -> None:
        async with self._turns:
            try:
                if isinstance(asked, EventQuery):
                    await self._about(asked)
                elif isinstance(asked, ChildQuery):
                    await self._children(asked)
                else:
                    await self._object(asked)
            except (Forbidden, Unauthorized) as error:
                self._blind[asked] = str(error)
            except Unreachable:
                raise
            except PaddockError as error:
                self._blind[asked] = str(error)

    async def _object(self, ref: ObjectPlace) -> None:
        target = self._target(ref.id)
        if target is None:
            self._absent.add(ref.id)
            return
        key = Key(ref.namespace, ref.name)
        try:
            only = ref.id in _METADATA_ONLY
            self._objects[ref] = await (self._client.metadata(target, key) if only else self._client.get(target, key))
        except NotFound:
            self._missing.add(ref)

    async def _children(self, asked: ChildQuery) -> None:
        target = self._target((asked.group, asked.kind))
        if target is None:
            self._absent.add((asked.group, asked.kind))
            return
        selection = Selection(namespace=asked.namespace, labels=asked.labels)
        try:
            found = (await self._client.list(target, selection)).items
        except NotFound:
            found = []
        refs = []
        for data in found:
            ref = ObjectPlace(asked.group, asked.kind, data["metadata"].get("namespace", ""), data["metadata"]["name"])
            self._objects[ref] = data
            refs.append(ref)
        self._lists[asked] = tuple(refs)

    async def _about(self, asked: EventQuery) -> None:
        fields = f"involvedObject.name={asked.name}"
        found = await self._client.list(EVENTS, Selection(namespace=asked.namespace, fields=fields))
        self._events[asked] = tuple(found.items)

    def _target(self, id: KindId) -> Target[Data] | None:
        """Return the target of a kind, or None if the server does not have it."""
        known = _PLAIN.get(id)
        if known is not None:
            return plain(id[0], *known[:2], id[1], namespaced=known[2])
        kind = catalog.find(*id)
        if kind is None or (self._versions and id[0] and id[0] not in self._versions):
            return None
        served, own = (self._versions or {}).get(id[0], ()), [each.name for each in kind.versions]
        version = next((each for each in (kind.storage_version, *own, *served) if each in served), kind.storage_version)
        return plain(id[0], version, kind.plural, id[1], namespaced=kind.namespaced)


def _versions_of(group: Data) -> tuple[str, ...]:
    listed = [each["version"] for each in group.get("versions") or ()]
    preferred = (group.get("preferredVersion") or {}).get("version", "")
    return tuple(dict.fromkeys(each for each in (preferred, *listed) if each))


class ObjectUnavailable(PaddockError):
    """The user may not read the object itself."""
