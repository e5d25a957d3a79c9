"""What one identity sees of a server, kept by one watch for each kind, however many pages are open."""

from typing import Literal, Protocol

from paddock.cli.machines.finding import MachineView
from paddock.web.answers.rows import WebAnswer

WebTopic = Literal["machines", "usage", "tasks", "events", "images", "volumes", "networks", "snapshots", "pools", "providers", "migrations"]


class LiveSet(Protocol):
    """What handlers may ask of the watches. Both start what they need, and wait until it has been listed once."""

    async def machines(self) -> list[MachineView]:
        """Return all machines that the user may see, joined from the objects of all dialects."""

    async def rows(self, topic: WebTopic) -> list[WebAnswer]:
        """Return the rows of a topic as they are now."""
