"""Writes of whole objects as manifests give them, and what came of each."""

from typing import Literal

import msgspec

from paddock.base.errors import Terminal
from paddock.base.jsondata import Data
from paddock.fleet.servers.discovery import KindDiscovery, ServedKind
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.options import WriteOptions
from paddock.kubernetes.client.target import Key


class WrittenObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object after its write."""

    kind: ServedKind
    key: Key
    outcome: Literal["created", "changed", "unchanged"]
    data: Data


async def located(session: ServerSession, discovery: KindDiscovery, data: Data) -> tuple[ServedKind, Data]:
    """Return the kind of an object, and the object with its namespace. Raises `Terminal` for one without a name."""
    kind = await discovery.of(str(data.get("apiVersion", "")), str(data.get("kind", "")))
    metadata = data.get("metadata") or {}
    if not metadata.get("name"):
        raise Terminal(
            "apply needs a name", why="the object has only generateName" if metadata.get("generateName") else "metadata.name is missing"
        )
    if kind.namespaced and not metadata.get("namespace"):
        data = {**data, "metadata": {**metadata, "namespace": session.namespace}}
    return kind, data


async def apply(session: ServerSession, discovery: KindDiscovery, data: Data, options: WriteOptions) -> WrittenObject:
    """Make or change an object by server-side apply. Raises `Conflict` for fields that other managers have set."""
    kind, data = await located(session, discovery, data)
    key = key_of(data)
    before = await session.client.find(kind.target, key)
    made = await session.client.apply(kind.target, data, options)
    return written(kind, key, before, made, options)


def written(kind: ServedKind, key: Key, before: Data | None, made: Data, options: WriteOptions) -> WrittenObject:
    """Return what came of a write. A dry run has no revision to compare."""
    if before is None:
        return WrittenObject(kind=kind, key=key, outcome="created", data=made)
    same = before["metadata"].get("resourceVersion") == made["metadata"].get("resourceVersion")
    return WrittenObject(kind=kind, key=key, outcome="unchanged" if same and not options.dry_run else "changed", data=made)


def key_of(data: Data) -> Key:
    """Return the place of an object."""
    metadata = data["metadata"]
    return Key(str(metadata.get("namespace") or ""), str(metadata["name"]))
