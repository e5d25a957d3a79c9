"""The caches of both APIs: what users wrote in one, who refers to a DataSource there, and the cluster. Nothing is fetched."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from paddock.dialects.kubermatic.controllers import targets
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.core.configmap import values
from paddock.kubernetes.core.secret import decoded
from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.meta.world import ObjectSet, namespace_of
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject, Index
from paddock.kubernetes.runtime.controller import Keys
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubevirt.kinds.datasource import DataSource
from paddock.kubevirt.kinds.datavolume_kind import DataVolume
from paddock.kubevirt.kinds.extendedsources import names_read, references
from paddock.kubevirt.kinds.gates import ClusterGates, of_installations
from paddock.kubevirt.kinds.pool import VirtualMachinePool
from paddock.kubevirt.kinds.virtualmachine import DataVolumeTemplate, VirtualMachine

_BY_SOURCE = "what they refer to"
CONSUMING: tuple[Target[Any], ...] = (targets.MACHINES, targets.POOLS, targets.VOLUMES)


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
        self.sources = informers.of(targets.SOURCES)
        self.informers: dict[str, Informer] = {each.plural: informers.of(each) for each in CONSUMING}
        self.sources.cache.index(_BY_SOURCE, _named)
        for target in CONSUMING:
            self.informers[target.plural].cache.index(_BY_SOURCE, _referred(target))

    def source(self, key: Key) -> DataSource | None:
        seen = self.sources.cache.get(key)
        return None if seen is None else seen.read(targets.SOURCES)

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
    to = seen.read(targets.SOURCES).spec.source.dataSource
    return () if to is None else (str(Key(to.namespace or seen.meta.namespace or "", to.name)),)


class Views:
    """The caches of both sides. What users wrote of a DataSource goes before one of the cluster of the same name."""

    def __init__(self, front: Informers, back: Informers) -> None:
        self.consumers = Consumers(front)
        self.images = front.of(targets.IMAGES, optional=True)
        self.back: dict[str, Informer] = {each.plural: back.of(each) for each in CONSUMING}
        self.back[targets.SOURCES.plural] = back.of(targets.SOURCES)
        self.secrets = back.of(targets.SECRETS)
        self.config_maps = back.of(targets.CONFIG_MAPS)
        self.back[targets.CONFIG_MAPS.plural] = self.config_maps
        self.installations = back.of(targets.INSTALLATIONS, optional=True)

    def front(self, target: Target[Any]) -> Informer:
        """The informer of what users wrote."""
        return self.consumers.sources if target is targets.SOURCES else self.consumers.informers[target.plural]

    def find(self, namespace: str, name: str) -> DataSource | None:
        """A DataSource, wherever it is."""
        key = Key(namespace, name)
        found = self.consumers.source(key)
        if found is not None:
            return found
        seen = self.back[targets.SOURCES.plural].cache.get(key)
        return None if seen is None else seen.read(targets.SOURCES)

    def gates(self) -> ClusterGates | None:
        """Return the feature gates of the cluster's KubeVirt, as far as it shows them."""
        return of_installations(orjson.loads(seen.raw) for seen in self.installations.cache)

    def objects_of(self, *resources: Resource) -> ObjectSet:
        """Everything that objects refer to."""
        found: dict[tuple[str, str, str], Resource] = {}
        for resource in resources:
            for each in (resource, *self._named(resource)):
                found[each.kind, namespace_of(each), each.metadata.name] = each
        return ObjectSet(found.values(), complete=True)

    def _named(self, resource: Resource) -> Iterator[Resource]:
        if isinstance(resource, DataSource):
            yield from self._around(resource)
            return
        namespace = namespace_of(resource)
        templates = templates_of(resource)
        for reference in references(templates):
            place = reference.namespace or namespace
            image = self.images.cache.get(Key(place, reference.name)) if reference.kind == "Image" else None
            if image is not None:
                yield image.read(targets.IMAGES)
            found = self.find(place, reference.name)
            if found is not None:
                yield found
                yield from self._around(found)
        for template in templates:
            if template.spec.source is not None:
                yield from self._read(namespace, names_read(template.spec.source.http))

    def _around(self, source: DataSource) -> Iterator[Resource]:
        """Yield a DataSource, the one that it names, and the objects that they read."""
        namespace, to = namespace_of(source), source.spec.source.dataSource
        other = self.find(to.namespace or namespace, to.name) if to is not None else None
        for each in (source, other):
            if each is not None:
                yield each
                yield from self._read(namespace_of(each), names_read(each.spec.source.http))

    def _read(self, namespace: str, names: Iterable[str]) -> Iterator[Resource]:
        for name in names:
            secret, config_map = self.secrets.cache.get(Key(namespace, name)), self.config_maps.cache.get(Key(namespace, name))
            if secret is not None:
                yield secret.read(targets.SECRETS)
            if config_map is not None:
                yield config_map.read(targets.CONFIG_MAPS)

    def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        """Return the content of a Secret of the cluster."""
        seen = self.secrets.cache.get(Key(namespace, name))
        return None if seen is None else decoded(seen.read(targets.SECRETS))

    def config_map(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        """Return the content of a ConfigMap of the cluster."""
        seen = self.config_maps.cache.get(Key(namespace, name))
        return None if seen is None else values(seen.read(targets.CONFIG_MAPS))

    def reading(self, change: CacheChange) -> Iterator[Key]:
        """The DataSources that read the Secret or the ConfigMap that changed."""
        key = change.seen.key
        for seen in self.consumers.sources.cache.by("namespace", key.namespace):
            if key.name in names_read(seen.read(targets.SOURCES).spec.source.http):
                yield seen.key
