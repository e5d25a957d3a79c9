"""What is seen of both APIs: what users wrote in one, and the cluster. Nothing is fetched; everything is in caches."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from paddock.client.target import Key, Target
from paddock.controllers.kubermatic import kinds
from paddock.controllers.kubermatic.consumers import CONSUMING, Consumers, templates_of
from paddock.dialects.core.configmap import values
from paddock.dialects.core.secret import decoded
from paddock.dialects.kubermatic.sources import names_read, references
from paddock.dialects.kubevirt.datasource import DataSource
from paddock.meta.objects import Resource
from paddock.meta.world import ObjectSet, namespace_of
from paddock.runtime.cache import CacheChange
from paddock.runtime.informer import Informer
from paddock.runtime.informers import Informers


class Views:
    """The caches of both sides. What users wrote of a DataSource goes before one of the cluster of the same name."""

    def __init__(self, front: Informers, back: Informers) -> None:
        self.consumers = Consumers(front)
        self.images = front.of(kinds.IMAGES, optional=True)
        self.back: dict[str, Informer] = {each.plural: back.of(each) for each in CONSUMING}
        self.back[kinds.SOURCES.plural] = back.of(kinds.SOURCES)
        self.secrets = back.of(kinds.SECRETS)
        self.config_maps = back.of(kinds.CONFIG_MAPS)
        self.back[kinds.CONFIG_MAPS.plural] = self.config_maps

    def front(self, target: Target[Any]) -> Informer:
        """The informer of what users wrote."""
        return self.consumers.sources if target is kinds.SOURCES else self.consumers.informers[target.plural]

    def find(self, namespace: str, name: str) -> DataSource | None:
        """A DataSource, wherever it is."""
        key = Key(namespace, name)
        found = self.consumers.source(key)
        if found is not None:
            return found
        seen = self.back[kinds.SOURCES.plural].cache.get(key)
        return None if seen is None else seen.read(kinds.SOURCES)

    def world(self, *resources: Resource) -> ObjectSet:
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
                yield image.read(kinds.IMAGES)
            found = self.find(place, reference.name)
            if found is not None:
                yield found
                yield from self._around(found)
        for template in templates:
            if template.spec.source is not None:
                yield from self._read(namespace, names_read(template.spec.source.http))

    def _around(self, source: DataSource) -> Iterator[Resource]:
        """What a DataSource names, and what it reads."""
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
                yield secret.read(kinds.SECRETS)
            if config_map is not None:
                yield config_map.read(kinds.CONFIG_MAPS)

    def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        """What a Secret of the cluster holds."""
        seen = self.secrets.cache.get(Key(namespace, name))
        return None if seen is None else decoded(seen.read(kinds.SECRETS))

    def config_map(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        """What a ConfigMap of the cluster holds."""
        seen = self.config_maps.cache.get(Key(namespace, name))
        return None if seen is None else values(seen.read(kinds.CONFIG_MAPS))

    def reading(self, change: CacheChange) -> Iterator[Key]:
        """The DataSources that read the Secret or the ConfigMap that changed."""
        key = change.seen.key
        for seen in self.consumers.sources.cache.by("namespace", key.namespace):
            if key.name in names_read(seen.read(kinds.SOURCES).spec.source.http):
                yield seen.key
