"""ConfigMaps of certificate authorities that nobody in their namespace needs any more."""

from collections.abc import Iterator

from paddock.dialects.kubermatic.controllers import targets
from paddock.dialects.kubermatic.controllers.actions import ClusterWriter, is_ours
from paddock.dialects.kubermatic.controllers.reader import CONSUMING, Views, templates_of
from paddock.kubevirt.kinds.extendedsources import is_cached

_END = "-ca"


async def clear(views: Views, writer: ClusterWriter, namespace: str) -> None:
    needed = {f"{name}{_END}" for name in _needed(views, namespace)}
    for seen in views.config_maps.cache.by("namespace", namespace):
        if seen.meta.name.endswith(_END) and seen.meta.name not in needed and is_ours(seen):
            await writer.delete(targets.CONFIG_MAPS, seen)


def _needed(views: Views, namespace: str) -> Iterator[str]:
    """The names of DataSources and DataVolumes whose authorities may be trusted in a namespace."""
    for target in CONSUMING:
        for seen in views.front(target).cache.by("namespace", namespace):
            for template in templates_of(seen.read(target)) if not seen.meta.deleting else ():
                yield (template.metadata.name if template.metadata is not None else None) or seen.meta.name
                reference = template.spec.sourceRef
                if reference is not None:
                    yield reference.name
                    found = views.find(reference.namespace or namespace, reference.name)
                    if found is not None and found.spec.source.dataSource is not None:
                        yield found.spec.source.dataSource.name
    for seen in views.consumers.sources.cache.by("namespace", namespace):
        if not seen.meta.deleting and is_cached(seen.read(targets.SOURCES)):
            yield seen.meta.name
