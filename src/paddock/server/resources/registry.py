"""All served resources. Changes while the server runs, when users' CRDs come and go; every change makes a new `edition`."""

import re
from collections.abc import Callable, Iterable, Iterator

from paddock.server.resources.resource import ServedResource

_KUBE_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?\Z")


def version_order(version: str) -> tuple[int, int, int, str]:
    """Sorts versions by preference: v2, v1, v1beta2, v1alpha1, then other names by the alphabet."""
    match = _KUBE_VERSION.match(version)
    if match is None:
        return (3, 0, 0, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[match[2]]
    return (stage, -int(match[1]), -int(match[3] or 0), "")


# A short name that several groups have (vm, vmi) means the first of these.
_FIRST = ("", "apps", "kubevirt.io")


def _group_order(group: str) -> tuple[int, str]:
    return (_FIRST.index(group) if group in _FIRST else len(_FIRST), group)


class ResourceRegistry:
    """The resources by group, version and plural."""

    def __init__(self) -> None:
        self._resources: dict[tuple[str, str, str], ServedResource] = {}
        # Paths of a group that has no objects: they are found and listed, and are nobody's kind.
        self._paths: dict[tuple[str, str, str], ServedResource] = {}
        self._watchers: list[Callable[[], None]] = []
        self.edition = 0
        # group -> what its own document calls it, where that is something else
        self.called: dict[str, str] = {}

    def add(self, *resources: ServedResource) -> None:
        """Serve resources, in the place of those of the same group, version and plural."""
        for resource in resources:
            self._resources[resource.group, resource.version, resource.plural] = resource
        self._changed()

    def add_paths(self, *resources: ServedResource) -> None:
        """Serve what is shaped like resources and has no objects: subresources of another group's objects, say."""
        for resource in resources:
            self._paths[resource.group, resource.version, resource.plural] = resource
        self._changed()

    def remove(self, *resources: ServedResource) -> None:
        for resource in resources:
            self._resources.pop((resource.group, resource.version, resource.plural), None)
        self._changed()

    def replace(self, old: Iterable[ServedResource], new: Iterable[ServedResource]) -> None:
        """Serve some no longer and others instead, in one edition."""
        for resource in old:
            self._resources.pop((resource.group, resource.version, resource.plural), None)
        self.add(*new)

    def on_change(self, callback: Callable[[], None]) -> None:
        """Call this after every change."""
        self._watchers.append(callback)

    def find(self, group: str, version: str, plural: str) -> ServedResource | None:
        place = (group, version, plural)
        return self._resources.get(place) or self._paths.get(place)

    def get(self, group: str, version: str, plural: str) -> ServedResource:
        """The resource of a kind that is always served, as built-in ones are; raises `LookupError` for others."""
        found = self.find(group, version, plural)
        if found is None:
            raise LookupError(f"{plural} of {group or 'the core group'} are not served")
        return found

    def find_kind(self, group: str, kind: str, version: str = "") -> ServedResource | None:
        """A resource of this kind, in the version asked for or the preferred one."""
        found = [each for each in self if each.group == group and each.kind == kind and version in ("", each.version)]
        return min(found, key=lambda each: version_order(each.version), default=None)

    def of_collection(self, collection: str) -> tuple[ServedResource, ...]:
        """All versions that serve the objects of a collection."""
        return tuple(each for each in self if each.collection == collection)

    def groups(self) -> dict[str, list[str]]:
        """Group -> its versions, the preferred one first; groups in the order in which clients resolve short names."""
        found: dict[str, set[str]] = {}
        for each in (*self._resources.values(), *self._paths.values()):
            if not each.private:
                found.setdefault(each.group, set()).add(each.version)
        return {group: sorted(found[group], key=version_order) for group in sorted(found, key=_group_order)}

    def of_version(self, group: str, version: str) -> list[ServedResource]:
        """The resources of a group version, by plural."""
        every = (each for each in (*self._resources.values(), *self._paths.values()) if not each.private)
        return sorted((each for each in every if (each.group, each.version) == (group, version)), key=lambda each: each.plural)

    def __iter__(self) -> Iterator[ServedResource]:
        return iter(tuple(self._resources.values()))

    def _changed(self) -> None:
        self.edition += 1
        for callback in self._watchers:
            callback()
