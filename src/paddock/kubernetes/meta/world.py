"""The objects that a pure translation may look at.

A translator never fetches: whoever calls it (a command with the documents of its input, a controller with its caches) hands
over everything that can be referred to, and says whether that is all there is. What a complete world lacks does not exist;
what an incomplete one lacks may be somewhere else. Either way the translator says what it then does.
"""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from paddock.kubernetes.meta.objects import Resource

T = TypeVar("T", bound=Resource)
DEFAULT_NAMESPACE = "default"


def namespace_of(resource: Resource) -> str:
    """Return the namespace of an object; manifests may leave the default namespace out."""
    return resource.metadata.namespace or DEFAULT_NAMESPACE


class ObjectSet:
    """Objects by class, namespace and name. Objects of cluster scope are found with any namespace."""

    def __init__(self, resources: Iterable[Resource] = (), *, complete: bool = False) -> None:
        self.complete = complete
        self._found: dict[tuple[type[Resource], str, str], Resource] = {}
        for resource in resources:
            self._found[type(resource), namespace_of(resource), resource.metadata.name] = resource

    def get(self, cls: type[T], namespace: str, name: str) -> T | None:
        """The object of this name, or None."""
        found = self._found.get((cls, namespace, name))
        return found if isinstance(found, cls) else None

    def within(self, around: Iterable[Resource]) -> "ObjectSet":
        """Return these objects with others around them. Of two of one name, it has this set's."""
        return ObjectSet([*around, *self.everything()], complete=self.complete)

    def everything(self) -> Iterator[Resource]:
        """Every object, in the order they were handed over."""
        yield from self._found.values()

    def all(self, cls: type[T]) -> Iterator[T]:
        """Every object of a class, in the order they were handed over."""
        for resource in self._found.values():
            if isinstance(resource, cls):
                yield resource
