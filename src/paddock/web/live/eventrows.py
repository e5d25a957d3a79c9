from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import texts
from paddock.fleet.machines import eventlists
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import EVENTS
from paddock.web.answers.rows import WebEventPart
from paddock.web.live.objects import LiveObjects

# Of a busy cluster the newest are enough.
MOST_EVENTS = 2000


class EventRows:
    """All events that the user may see."""

    kinds = (EVENTS,)
    seconds = 0.0

    async def poll(self, client: Client, namespace: str) -> None:
        """Do nothing: the watch is enough."""

    def rows(self, objects: LiveObjects) -> list[WebEventPart]:
        """Return the events, the newest first."""
        return sorted((part(each) for each in objects.of(EVENTS)), key=lambda each: each.time, reverse=True)


def part(event: Data) -> WebEventPart:
    """Return an event for the page."""
    about = event.get("involvedObject") or {}
    return WebEventPart(
        id=texts(event, "metadata", "uid") or f"{texts(event, 'metadata', 'namespace')}/{texts(event, 'metadata', 'name')}",
        time=eventlists.time(event),
        type="Warning" if event.get("type") == "Warning" else "Normal",
        reason=str(event.get("reason") or ""),
        message=str(event.get("message") or ""),
        object=f"{about.get('kind', '')}/{about.get('name', '')}",
        namespace=str(about.get("namespace") or texts(event, "metadata", "namespace")),
        count=eventlists.count(event),
        source=texts(event, "source", "component") or texts(event, "reportingComponent"),
    )
