"""The API of a release of KubeVirt, 1.3 to 1.9: its versions, fields and subresources, as far as they differ from those of the newest.

`releases.json` has the differences (`tools/kubevirtreleases.py` writes it from the makers' definitions). Release 0 is the
API of Paddock itself, which is that of the newest release and some older versions besides.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path as FilePath
from typing import Any

import msgspec

from paddock.kubernetes.meta import fieldpath
from paddock.kubernetes.schema.finding import Finding, Path, format_path
from paddock.kubernetes.schema.kind import KindFacts, Version
from paddock.kubernetes.schema.messages import UNKNOWN_FIELD

# Releases are the minor versions of 1.x.
OLDEST, NEWEST = 3, 9
_GROUP = "kubevirt.io"
_FACTS = FilePath(__file__).with_name("releases.json")
_ANY = "*"
# In the status of a machine: Paddock's controllers keep here which copy of an instancetype and which move of volumes are the machine's.
_KEPT = ("instancetypeRef", "preferenceRef", "volumeUpdateState")
# Of a member that is unknown it has True, and of one in which some members are unknown a tree; objects and schemas are trees, too.
Tree = dict[str, Any]


class _KindChanges(msgspec.Struct, frozen=True):
    # The first release, of members that a release after the first brought. The own one of a member that has further ones stands under "".
    later: dict[str, Any] = {}
    # The last release, of members that the newest lacks.
    gone: dict[str, int] = {}
    # The first release, of defaults that came later than the member that has them.
    defaults: dict[str, int] = {}
    since: int = OLDEST


class _Changes(msgspec.Struct, frozen=True):
    kinds: dict[str, _KindChanges]
    # version -> the first and the last release that serves it, and the first that deprecates it
    versions: dict[str, dict[str, tuple[int, ...]]]
    subresources: dict[str, int]


def is_of_kubevirt(group: str) -> bool:
    """Return whether a group is KubeVirt's or CDI's."""
    return group == _GROUP or group.endswith(f".{_GROUP}")


@cache
def _changes() -> _Changes:
    return msgspec.json.decode(_FACTS.read_bytes(), type=_Changes)


def name_of(release: int) -> str:
    """Return the version that a server of a release tells."""
    return f"v1.{release or NEWEST}.0"


def versions_of(kind: KindFacts, release: int) -> tuple[Version, ...]:
    """Return the versions of a kind that a release serves. The stored one may be none of them."""
    known = _changes().versions.get(kind.kind.lower()) if release and kind.dialect == "kubevirt" else None
    if known is None:
        return kind.versions
    found = []
    for name, (first, last, *deprecated) in known.items():
        if first <= release <= last:
            late = bool(deprecated) and release >= deprecated[0]
            word = f"{kind.group}/{name} is deprecated; use {kind.group}/{_newest(known, release)}" if late else ""
            found.append(Version(name, storage=name == kind.storage_version, deprecated=word))
    return tuple(found)


def _newest(known: Mapping[str, tuple[int, ...]], release: int) -> str:
    return next(name for name, (first, last, *late) in known.items() if first <= release <= last and not (late and release >= late[0]))


def has_subresource(plural: str, name: str, release: int) -> bool:
    """Return whether a release has a path of `subresources.kubevirt.io`. Paddock's own paths are in all of them."""
    return not release or release >= _changes().subresources.get(f"{plural}/{name}" if plural else name, OLDEST)


class ReleaseFields(msgspec.Struct, frozen=True):
    """The fields of a kind that an older release does not know, and the defaults that it does not fill in."""

    unknown: Tree
    # Members that have no default yet.
    undefaulted: tuple[Path, ...] = ()

    def read(self, raw: Tree) -> tuple[Tree, list[Finding]]:
        """Return an object without the fields that are unknown, and these fields. The object that is given is not changed."""
        unknown: list[Finding] = []
        return _pruned(raw, self.unknown, (), unknown), unknown

    def left_out(self, raw: Tree) -> list[Path]:
        """Return the members that an object leaves out and that have no default yet. Later defaults may be filled in in place."""
        return [way for way in self.undefaulted if fieldpath.value_at(raw, way) is None]

    def schema(self, schema: Tree) -> Tree:
        """Return a schema without the fields that are unknown, and without the defaults."""
        made = _narrowed(schema, self.unknown)
        for way in self.undefaulted:
            members = tuple(step for name in way for step in ("properties", str(name)))
            made = without(made, (*members, "default"))
        return made


def fields_of(kind: KindFacts, release: int) -> ReleaseFields | None:
    """Return how a release reads the fields of a kind; None where it knows them all."""
    return _fields_of(kind.kind, release) if release and kind.dialect == "kubevirt" else None


@cache
def _fields_of(kind: str, release: int) -> ReleaseFields | None:
    known = _changes().kinds.get(kind.lower())
    if known is None:
        return None
    later = known.later
    if kind == "VirtualMachine":
        later = {**later, "status": {name: each for name, each in later["status"].items() if name not in _KEPT}}
    fields = ReleaseFields(
        _unknown(later, release),
        tuple(tuple(way.split(".")) for way, since in known.defaults.items() if since > release),
    )
    return fields if fields.unknown or fields.undefaulted else None


def _unknown(later: Mapping[str, Any], release: int) -> Tree:
    tree: Tree = {}
    for name, each in later.items():
        since = each if isinstance(each, int) else each.get("", OLDEST)
        if name and since > release:
            tree[name] = True
        elif isinstance(each, dict) and (below := _unknown(each, release)):
            tree[name] = below
    return tree


def _pruned(value: Any, tree: Tree, path: Path, unknown: list[Finding]) -> Any:
    if isinstance(value, list):
        return [_pruned(entry, tree, (*path, index), unknown) for index, entry in enumerate(value)]
    if not isinstance(value, dict):
        return value
    made = value
    for name in tuple(value):
        below = tree.get(name) or tree.get(_ANY)
        if below is None:
            continue
        made = dict(value) if made is value else made
        if below is True:
            del made[name]
            text = f'unknown field "{format_path((*path, name))}"'
            unknown.append(Finding(path=(*path, name), message=text, rule=UNKNOWN_FIELD))
        else:
            made[name] = _pruned(value[name], below, (*path, name), unknown)
    return made


def without(value: Tree, way: Path) -> Tree:
    """Return an object without a member; the objects on the way to it are copies."""
    name, *rest = way
    made = dict(value)
    if not rest:
        made.pop(str(name), None)
    elif isinstance(below := made.get(str(name)), dict):
        made[str(name)] = without(below, tuple(rest))
    return made


def _narrowed(schema: Tree, tree: Tree) -> Tree:
    made = dict(schema)
    if "properties" in schema:
        made["properties"] = {
            name: _narrowed(each, below) if isinstance(below := tree.get(name), dict) else each
            for name, each in schema["properties"].items()
            if tree.get(name) is not True
        }
    if isinstance(schema.get("items"), dict):
        made["items"] = _narrowed(schema["items"], tree)
    if isinstance(schema.get("additionalProperties"), dict) and isinstance(tree.get(_ANY), dict):
        made["additionalProperties"] = _narrowed(schema["additionalProperties"], tree[_ANY])
    return made
