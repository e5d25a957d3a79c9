"""The group `subresources.kubevirt.io` as a table: every path with its verb and its handler, in both versions.

A row serves one path below a kind of objects, or with an empty kind one of its own. The names are those that rules of roles name.
"""

from collections.abc import Iterable
from itertools import groupby

import msgspec

from paddock.server.api import Api, Subhandler
from paddock.server.resources.kubevirtsubresources import GROUP
from paddock.server.resources.pathonly import path_only
from paddock.server.resources.registry import ResourceRegistry
from paddock.server.resources.resource import Subresource

# What the group's own document is called upstream, by a slip that nobody depends on; clients read the preferred version in it.
CALLED = "subresource.kubevirt.io"
VERSIONS = ("v1", "v1alpha3")


class SubresourceRow(msgspec.Struct, frozen=True):
    """One path. `below` says that more may follow in it: `portforward/8080/tcp`."""

    plural: str
    subresource: str
    verb: str
    handler: Subhandler
    below: bool = False
    namespaced: bool = True


def serve(registry: ResourceRegistry, api: Api, rows: Iterable[SubresourceRow]) -> None:
    """Let discovery tell of the rows, and the server ask their handlers."""
    every = sorted(rows, key=lambda row: (row.plural, row.subresource))
    registry.called[GROUP] = CALLED
    for plural, of_plural in groupby(every, key=lambda row: row.plural):
        mine = list(of_plural)
        own = tuple(row.verb for row in mine if not row.subresource)
        below = tuple(
            _described(name, list(of_name))
            for name, of_name in groupby((row for row in mine if row.subresource), key=lambda row: row.subresource)
        )
        for version in VERSIONS:
            registry.add_paths(path_only(GROUP, version, plural, namespaced=mine[0].namespaced, verbs=own, subresources=below))
        for row in mine:
            api.subresources[GROUP, row.plural, f"{row.subresource}/*" if row.below else row.subresource, row.verb] = row.handler


def _described(name: str, rows: list[SubresourceRow]) -> Subresource:
    return Subresource(name, tuple(row.verb for row in rows), below=any(row.below for row in rows))
