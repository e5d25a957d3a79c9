"""A write that is being worked out, and the turns that it leaves to others."""

import asyncio

from paddock.apiserver.objects.encoding import Data
from paddock.apiserver.objects.requests import Options
from paddock.apiserver.resources.resource import ServedResource
from paddock.apiserver.resources.strategy import WriteContext
from paddock.schema.finding import Finding


async def give_way(options: Options) -> None:
    """Let others have their turn on the event loop, if this write is large."""
    if options.is_large:
        await asyncio.sleep(0)


class Draft:
    """A write that is being worked out.

    `wrong` is what the schema refuses of the body and did not refuse before, `sent` the body itself, `owned` whether its managedFields
    are settled.
    """

    __slots__ = ("context", "new", "old", "options", "owned", "resource", "sent", "warnings", "wrong")

    def __init__(self, resource: ServedResource, new: Data, old: Data | None, options: Options, context: WriteContext) -> None:
        self.resource = resource
        self.new = new
        self.old = old
        self.options = options
        self.context = context
        self.wrong: tuple[Finding, ...] = ()
        self.warnings: list[str] = []
        self.sent: Data = new
        self.owned = False

    def told(self) -> tuple[str, ...]:
        """All warnings, each once."""
        return tuple(dict.fromkeys((*self.warnings, *self.context.said)))
