"""All chores of the server: started when it comes up, stopped before it goes down."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from paddock.server.context import ServerParts, running_time
from paddock.server.housekeeping import compaction
from paddock.server.housekeeping.accounttokens import TokenSecretController
from paddock.server.housekeeping.aggregation import RoleAggregationController
from paddock.server.housekeeping.apiservices import ApiServiceController
from paddock.server.housekeeping.claims import ClaimProtection
from paddock.server.housekeeping.collector import GarbageCollector
from paddock.server.housekeeping.csrsigner import CsrSigner
from paddock.server.housekeeping.endpoints import EndpointsController
from paddock.server.housekeeping.eventexpiry import EventExpiry
from paddock.server.housekeeping.flows import FlowSchemaStatusController
from paddock.server.housekeeping.keyqueue import KeyQueue
from paddock.server.housekeeping.namespaces import NamespaceController
from paddock.server.housekeeping.policies import PolicyStatusController
from paddock.server.housekeeping.quotas import QuotaController
from paddock.server.housekeeping.volumes import VolumeBinder
from paddock.server.security.pki import Authority
from paddock.server.security.tokens import AccountTokens

_LOG = logging.getLogger(__name__)
_TICK_SECONDS, _EVENTS_SECONDS, _AGEING_SECONDS = 5.0, 60.0, 150.0
_REQUESTS_SECONDS = 600.0


class BackgroundControllers:
    """Everything the server does by itself."""

    def __init__(
        self, parts: ServerParts, authority: str, tokens: AccountTokens | None = None, *, alone: bool = False, bare: bool = False
    ) -> None:
        """`alone`: no controllers of machines run beside, which would look after Services and storage.

        `bare`: namespaces have no ServiceAccount that nobody made.
        """
        self._parts = parts
        self.collector = GarbageCollector(parts)
        self.namespaces = NamespaceController(parts, authority, bare=bare)
        self.aggregation = RoleAggregationController(parts)
        self.claims = ClaimProtection(parts)
        self.endpoints = EndpointsController(parts, selecting=alone)
        self.volumes = VolumeBinder(parts, alone=alone)
        self.quotas = QuotaController(parts)
        self.policies = PolicyStatusController(parts)
        self.flows = FlowSchemaStatusController(parts)
        self.apiservices = ApiServiceController(parts)
        # Where nobody issues tokens, there are none to keep.
        self.secrets = TokenSecretController(parts, tokens, authority) if tokens is not None else None
        self.events = EventExpiry(parts, running_time)
        self.ageing = compaction.HistoryCompactor(parts)
        self.signing: CsrSigner | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def sign(self, authority: Authority) -> None:
        """Sign approved requests for client certificates, too."""
        self.signing = CsrSigner(self._parts, authority)

    def start(self) -> None:
        if self.signing is not None:
            self.signing.start()
            self.every(_REQUESTS_SECONDS, self.signing.forget)
        self.collector.start()
        self.namespaces.start()
        self.aggregation.start()
        self.claims.start()
        self.endpoints.start()
        self.volumes.start()
        self.quotas.start()
        self.policies.start()
        self.flows.start()
        self.apiservices.start()
        if self.secrets is not None:
            self.secrets.start()
        for seconds, work in ((_TICK_SECONDS, self._tell_time), (_EVENTS_SECONDS, self._forget_events), (_TICK_SECONDS, self._compact)):
            self.every(seconds, work)
        self.every(_AGEING_SECONDS, self.ageing.compact)

    def every(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        """Do this regularly until the end; a failure is logged and the next time comes."""
        self._tasks.append(asyncio.create_task(_every(seconds, work)))

    def once(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do this soon; a failure is logged."""
        task = asyncio.create_task(_do(work))
        self._tasks.append(task)
        task.add_done_callback(self._tasks.remove)

    async def stop(self) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for chores in self._chores():
            await chores.stop()

    async def settled(self) -> None:
        """Wait until no chore has anything to do now."""
        for _ in range(3):
            for chores in self._chores():
                await chores.settled()

    def _chores(self) -> tuple[KeyQueue[Any], ...]:
        objects = (self.namespaces, self.collector, self.claims, self.endpoints, self.volumes)
        house = (*objects, self.aggregation, self.quotas, self.policies, self.flows, self.apiservices)
        more = (each for each in (self.secrets, self.signing) if each is not None)
        return (*(each.chores for each in house), *(each.chores for each in more))

    async def _tell_time(self) -> None:
        self._parts.following.tell_time()

    async def _forget_events(self) -> None:
        await self.events.forget_old()

    async def _compact(self) -> None:
        await compaction.compact(self._parts)


async def _every(seconds: float, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        await asyncio.sleep(seconds)
        await _do(work)


async def _do(work: Callable[[], Awaitable[None]]) -> None:
    try:
        await work()
    except Exception:
        _LOG.exception("background task failed", extra={"task": work.__name__})
