"""objectgraph: what a machine depends on, as a tree (feature gate ObjectGraph). Pure but for the look-ups."""

from collections.abc import Callable, Iterator

from paddock.app.subresources import queries
from paddock.app.subresources.installation import InstallationApi
from paddock.app.subresources.stored import StoredObjects
from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.kubernetes.schema.dialect import KindId
from paddock.kubevirt.plan.changes.references import FieldReference, references
from paddock.server.context import RequestContext
from paddock.server.edge.http import HttpResponse
from paddock.server.resources.kubevirtsubresources import MACHINES

DEPENDENCY = "kubevirt.io/dependency-type"
_STORAGE = ("PersistentVolumeClaim", "DataVolume", "DataSource")
_COMPUTE = ("VirtualMachine", "VirtualMachineInstance")


class Graphs:
    """Draws the tree of a machine or an instance."""

    def __init__(self, stored: StoredObjects, installation: InstallationApi) -> None:
        self._stored = stored
        self._installation = installation

    async def draw(self, call: RequestContext) -> HttpResponse:
        if not self._installation.has("ObjectGraph"):
            raise failure.bad_request("ObjectGraph feature gate not enabled: Unable to return object graph.")
        place = (call.route.namespace, call.route.name)
        is_machine = call.route.plural == MACHINES
        data = self._stored.machine_data(*place) if is_machine else self._stored.instance_data(*place)
        keeps = _filter(queries.options(call.request))
        kind = ("kubevirt.io", "VirtualMachine" if is_machine else "VirtualMachineInstance")
        return queries.said(node(kind, place, children=[each for each in below(kind, data) if keeps(each)]))


def below(kind: KindId, data: Data) -> Iterator[Data]:
    """Yield the direct dependencies of an object, each once."""
    namespace, name = data["metadata"].get("namespace", ""), data["metadata"]["name"]
    if kind[1] == "VirtualMachine" and (data.get("status") or {}).get("created"):
        yield node(("kubevirt.io", "VirtualMachineInstance"), (namespace, name))
    seen = set()
    for found in references(*kind, data):
        place = (found.to[0], found.namespace or namespace, found.name)
        if place not in seen:
            seen.add(place)
            yield _referred(found, place[1])


def _referred(field_reference: FieldReference, namespace: str) -> Data:
    kind = field_reference.to[0]
    children = []
    if kind[1] == "DataVolume":
        children = [node(("", "PersistentVolumeClaim"), (namespace, field_reference.name))]
    return node(kind, (namespace, field_reference.name), children=children)


def node(kind: KindId, place: tuple[str, str], *, children: list[Data] | None = None) -> Data:
    """An object of the tree."""
    group, name = kind
    reference: Data = {"apiGroup": group, "kind": name, "name": place[1]}
    if "Cluster" not in name:
        reference["namespace"] = place[0]
    made: Data = {"objectReference": reference, "labels": {DEPENDENCY: _dependency(name)}}
    if children:
        made["children"] = children
    return made


def _dependency(kind: str) -> str:
    if kind in _STORAGE:
        return "storage"
    if kind in _COMPUTE:
        return "compute"
    return "network" if kind == "NetworkAttachmentDefinition" else "config"


def _filter(options: Data) -> Callable[[Data], bool]:
    """Return the filter for an object graph."""
    wanted = (options.get("labelSelector") or {}).get("matchLabels") or {}
    return lambda each: all(each["labels"].get(name) == value for name, value in wanted.items())
