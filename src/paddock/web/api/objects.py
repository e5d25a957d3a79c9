"""`DELETE objects/GROUP/KIND/NAMESPACE/NAME`: deletes one object that is no machine."""

from paddock.fleet import kinds
from paddock.fleet.servers.discovery import KindDiscovery
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.options import DeletionOptions
from paddock.kubernetes.client.target import Key
from paddock.web.answers.rows import WebDone
from paddock.web.api.sources import CORE
from paddock.web.routes import WebRefusal, WebRequest, WebRoute

# The namespace of an object that has none.
NOWHERE = "-"


async def delete(request: WebRequest) -> WebDone:
    """Delete an object, and no other one of its name."""
    group, kind, namespace, name = (request.parts[each] for each in ("GROUP", "KIND", "NAMESPACE", "NAME"))
    group = "" if group == CORE else group
    if (machine := kinds.of(group, kind)) is not None:
        fix = f"delete {machine.word}/{namespace}/{name} as a machine"
        raise WebRefusal(409, f"{kind} {name} is a machine", why="a machine has disks, about which its deletion decides", fix=fix)
    client = request.session.client
    served = next((each for each in await KindDiscovery(client).every() if (each.group, each.kind) == (group, kind)), None)
    if served is None or served.namespaced == (namespace == NOWHERE):
        raise WebRefusal(404, f"the server has no {kind} of {group or CORE} there", fix="reload the page")
    key = Key("" if namespace == NOWHERE else namespace, name)
    try:
        uid = (await client.metadata(served.target, key))["metadata"].get("uid", "")
        await client.delete(served.target, key, DeletionOptions(uid=uid))
    except NotFound as error:
        raise WebRefusal(404, f"there is no {kind} {name} any more", fix="reload the page") from error
    return WebDone(text=f"{kind} {name} deleted")


ROUTES = (WebRoute("DELETE", "objects/GROUP/KIND/NAMESPACE/NAME", delete),)
