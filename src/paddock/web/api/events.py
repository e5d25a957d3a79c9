"""`GET machines/PLACE/events`: events of a machine and of what was made of it."""

from paddock.fleet.machines import eventlists
from paddock.kubernetes.client.options import Selection
from paddock.kubernetes.client.target import EVENTS
from paddock.web.answers.machine import WebEvents
from paddock.web.live.eventrows import part
from paddock.web.routes import WebRequest, WebRoute


async def events(request: WebRequest) -> WebEvents:
    """Return the events, the newest first."""
    machine = await request.machine()
    names = eventlists.names(machine)
    namespaces = {each.namespace for each in (machine.key, machine.vm_key) if each is not None}
    found = [
        each
        for namespace in sorted(namespaces)
        for each in (await request.session.client.list(EVENTS, Selection(namespace=namespace))).items
        if (each.get("involvedObject") or {}).get("name") in names
    ]
    return WebEvents(events=sorted(map(part, found), key=lambda each: each.time, reverse=True))


ROUTES = (WebRoute("GET", "machines/PLACE/events", events),)
