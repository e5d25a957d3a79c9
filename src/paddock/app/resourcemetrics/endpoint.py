"""Answers the requests of the group.

Here a machine is a process of the host. Its use is published as that of the Pod that shows it, with the container `compute`: this is what
`kubectl top pod` and dashboards look for.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import msgspec

from paddock.app.resourcemetrics import kinds
from paddock.app.resourcemetrics.meter import MeasuredUse, UsageReading, UseMeter
from paddock.base.jsondata import Data
from paddock.engine.host import usage as host_usage
from paddock.engine.machine import process
from paddock.kubernetes.meta import failure
from paddock.kubernetes.meta.wire import from_data
from paddock.kubernetes.quotas import launcher
from paddock.kubevirt.kinds.instance import VirtualMachineInstance
from paddock.kubevirt.plan.network.endpoints import labels_of
from paddock.kubevirt.plan.views.launchers import CONTAINER
from paddock.server.api import Api
from paddock.server.context import RequestContext, ServerParts
from paddock.server.edge.http import HttpResponse
from paddock.server.objects.encoding import encode
from paddock.server.objects.reading import Fields, Query
from paddock.server.representation import answer, form_of
from paddock.server.store.contract import StoredValue, StoreKey
from paddock.server.verbs.options import list_query

_INSTANCES, _NODES = "virtualmachineinstances.kubevirt.io", "nodes"
# Others get their turn between so many readings.
_AT_A_TIME = 50
_NOT_YET = "the engine looks at its host; try again in a moment"


class _Observed(Protocol):
    @property
    def pid(self) -> int: ...
    @property
    def live(self) -> bool: ...


class MeasuredMachine(Protocol):
    """A machine of the engine, as far as it is measured."""

    id: str

    @property
    def observed(self) -> _Observed: ...


Machines = Callable[[], Iterable[MeasuredMachine] | None]


class InstanceLabels(msgspec.Struct, frozen=True):
    """The UID of an instance, and the labels that select it."""

    uid: str
    labels: dict[str, str]


def install(api: Api, parts: ServerParts, machines: Machines) -> None:
    """Serve the group from now on. `machines` returns None until the engine has taken over those that run."""
    served = _Endpoint(parts, machines)
    if parts.registry.find(kinds.GROUP, kinds.VERSION, "pods") is None:
        parts.registry.add(*kinds.resources())
    for plural, find in (("nodes", served.nodes), ("pods", served.pods)):
        api.subresources[kinds.GROUP, plural, "", "list"] = served.lists(find)
        api.subresources[kinds.GROUP, plural, "", "get"] = served.gets(find)


class _Endpoint:
    def __init__(self, parts: ServerParts, machines: Machines) -> None:
        self._parts = parts
        self._machines = machines
        self._meter = UseMeter(self._read)

    def lists(self, find: Callable[[Query], Any]) -> Callable[[RequestContext], Any]:
        async def list_(call: RequestContext) -> HttpResponse:
            form, query = form_of(call.request), list_query(call)
            records = [record for record in await find(query) if query.fields.matches(Fields(record).value)]
            return answer(form, self._parts.renderer(call.resource, form).many(records, {}))

        return list_

    def gets(self, find: Callable[[Query], Any]) -> Callable[[RequestContext], Any]:
        async def get(call: RequestContext) -> HttpResponse:
            form = form_of(call.request)
            found = await find(Query(namespace=call.route.namespace))
            record = next((each for each in found if each.key.name == call.route.name), None)
            if record is None:
                raise failure.not_found(call.resource.about(call.route.name))
            return answer(form, self._parts.renderer(call.resource, form).one(record.value))

        return get

    async def nodes(self, query: Query) -> list[StoredValue]:
        """Return the use of the nodes that a query's labels select: there is one."""
        used = (await self._meter.measure()).host
        found = []
        for record in self._parts.store.scan(_NODES):
            labels = msgspec.json.decode(record.value)["metadata"].get("labels") or {}
            if query.labels.matches(labels):
                made = self._object("NodeMetrics", {"name": record.key.name, "labels": labels}, used)
                found.append(_record("nodes", {**made, "usage": _usage(used)}))
        return found

    async def pods(self, query: Query) -> list[StoredValue]:
        """Return the use of the running machines that a query's namespace and labels select."""
        used = (await self._meter.measure()).machines
        return [
            _record(
                "pods", {**self._object("PodMetrics", meta, used[uid]), "containers": [{"name": CONTAINER, "usage": _usage(used[uid])}]}
            )
            for uid, meta in self._selected(query)
            if uid in used
        ]

    def _selected(self, query: Query) -> Iterator[tuple[str, Data]]:
        for (namespace, name), about in self._parts.view.noted(_INSTANCES, _labels):
            if query.namespace in ("", namespace) and query.labels.matches(about.labels):
                yield about.uid, {"name": launcher.name_of(name, about.uid), "namespace": namespace, "labels": about.labels}

    def _object(self, kind: str, meta: Data, used: MeasuredUse) -> Data:
        now = self._parts.clock.now()
        return {
            "kind": kind,
            "apiVersion": f"{kinds.GROUP}/{kinds.VERSION}",
            "metadata": {**meta, "creationTimestamp": now},
            "timestamp": now,
            "window": f"{used.window_seconds:.3f}s",
        }

    async def _read(self) -> UsageReading:
        """Read every running machine, and the host."""
        machines = self._machines()
        if machines is None:
            raise failure.unavailable(_NOT_YET)
        found = {}
        for number, machine in enumerate(machines, 1):
            pid = machine.observed.pid
            used = process.usage(pid) if machine.observed.live and pid else None
            if used is not None:
                found[machine.id] = (pid, used)
            if number % _AT_A_TIME == 0:
                await asyncio.sleep(0)
        return UsageReading(asyncio.get_running_loop().time(), host_usage.read(), found)


def _labels(data: Data) -> InstanceLabels:
    instance: VirtualMachineInstance = from_data(data, VirtualMachineInstance)
    return InstanceLabels(instance.metadata.uid or "", labels_of(instance))


def _usage(used: MeasuredUse) -> Data:
    return {"cpu": f"{round(used.cores * 1e9)}n", "memory": f"{used.memory_bytes // 1024}Ki"}


def _record(plural: str, data: Data) -> StoredValue:
    meta = data["metadata"]
    return StoredValue(StoreKey(f"{plural}.{kinds.GROUP}", meta.get("namespace", ""), meta["name"]), 0, encode(data))
