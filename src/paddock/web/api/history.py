"""`GET machines/PLACE/history`: who changed which fields when, by managed fields and by the revisions that starts left."""

from collections.abc import Iterable, Iterator

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import entries, texts
from paddock.fleet.kinds import VM, VMI, MachineKind
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.options import Selection
from paddock.web.answers.machine import WebHistory, WebHistoryPart
from paddock.web.api import managedfields
from paddock.web.api.pending import REVISIONS
from paddock.web.routes import WebRequest, WebRoute

# A status names hundreds of fields, and says nothing about people.
_MOST_FIELDS = 100


async def history(request: WebRequest) -> WebHistory:
    """Return the writes, the newest first."""
    machine = await request.machine()
    revisions: list[Data] = []
    if machine.vm_key is not None:
        try:
            revisions = (await request.session.client.list(REVISIONS, Selection(namespace=machine.vm_key.namespace))).items
        except (NotFound, Forbidden):
            revisions = []
    found = [*_of_objects(machine), *_starts(machine, revisions)]
    return WebHistory(history=sorted(found, key=lambda each: each.time, reverse=True))


def _of_objects(machine: MachineView) -> Iterator[WebHistoryPart]:
    yield from writes(machine.kind, machine.data)
    if machine.kind.front and machine.vm is not None:
        yield from writes(VM, machine.vm)
    if machine.vmi is not None and machine.kind is not VMI:
        yield from writes(VMI, machine.vmi)


def writes(kind: MachineKind, data: Data) -> Iterator[WebHistoryPart]:
    """Yield the writes to one object."""
    for each in managedfields.writes(data):
        fields = [managedfields.shown(path) for path in each.paths]
        if len(fields) > _MOST_FIELDS:
            fields = [*fields[:_MOST_FIELDS], f"and {len(fields) - _MOST_FIELDS} more"]
        yield WebHistoryPart(
            time=each.time,
            manager=each.manager,
            operation=f"{each.operation} of {each.subresource}" if each.subresource else each.operation,
            object=f"{kind.kind}/{texts(data, 'metadata', 'name')}",
            fields=fields,
        )


def _starts(machine: MachineView, revisions: Iterable[Data]) -> Iterator[WebHistoryPart]:
    """Yield the starts of a VirtualMachine: each left the form that it began with."""
    uid = texts(machine.vm, "metadata", "uid")
    for each in revisions:
        if uid and any(texts(owner, "uid") == uid for owner in entries(each, "metadata", "ownerReferences")):
            yield WebHistoryPart(
                time=texts(each, "metadata", "creationTimestamp"),
                manager="virt-controller",
                operation=f"Start with generation {each.get('revision', 0)}",
                object=f"ControllerRevision/{texts(each, 'metadata', 'name')}",
                fields=[],
            )


ROUTES = (WebRoute("GET", "machines/PLACE/history", history),)
