"""Keeps one APIService for each group and version that is served, as `kubectl get apiservices` and dashboards expect."""

import asyncio

from paddock.base.jsondata import Data
from paddock.server.builtin.apiservices import COLLECTION, GROUP
from paddock.server.context import ServerParts
from paddock.server.housekeeping.keyqueue import KeyQueue
from paddock.server.objects.encoding import decode
from paddock.server.objects.requests import DeleteOptions, Options
from paddock.server.resources.resource import ServedResource
from paddock.server.store.contract import CommittedWrite

_WHO = Options(user="system:apiserver", groups=("system:masters",), manager="kube-aggregator")
_MANAGED = "kube-aggregator.kubernetes.io/automanaged"
_RANKS = {"": 18000, "apiextensions.k8s.io": 16700}
_ALL = "all"


class ApiServiceController:
    """Looks at all of them whenever what is served, or one of them, changes."""

    def __init__(self, parts: ServerParts) -> None:
        self._parts = parts
        self.chores: KeyQueue[str] = KeyQueue("API services", self._reconcile)
        parts.registry.on_change(lambda: self.chores.offer(_ALL))
        parts.store.follow(self._changed)

    def start(self) -> None:
        self.chores.offer(_ALL)
        self.chores.start()

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        if any(change.key.collection == COLLECTION and change.deleted for change in changes):
            self.chores.offer(_ALL)

    async def _reconcile(self, _: str) -> None:
        resource = self._parts.registry.find(GROUP, "v1", "apiservices")
        if resource is None:
            return
        wanted = {
            f"{version}.{group}": _object(group, version, rank)
            for group, versions in self._parts.registry.groups().items()
            for rank, version in enumerate(reversed(versions), 1)
        }
        there = {record.key.name: record.value for record in self._parts.store.scan(COLLECTION)}
        # Together, so that they share a commit.
        missing = [wanted[name] for name in wanted.keys() - there.keys()]
        await asyncio.gather(*(self._parts.writer.create(resource, "", each, _WHO) for each in missing))
        for name in there.keys() - wanted.keys():
            await self._forget(resource, name, decode(there[name]))

    async def _forget(self, resource: ServedResource, name: str, data: Data) -> None:
        if _MANAGED in (data["metadata"].get("labels") or {}):
            await self._parts.writer.delete(resource, "", name, DeleteOptions())


def _object(group: str, version: str, rank: int) -> Data:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}", "labels": {_MANAGED: "true"}},
        "spec": {
            **({"group": group} if group else {}),
            "version": version,
            "groupPriorityMinimum": _RANKS.get(group, 17000 if group.endswith(".k8s.io") else 1000),
            "versionPriority": 100 if rank == 1 else 100 + rank,
        },
    }
