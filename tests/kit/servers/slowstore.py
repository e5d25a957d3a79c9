"""A store in memory whose commits take time, as those of a disk do: what is decided shows later, to readers and to followers."""

import asyncio

from paddock.server.store.contract import CommittedWrite
from paddock.server.store.memory import MemoryStore


class SlowStore(MemoryStore):
    """Each commit takes `seconds`, which a test may change."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__()
        self.seconds = seconds

    async def _commit(self, changes: tuple[CommittedWrite, ...]) -> None:
        await asyncio.sleep(self.seconds)
