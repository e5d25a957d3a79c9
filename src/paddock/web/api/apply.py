"""`POST apply`: writes the objects of a text.

An object that the page read before, and which has its `resourceVersion`, is replaced, unless somebody else wrote its spec meanwhile. Status
changes count for nothing: controllers write them all the time. Other objects are written by server-side apply.
"""

import msgspec

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import at, texts
from paddock.fleet.machines.edits import merge_patch, written
from paddock.fleet.servers import objectwrites
from paddock.fleet.servers.discovery import KindDiscovery
from paddock.fleet.servers.objectwrites import WrittenObject
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client import warnings
from paddock.kubernetes.client.errors import Conflict
from paddock.kubernetes.client.options import WriteOptions
from paddock.web import problems
from paddock.web.answers.editing import WebApplied, WebAppliedObject
from paddock.web.api import managedfields, manifests
from paddock.web.api.managedfields import Path
from paddock.web.api.objectparts import APPLIED
from paddock.web.api.plan import settings_of
from paddock.web.routes import WebRefusal, WebRequest, WebRoute

_MANAGER = "paddock-console"
_FEW = 3


class _Body(msgspec.Struct, frozen=True, rename="camel"):
    yaml: str
    dry_run: bool = False
    # takes over fields that other managers have set
    force: bool = False


async def apply(request: WebRequest) -> WebApplied:
    """Write all objects, in the order of the text. Raises the error of the first that is refused."""
    body = request.read(_Body)
    server = request.session.server
    found = manifests.needed(body.yaml, await settings_of(server.client))
    options = WriteOptions(manager=_MANAGER, dry_run=body.dry_run, force=body.force)
    discovery, done = KindDiscovery(server.client), list[WrittenObject]()
    with warnings.collected() as collected:
        for each in found:
            try:
                done.append(await _one(server, discovery, each.data, options))
            except PaddockError as error:
                raise _refusal(error, each.title, done, options) from error
    return WebApplied(objects=[_part(each) for each in done], warnings=list(collected))


def _part(made: WrittenObject) -> WebAppliedObject:
    return WebAppliedObject(kind=made.kind.kind, namespace=made.key.namespace, name=made.key.name, result=made.outcome)


def _refusal(error: PaddockError, title: str, done: list[WrittenObject], options: WriteOptions) -> WebRefusal:
    before = ", ".join(f"{each.kind.kind}/{each.key.name}" for each in done if not options.dry_run)
    why = "; ".join(filter(None, (error.why, f"written before it: {before}" if before else "")))
    what = error.what if title in error.what else f"{title}: {error.what}"
    return WebRefusal(problems.status_of(error), what, why=why, fix=error.fix)


async def _one(server: ServerSession, discovery: KindDiscovery, data: Data, options: WriteOptions) -> WrittenObject:
    if not texts(data, "metadata", "resourceVersion"):
        try:
            return await objectwrites.apply(server, discovery, _unowned(data), options)
        except Conflict as error:
            fix = "save it again and take the fields over, or leave them as the other has them"
            raise WebRefusal(409, str(error), why="another manager has set these fields", fix=fix) from error
    kind, data = await objectwrites.located(server, discovery, data)
    key = objectwrites.key_of(data)
    now = await server.client.find(kind.target, key)
    if now is None:
        raise WebRefusal(409, f"there is no {kind.kind} {key.name} any more", why="somebody deleted it", fix="take the edit back")
    if changed_meanwhile(data, now):
        raise WebRefusal(
            409,
            f"{kind.kind} {key.name} was changed since the edit began",
            why=culprits(data, now),
            fix="look at the object as it is now, and make the edit again",
        )
    made = await server.client.update(kind.target, replacement(data, now), msgspec.structs.replace(options, force=False))
    return objectwrites.written(kind, key, now, made, options)


def _unowned(data: Data) -> Data:
    """Return an object without what server-side apply refuses."""
    metadata = {name: value for name, value in (data.get("metadata") or {}).items() if name not in ("managedFields", "uid")}
    return {**data, "metadata": metadata}


def changed_meanwhile(edited: Data, now: Data) -> bool:
    """Return whether somebody wrote more than the status of an object since it was read."""
    if texts(edited, "metadata", "uid") not in ("", texts(now, "metadata", "uid")):
        return True
    if texts(edited, "metadata", "resourceVersion") == texts(now, "metadata", "resourceVersion"):
        return False
    generation = at(now, "metadata", "generation")
    return generation is None or at(edited, "metadata", "generation") != generation


def replacement(edited: Data, now: Data) -> Data:
    """Return the edited object as it is sent: what the server writes is that of now."""
    keep = ("resourceVersion", "uid", "creationTimestamp", "generation", "managedFields")
    metadata = {name: value for name, value in edited["metadata"].items() if name not in keep}
    metadata |= {name: now["metadata"][name] for name in keep if name in now["metadata"]}
    # The page does not show it (objectparts.readable), and kubectl apply needs it.
    if last := at(now, "metadata", "annotations", APPLIED):
        metadata["annotations"] = {APPLIED: last, **(metadata.get("annotations") or {})}
    status = {"status": now["status"]} if "status" in now else {}
    return {**{name: value for name, value in edited.items() if name != "status"}, **status, "metadata": metadata}


def culprits(edited: Data, now: Data) -> str:
    """Return who wrote what of the fields in which an edit differs from the present object."""
    differing = list(_leaves(merge_patch(written(edited), written(now))))
    found = []
    for each in managedfields.writes(now):
        fields = [path for path in each.paths if each.subresource != "status" and any(_meets(path, other) for other in differing)]
        if fields and each.manager != _MANAGER:
            shown = ", ".join(managedfields.shown(path) for path in fields[:_FEW])
            more = f" and {len(fields) - _FEW} more" if len(fields) > _FEW else ""
            found.append(f"{each.manager} wrote {shown}{more} at {each.time}")
    return "; ".join(found[:_FEW])


def _leaves(patch: object, before: Path = ()) -> list[Path]:
    if not isinstance(patch, dict) or not patch:
        return [before] if before else []
    return [path for name, value in patch.items() for path in _leaves(value, (*before, name))]


def _meets(one: Path, other: Path) -> bool:
    # A merge patch replaces lists as a whole, so that it ends where the record goes on.
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


ROUTES = (WebRoute("POST", "apply", apply),)
