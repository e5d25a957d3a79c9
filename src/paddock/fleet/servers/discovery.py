"""Which kinds a server has, and how it serves them."""

import asyncio
from collections.abc import Collection

import msgspec

from paddock.base.errors import Terminal
from paddock.base.jsondata import Data
from paddock.base.nearest import nearest
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Forbidden, NotFound, Unavailable
from paddock.kubernetes.client.target import Target, plain

# Where several groups have a name, this order decides, as kubectl has it for KubeVirt's.
_FIRST = ("", "apps", "kubevirt.io")


class UnservedKind(Terminal):
    """The server has no such kind."""


class ServedKind(msgspec.Struct, frozen=True):
    """A kind of a server."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    words: tuple[str, ...]

    @property
    def target(self) -> Target[Data]:
        """The kind, with objects as plain data."""
        return plain(self.group, self.version, self.plural, self.kind, namespaced=self.namespaced)

    @property
    def qualified(self) -> str:
        """Return `virtualmachine.kubevirt.io`, as kubectl names objects."""
        return f"{self.kind.lower()}.{self.group}" if self.group else self.kind.lower()


class _Resource(msgspec.Struct):
    name: str
    kind: str
    namespaced: bool = True
    singularName: str = ""
    shortNames: list[str] | None = None


class _Resources(msgspec.Struct):
    resources: list[_Resource] | None = None


class _Version(msgspec.Struct):
    groupVersion: str = ""
    version: str = ""


class _Group(msgspec.Struct):
    name: str
    preferredVersion: _Version | None = None


class _Groups(msgspec.Struct):
    groups: list[_Group] | None = None


class KindDiscovery:
    """The kinds of one server. Each group is asked for once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, tuple[ServedKind, ...]] = {}
        self._groups: dict[str, str] | None = None

    async def of(self, api_version: str, kind: str) -> ServedKind:
        """Return the kind that a manifest names. Raises `UnservedKind`."""
        for each in await self._version(api_version):
            if each.kind == kind:
                return each
        fix = "is it installed? `paddock get -h` says how to list kinds" if not await self._version(api_version) else ""
        raise UnservedKind(f"the server has no kind {kind} in {api_version or '(no apiVersion)'}", fix=fix or "correct kind or apiVersion")

    async def called(self, word: str) -> ServedKind:
        """Return the kind of a word: `vm`, `virtualmachines`, `VirtualMachine`, `machines.vitistack.io`. Raises `UnservedKind`."""
        name, _, group = word.lower().partition(".")
        found = [each for each in await self.every() if name in (each.plural, each.singular, each.kind.lower(), *each.words)]
        if group:
            found = [each for each in found if each.group == group]
        if not found:
            meant = nearest(name, {each.singular or each.kind.lower() for each in await self.every()})
            raise UnservedKind(f'the server has no kind "{word}"', fix=f'did you mean "{meant}"?' if meant else "")
        return min(found, key=_rank)

    async def every(self) -> list[ServedKind]:
        """Return all kinds, each in the version that its group prefers."""
        versions = ["v1", *(await self._preferred()).values()]
        return [kind for kinds in await asyncio.gather(*(self._version(each) for each in versions)) for kind in kinds]

    async def served(self, targets: Collection[Target[Data]]) -> set[str]:
        """Return those of some kinds that the server has in their very versions, as `plural.group`. Other groups are not asked for."""
        groups = await self.groups()
        wanted = [each for each in targets if not each.group or each.group in groups]
        found = await asyncio.gather(*(self._version(each) for each in dict.fromkeys(each.api_version for each in wanted)))
        there = {(kind.group, kind.version, kind.plural) for kinds in found for kind in kinds}
        return {each.qualified for each in wanted if (each.group, each.version, each.plural) in there}

    async def groups(self) -> list[str]:
        """Return the groups that the server names, also those that have subresources alone."""
        return list(await self._preferred())

    async def _preferred(self) -> dict[str, str]:
        """Return the version that each group prefers, with the group."""
        if self._groups is None:
            groups = msgspec.json.decode(await self._client.request("GET", "/apis"), type=_Groups).groups or []
            self._groups = {each.name: each.preferredVersion.groupVersion for each in groups if each.preferredVersion is not None}
        return self._groups

    async def _version(self, api_version: str) -> tuple[ServedKind, ...]:
        if api_version not in self._known:
            path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            try:
                found = msgspec.json.decode(await self._client.request("GET", path), type=_Resources).resources or []
            except (NotFound, Forbidden, Unavailable):
                found = []
            group, _, version = api_version.rpartition("/")
            self._known[api_version] = tuple(
                ServedKind(group, version, each.kind, each.name, each.singularName, each.namespaced, tuple(each.shortNames or ()))
                for each in found
                if "/" not in each.name
            )
        return self._known[api_version]


def _rank(kind: ServedKind) -> tuple[int, str]:
    return (_FIRST.index(kind.group) if kind.group in _FIRST else len(_FIRST), kind.group)
