"""Keeps what belongs to Services: Endpoints and EndpointSlices that lead nowhere yet, and slices that mirror Endpoints of others.

A controller of machines or pods that runs beside this server fills them. So an object that exists is never emptied here: only what
is missing is made, and a mirrored slice is known by its shape, whoever made it.
"""

from collections.abc import Iterator

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.server.context import ServerParts
from paddock.server.housekeeping import mirrors
from paddock.server.housekeeping.keyqueue import KeyQueue
from paddock.server.objects.encoding import decode
from paddock.server.objects.requests import DeleteOptions, Options, Proposal
from paddock.server.resources.resource import ServedResource
from paddock.server.store.contract import CommittedWrite, StoreKey

SERVICES, ENDPOINTS, SLICES = "services", "endpoints", "endpointslices.discovery.k8s.io"
_OWN = ("default", "kubernetes")
_MAKER = Options(user="system:serviceaccount:kube-system:endpoint-controller", manager="endpoint-controller")
_MIRROR = Options(user="system:serviceaccount:kube-system:endpointslicemirroring-controller", manager="endpointslicemirroring-controller")


class EndpointsController:
    """Looks at Services and the Endpoints of their names. `selecting`: nobody else writes for Services with selectors."""

    def __init__(self, parts: ServerParts, *, selecting: bool) -> None:
        self._parts = parts
        self._selecting = selecting
        # Services that were deleted: their Endpoints go with them
        self._orphaned: set[tuple[str, str]] = set()
        self.chores: KeyQueue[tuple[str, str]] = KeyQueue("endpoints", self._reconcile)
        parts.store.follow(self._changed)

    def start(self) -> None:
        """Look at all, then at what changes."""
        for collection in (SERVICES, ENDPOINTS):
            for record in self._parts.store.scan(collection):
                self.chores.offer((record.key.namespace, record.key.name))
        self.chores.start()

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        for change in changes:
            place = (change.key.namespace, change.key.name)
            if change.key.collection == SERVICES:
                if change.deleted:
                    self._orphaned.add(place)
                self.chores.offer(place)
            elif change.key.collection == ENDPOINTS:
                self.chores.offer(place)
            elif change.key.collection == SLICES:
                name = (decode(change.value)["metadata"].get("labels") or {}).get(mirrors.SERVICE)
                if name:
                    self.chores.offer((change.key.namespace, name))

    async def _reconcile(self, place: tuple[str, str]) -> None:
        if place == _OWN:
            return
        service, endpoints = self._read(SERVICES, place), self._read(ENDPOINTS, place)
        spec = (service or {}).get("spec") or {}
        wanted: dict[mirrors.Shape, Data] = {}
        if service is None:
            if endpoints is not None and place in self._orphaned:
                await self._delete("", ENDPOINTS, place)
            self._orphaned.discard(place)
        elif service["metadata"].get("deletionTimestamp") or spec.get("type") == "ExternalName":
            return
        elif spec.get("selector"):
            if self._selecting:
                await self._furnish(service, endpoints)
        elif endpoints is not None and mirrors.is_mirrored(endpoints):
            wanted = mirrors.mirrored(endpoints)
        await self._mirror(place, wanted)

    def _read(self, collection: str, place: tuple[str, str]) -> Data | None:
        record = self._parts.store.decided(StoreKey(collection, *place))
        return None if record is None else decode(record.value)

    def _slices(self, place: tuple[str, str], manager: str) -> list[Data]:
        """The slices of a Service that a controller manages."""
        holders = sorted(self._parts.view.holders(SLICES, _managed, (*place, manager)))
        found = (self._parts.view.get(SLICES, *each) for each in holders)
        return [each for each in found if each is not None]

    async def _furnish(self, service: Data, endpoints: Data | None) -> None:
        meta = service["metadata"]
        place = (meta["namespace"], meta["name"])
        owner = {"apiVersion": "v1", "kind": "Service", "name": meta["name"], "uid": meta["uid"]}
        owners = [{**owner, "controller": True, "blockOwnerDeletion": True}]
        if endpoints is None:
            await self._create("", ENDPOINTS, meta["namespace"], mirrors.empty(service), _MAKER)
        if not self._slices(place, mirrors.SELECTING):
            for each in mirrors.placeholders(service):
                made = {**each, "metadata": {**each["metadata"], "ownerReferences": owners}}
                await self._create("discovery.k8s.io", "endpointslices", meta["namespace"], made, _MAKER)

    async def _mirror(self, place: tuple[str, str], slices: dict[mirrors.Shape, Data]) -> None:
        missing = dict(slices)
        for existing in self._slices(place, mirrors.MIRRORING):
            made = missing.pop(mirrors.shape_of(existing), None)
            at = (place[0], existing["metadata"]["name"])
            if made is None:
                await self._delete("discovery.k8s.io", "endpointslices", at)
            elif existing.get("endpoints") != made["endpoints"]:
                await self._renew(at, made)
        for made in missing.values():
            await self._create("discovery.k8s.io", "endpointslices", place[0], made, _MIRROR)

    async def _renew(self, place: tuple[str, str], made: Data) -> None:
        resource = self._resource("discovery.k8s.io", "endpointslices")

        def renewed(old: Data) -> Proposal:
            meta = {**old["metadata"], "labels": {**(old["metadata"].get("labels") or {}), **made["metadata"]["labels"]}}
            return Proposal({**old, "metadata": meta, "endpoints": made["endpoints"]})

        await self._parts.writer.replace(resource, *place, renewed, _MIRROR)

    def _resource(self, group: str, plural: str) -> ServedResource:
        return self._parts.registry.get(group, "v1", plural)

    async def _create(self, group: str, plural: str, namespace: str, wanted: Data, options: Options) -> None:
        await self._parts.writer.create(self._resource(group, plural), namespace, wanted, options)

    async def _delete(self, group: str, plural: str, place: tuple[str, str]) -> None:
        try:
            await self._parts.writer.delete(self._resource(group, plural), *place, DeleteOptions(user=_MIRROR.user))
        except failure.Failure as gone:
            if gone.code != 404:
                raise


def _managed(piece: Data) -> Iterator[tuple[str, str, str]]:
    """Yield namespace, Service and manager of a slice."""
    meta = piece["metadata"]
    labels = meta.get("labels") or {}
    if mirrors.SERVICE in labels and mirrors.MANAGER in labels:
        yield meta["namespace"], labels[mirrors.SERVICE], labels[mirrors.MANAGER]
