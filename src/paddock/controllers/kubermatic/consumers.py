"""Who refers to a DataSource: machines, pools and DataVolumes, and DataSources that name it; found in caches by an index."""

from collections.abc import Iterable, Iterator
from typing import Any

from paddock.client.target import Key, Target
from paddock.controllers.kubermatic import kinds
from paddock.dialects.kubermatic.sources import references
from paddock.dialects.kubevirt.datasource import DataSource
from paddock.dialects.kubevirt.datavolume_kind import DataVolume
from paddock.dialects.kubevirt.pool import VirtualMachinePool
from paddock.dialects.kubevirt.virtualmachine import DataVolumeTemplate, VirtualMachine
from paddock.meta.objects import Resource
from paddock.runtime.cache import CacheChange, CachedObject, Index
from paddock.runtime.controller import Keys
from paddock.runtime.informer import Informer
from paddock.runtime.informers import Informers

_BY_SOURCE = "what they refer to"
CONSUMING: tuple[Target[Any], ...] = (kinds.MACHINES, kinds.POOLS, kinds.VOLUMES)


def templates_of(resource: Resource) -> list[DataVolumeTemplate]:
    """The DataVolumes of an object, as templates."""
    if isinstance(resource, VirtualMachine):
        return resource.spec.dataVolumeTemplates or []
    if isinstance(resource, VirtualMachinePool):
        return resource.spec.virtualMachineTemplate.spec.dataVolumeTemplates or []
    return [DataVolumeTemplate(spec=resource.spec)] if isinstance(resource, DataVolume) else []


class Consumers:
    """The informers of what refers to DataSources, and of DataSources."""

    def __init__(self, informers: Informers) -> None:
        self.sources = informers.of(kinds.SOURCES)
        self.informers: dict[str, Informer] = {each.plural: informers.of(each) for each in CONSUMING}
        self.sources.cache.index(_BY_SOURCE, _named)
        for target in CONSUMING:
            self.informers[target.plural].cache.index(_BY_SOURCE, _referred(target))

    def source(self, key: Key) -> DataSource | None:
        """A DataSource."""
        seen = self.sources.cache.get(key)
        return None if seen is None else seen.read(kinds.SOURCES)

    def naming(self, key: Key) -> Iterator[Key]:
        """The DataSource itself and those that name it."""
        yield key
        for seen in self.sources.cache.by(_BY_SOURCE, str(key)):
            yield seen.key

    def keys(self, target: Target[Any], source: Key) -> Iterator[Key]:
        """The objects of a kind that refer to a DataSource, directly or through another."""
        cache = self.informers[target.plural].cache
        for named in self.naming(source):
            for seen in cache.by(_BY_SOURCE, str(named)):
                yield seen.key

    def of(self, source: Key) -> Iterator[Resource]:
        """Everything that refers to a DataSource, and the DataSources through which it does."""
        for named in self.naming(source):
            found = self.source(named)
            if found is not None:
                yield found
        for target in CONSUMING:
            for key in dict.fromkeys(self.keys(target, source)):
                seen = self.informers[target.plural].cache.get(key)
                if seen is not None:
                    yield seen.read(target)

    def named_by(self, target: Target[Any]) -> Keys:
        """For changes of a kind: the DataSources that an object refers to, before and after, and those that they name."""
        index = _referred(target)

        def keys(change: CacheChange) -> Iterable[Key]:
            found: dict[Key, None] = {}
            for seen in (change.old, change.new):
                for text in index(seen) if seen is not None else ():
                    key = Key.of(text)
                    found[key] = None
                    source = self.source(key)
                    to = source.spec.source.dataSource if source is not None else None
                    if to is not None:
                        found[Key(key.namespace, to.name)] = None
            return found

        return keys


def _referred(target: Target[Any]) -> Index:
    def index(seen: CachedObject) -> Iterable[str]:
        if b'"sourceRef"' not in seen.raw:
            return ()
        place = seen.meta.namespace or ""
        named = references(templates_of(seen.read(target)))
        return tuple(dict.fromkeys(str(Key(each.namespace or place, each.name)) for each in named))

    return index


def _named(seen: CachedObject) -> Iterable[str]:
    to = seen.read(kinds.SOURCES).spec.source.dataSource
    return () if to is None else (str(Key(to.namespace or seen.meta.namespace or "", to.name)),)
