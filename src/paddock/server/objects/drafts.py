"""A write that is being worked out, and the thread that does the work of a large one."""

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from paddock.base.jsondata import Data
from paddock.kubernetes.schema.finding import Finding
from paddock.server.objects.requests import Options
from paddock.server.resources.resource import ServedResource
from paddock.server.resources.strategy import WriteContext

T = TypeVar("T")


async def aside(options: Options, work: Callable[[], T]) -> T:
    """Do a piece of work. That of a large write is done by a thread, so that others have their turns on the event loop meanwhile.

    The work must be pure: it may read nothing that the loop changes.
    """
    return await asyncio.get_running_loop().run_in_executor(_thread(), work) if options.is_large else work()


@functools.cache
def _thread() -> ThreadPoolExecutor:
    """One thread, so that the loop has half of the interpreter, however many large writes there are."""
    return ThreadPoolExecutor(1, "large writes")


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

    def all_warnings(self) -> tuple[str, ...]:
        """All warnings, each once."""
        return tuple(dict.fromkeys((*self.warnings, *self.context.said)))
