"""The topics of the stream, each with its kinds and the function that makes its rows."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, get_args

from paddock.base.clock import Clock, SystemClock
from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import EVENTS, Target
from paddock.web.answers.rows import WebAnswer
from paddock.web.images import NoImages, WebImageSource
from paddock.web.live import kindtable as kinds
from paddock.web.live import objectrows
from paddock.web.live.eventrows import MOST_EVENTS, EventRows
from paddock.web.live.machinerows import MACHINE_TARGETS, MachineRows, UsageRows
from paddock.web.live.objects import LiveObjects
from paddock.web.live.taskrows import TaskRows
from paddock.web.live.topicnames import WebTopic

_CLOCK, _NO_IMAGES = SystemClock(), NoImages()
TOPICS: tuple[WebTopic, ...] = get_args(WebTopic)
# How many objects of a kind are kept, where that is bounded.
MOST: Mapping[str, int] = {EVENTS.qualified: MOST_EVENTS}


class RowSource(Protocol):
    """The source of the rows of a topic. `seconds`: how often `poll` runs while somebody listens; 0 is never."""

    @property
    def kinds(self) -> tuple[Target[Data], ...]: ...

    @property
    def seconds(self) -> float: ...

    async def poll(self, client: Client, namespace: str) -> None:
        """Read what no watch brings. `namespace` is the user's own, for one who may see no other."""

    def rows(self, objects: LiveObjects) -> Iterable[WebAnswer]:
        """Return all rows. Each has an `id`."""


class _ObjectRows:
    """A topic whose rows are made of objects alone, and name the machines that use them."""

    seconds = 0.0

    def __init__(self, own: tuple[Target[Data], ...], make: Callable[[LiveObjects], Iterable[WebAnswer]]) -> None:
        self.kinds = (*own, *MACHINE_TARGETS)
        self._make = make

    async def poll(self, client: Client, namespace: str) -> None:
        """Do nothing: watches are enough."""

    def rows(self, objects: LiveObjects) -> Iterable[WebAnswer]:
        return self._make(objects)


def source(topic: WebTopic, clock: Clock = _CLOCK, images: WebImageSource = _NO_IMAGES) -> RowSource:
    """Return a new source of a topic's rows."""
    if topic == "machines":
        return MachineRows(clock)
    return objectrows.ImageRows(images) if topic == "images" else _SOURCES[topic]()


_SOURCES: Mapping[WebTopic, Callable[[], RowSource]] = {
    "usage": UsageRows,
    "tasks": TaskRows,
    "events": EventRows,
    "volumes": lambda: _ObjectRows(objectrows.VOLUME_KINDS, objectrows.volumes),
    "networks": lambda: _ObjectRows(objectrows.NETWORK_KINDS, objectrows.networks),
    "snapshots": lambda: _ObjectRows(objectrows.SNAPSHOT_KINDS, objectrows.snapshot_rows),
    "pools": lambda: _ObjectRows(objectrows.POOL_KINDS, objectrows.pools),
    "providers": lambda: _ObjectRows(kinds.PROVIDERS, objectrows.providers),
    "migrations": lambda: _ObjectRows(objectrows.MIGRATION_KINDS, objectrows.migrations),
}
