"""Transfers that run: one for each volume that is being filled, known by the claim's UID.

Whoever wants a volume filled says so as often as he likes (`ensure`); a transfer that failed is begun again after a pause, unless trying
again cannot help. What a transfer has come to is a value, replaced as a whole, and listeners get the claim's key. Nothing
is kept on disk: a volume is there or it is not, and what was downloaded is the image library's.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from paddock.base.errors import PaddockError, Terminal, Transient
from paddock.base.fairslots import FairSlots
from paddock.kubernetes.client.target import Key
from paddock.kubevirt.plan.storage.transfers import NONE, Transfer

_LOG = logging.getLogger(__name__)
_FIRST_SECONDS, _LONGEST_SECONDS = 10.0, 300.0
# A transfer that waits for something else is checked this often; it has not failed.
_HELD_SECONDS = 2.0
# The reason of a transfer whose turn has not come.
QUEUED = "WaitingForSlot"

Tell = Callable[[float | None], None]
Work = Callable[[Tell], Awaitable[None]]


class TransferBlocked(Transient):
    """The transfer cannot begin yet, and that is nobody's failure. `reason` is one word for programs."""

    def __init__(self, reason: str, what: str, *, why: str = "", fix: str = "") -> None:
        super().__init__(what, why=why, fix=fix)
        self.reason = reason


class _Entry(msgspec.Struct):
    key: Key
    seen: Transfer = NONE
    task: "asyncio.Task[None] | None" = None
    failures: int = 0
    due: float = 0.0


class Transfers:
    """Runs transfers, a few at a time; half of them at most for one namespace."""

    def __init__(self, *, at_a_time: int = 8) -> None:
        self._entries: dict[str, _Entry] = {}
        self._turns = FairSlots(at_a_time)
        self._listeners: list[Callable[[Key], None]] = []

    def listen(self, tell: Callable[[Key], None]) -> None:
        """Call `tell` with the key of a claim whose transfer began, failed or ended."""
        self._listeners.append(tell)

    def progress(self, uid: str) -> Transfer:
        """Return the progress of a transfer."""
        entry = self._entries.get(uid)
        return entry.seen if entry is not None else NONE

    def wait_seconds(self, uid: str) -> float:
        """Return the seconds until the next check of a desired transfer."""
        entry = self._entries.get(uid)
        if entry is None or entry.task is not None:
            return 1.0
        return max(0.05, entry.due - asyncio.get_running_loop().time())

    def ensure(self, uid: str, key: Key, work: Work, *, restarts: int = 0) -> Transfer:
        """Begin a transfer unless it runs, failed for good, or failed a moment ago. `restarts` is what is known from before."""
        entry = self._entries.get(uid)
        if entry is None:
            entry = self._entries[uid] = _Entry(key, Transfer(restarts=restarts))
        if entry.task is not None or entry.seen.stage == "failed":
            return entry.seen
        if entry.seen.stage == "none":
            self._begin(uid, entry, work, entry.seen)
        elif asyncio.get_running_loop().time() >= entry.due:
            again = entry.seen.restarts + (1 if entry.seen.stage == "waiting" else 0)
            self._begin(uid, entry, work, msgspec.structs.replace(entry.seen, restarts=again))
        return entry.seen

    async def run(self, uid: str, key: Key, work: Work) -> None:
        """Run a transfer that somebody brings, and raise what it raises. One that runs already is `TransferBlocked`."""
        entry = self._entries.get(uid)
        if entry is not None and entry.task is not None:
            raise TransferBlocked("InProgress", "an upload into this claim is in progress")
        entry = self._entries[uid] = _Entry(key, entry.seen if entry is not None else NONE)
        entry.task = asyncio.current_task()
        try:
            await self._work(uid, entry, work)
        finally:
            if entry.task is not None:
                entry.task = None
                self._tell(entry)

    def forget(self, uid: str) -> None:
        """Nobody wants this volume filled any more."""
        entry = self._entries.pop(uid, None)
        if entry is not None and entry.task is not None:
            entry.task.cancel()

    async def close(self) -> None:
        tasks = [entry.task for entry in self._entries.values() if entry.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._entries.clear()

    def _begin(self, uid: str, entry: _Entry, work: Work, seen: Transfer) -> None:
        entry.seen = msgspec.structs.replace(seen, stage="queued" if seen.stage in ("none", "queued") else "running", progress=None)
        if blocked := self._turns.blocked(f"namespace {entry.key.namespace}"):
            message = f"waiting for a slot of those in which disks are filled: {blocked}"
            entry.seen = msgspec.structs.replace(entry.seen, stage="queued", reason=QUEUED, message=message)
        entry.task = asyncio.create_task(self._turn(uid, entry, work), name=f"transfer {entry.key}")

    async def _turn(self, uid: str, entry: _Entry, work: Work) -> None:
        try:
            async with self._turns.turn(f"namespace {entry.key.namespace}"):
                await self._work(uid, entry, work)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            # It is in `seen`, and whoever wants the volume reads it there.
            _LOG.debug("transfer failed", extra={"error": str(error)})
        finally:
            entry.task = None
            self._tell(entry)

    async def _work(self, uid: str, entry: _Entry, work: Work) -> None:
        def tell(fraction: float | None) -> None:
            if fraction is not None and fraction > (entry.seen.progress or -1.0):
                entry.seen = msgspec.structs.replace(entry.seen, progress=fraction)

        entry.seen = Transfer("running", restarts=entry.seen.restarts)
        self._tell(entry)
        try:
            await work(tell)
        except asyncio.CancelledError:
            self._entries.pop(uid, None)
            raise
        except Exception as error:
            entry.seen = self._failed(entry, error)
            raise
        # The number of attempts appears once more, beside the volume that is there now.
        entry.seen, entry.failures = Transfer(restarts=entry.seen.restarts), 0

    def _failed(self, entry: _Entry, error: Exception) -> Transfer:
        now, seen = asyncio.get_running_loop().time(), entry.seen
        if isinstance(error, TransferBlocked):
            entry.due = now + _HELD_SECONDS
            return Transfer("queued", None, seen.restarts, error.reason, str(error))
        entry.failures += 1
        entry.due = now + min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0 ** min(entry.failures - 1, 16))
        if isinstance(error, Terminal):
            return Transfer("failed", seen.progress, seen.restarts, reason_of(error), str(error), error.reason_code)
        if isinstance(error, PaddockError):
            return Transfer("waiting", seen.progress, seen.restarts, reason_of(error), str(error), error.reason_code)
        _LOG.error("transfer failed because of a defect", exc_info=error)
        return Transfer(
            "waiting", seen.progress, seen.restarts, "Error", f"this is a defect ({type(error).__name__}); the log has the details"
        )

    def _tell(self, entry: _Entry) -> None:
        for tell in self._listeners:
            tell(entry.key)


def reason_of(error: PaddockError) -> str:
    """The word for programs. An image that could not be pulled has one of its own."""
    return "ImagePullFailed" if getattr(error, "registry", False) else "Error"
