"""Leader election by a Lease, with the protocol of client-go, so that replicas in either language take turns.

A candidate looks every `retry` seconds. It takes a lease that nobody holds, or that did not change for `duration` seconds *by its own
clock*; times written into the lease are for people. The leader renews every `retry` seconds and stops acting when no
renewal that was begun in the last `deadline` seconds has succeeded. Since `deadline < duration`, it has stopped before
anybody may take over; the difference is the time its work has to end.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from paddock.base.errors import PaddockError, Terminal
from paddock.base.jsondata import Data
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists, Conflict, NotFound
from paddock.kubernetes.client.target import LEASES, Key
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime.machinery import Machinery

_LOG = logging.getLogger(__name__)
_JITTER = 1.2


class LeaseTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The place of the lease, and its times."""

    key: Key
    # who we are; different for every copy that runs
    identity: str
    duration: float = 15.0
    deadline: float = 10.0
    retry: float = 2.0


class StillActing(Terminal):
    """The work did not end when leadership was lost; the program must end at once."""


class BadTerms(Terminal):
    """Times with which two could lead."""


Lead = Callable[[], Awaitable[None]]


class Election:
    def __init__(self, client: Client, terms: LeaseTerms, machinery: Machinery) -> None:
        if not int(terms.duration) > terms.deadline > terms.retry * _JITTER > 0:
            raise BadTerms(
                "a lease needs duration > deadline > 1.2 x retry", why=f"{terms.duration:g}, {terms.deadline:g}, {terms.retry:g}"
            )
        self._client = client
        self._terms = terms
        self._clock = machinery.clock
        self._chance = machinery.chance
        self._lease: Data | None = None
        self._observed_at = float("-inf")
        self._leader = machinery.metrics.gauge("paddock_leader", "1 if this replica leads.", ("lease",))
        self._leader.set(0, str(terms.key))
        self.leading = False
        # why we could not even try to lead when we last did; empty while all is well, whoever leads
        self.problem = ""

    @property
    def holder(self) -> str:
        """The last known holder of the lease."""
        return str(_spec(self._lease).get("holderIdentity") or "")

    async def run(self, lead: Lead) -> None:
        """Campaign, lead, and campaign again when leadership is lost; until cancelled, which gives the lease back.

        `lead` runs while we lead; it is cancelled when we lose. When it ends by itself, so does this. Raises `StillActing`.
        """
        while True:
            began = await self._campaign()
            self._set(leading=True)
            work = asyncio.ensure_future(lead())
            renewing = asyncio.create_task(self._renew(began))
            try:
                await asyncio.wait((work, renewing), return_when=asyncio.FIRST_COMPLETED)
            finally:
                # Leadership is over, or nobody wants it any more. The work ends before the lease is let go.
                self._set(leading=False)
                ended = work.done()
                await self._end(work)
                renewing.cancel()
                for problem in await asyncio.gather(renewing, return_exceptions=True):
                    if isinstance(problem, Exception):
                        _LOG.error("lease renewal failed because of a defect", exc_info=problem)
                if ended or not _was_lost(renewing):
                    await self._release()
            if ended:
                work.result()
                return
            _LOG.warning("leader election lost", extra={"lease": str(self._terms.key), "holder": self.holder})

    async def _end(self, work: "asyncio.Future[None]") -> None:
        work.cancel()
        margin = (self._terms.duration - self._terms.deadline) * 0.8
        _, unfinished = await asyncio.wait((work,), timeout=margin)
        if unfinished:
            raise StillActing(
                f"the work of {self._terms.identity} did not end within {margin:g} s after leadership was lost",
                fix="end the process: another copy may be acting",
            )

    def _set(self, *, leading: bool) -> None:
        self.leading = leading
        self._leader.set(1 if leading else 0, str(self._terms.key))
        if leading:
            _LOG.info("leader election won", extra={"lease": str(self._terms.key), "identity": self._terms.identity})

    async def _campaign(self) -> float:
        """Wait until we lead; returns when the write began that made us leader."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                async with asyncio.timeout(self._terms.deadline):
                    leads = await self._try(renews=False)
                self.problem = ""
                if leads:
                    return began
            except (PaddockError, TimeoutError) as error:
                self._note(str(error) or f"no answer within {self._terms.deadline:g} s")
            await asyncio.sleep(self._terms.retry * self._chance.uniform(1.0, 1.0 + _JITTER))

    def _note(self, problem: str) -> None:
        if problem != self.problem:
            _LOG.warning("lease acquisition failed", extra={"lease": str(self._terms.key), "error": problem})
        self.problem = problem

    async def _renew(self, began: float) -> None:
        """Stay leader; returns when that failed for too long, or somebody else leads."""
        loop = asyncio.get_running_loop()
        good = began
        while True:
            await asyncio.sleep(max(0.0, min(self._terms.retry, good + self._terms.deadline - loop.time())))
            began = loop.time()
            if began >= good + self._terms.deadline:
                return
            try:
                async with asyncio.timeout_at(good + self._terms.deadline):
                    if not await self._try(renews=True):
                        return
                good = began
            except TimeoutError:
                return
            except PaddockError as error:
                _LOG.warning("lease renewal failed", extra={"lease": str(self._terms.key), "error": str(error)})

    async def _try(self, *, renews: bool) -> bool:
        """Take or renew the lease if that is allowed; whether we hold it now."""
        loop = asyncio.get_running_loop()
        if renews and self._lease is not None:
            # Nobody else can have written what we wrote last, so there is nothing to read first.
            try:
                self._observe(await self._client.update(LEASES, self._wanted(self._lease)))
                return True
            except (Conflict, NotFound):
                _LOG.info("lease changed by another client", extra={"lease": str(self._terms.key)})
        try:
            found = await self._client.get(LEASES, self._terms.key)
        except NotFound:
            try:
                self._observe(await self._client.create(LEASES, self._wanted(None)))
            except AlreadyExists:
                return False
            return True
        if self._lease is None or found["metadata"].get("resourceVersion") != self._lease["metadata"].get("resourceVersion"):
            self._observe(found)
        spec = _spec(found)
        holder = spec.get("holderIdentity") or ""
        seconds = spec.get("leaseDurationSeconds") or self._terms.duration
        if holder not in ("", self._terms.identity) and loop.time() < self._observed_at + seconds:
            return False
        try:
            self._observe(await self._client.update(LEASES, self._wanted(found)))
        except Conflict:
            return False
        return True

    def _observe(self, lease: Data) -> None:
        self._lease = lease
        self._observed_at = asyncio.get_running_loop().time()

    def _wanted(self, found: Data | None) -> Data:
        """The lease as ours, from now on."""
        now = ages.micro_timestamp(self._clock.seconds())
        spec = {
            "holderIdentity": self._terms.identity,
            "leaseDurationSeconds": int(self._terms.duration),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": 0,
        }
        if found is None:
            metadata = {"name": self._terms.key.name, "namespace": self._terms.key.namespace}
            return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}
        before = _spec(found)
        if before.get("holderIdentity") == self._terms.identity:
            spec["acquireTime"] = before.get("acquireTime") or now
            spec["leaseTransitions"] = before.get("leaseTransitions") or 0
        else:
            spec["leaseTransitions"] = int(before.get("leaseTransitions") or 0) + 1
        return {**found, "spec": spec}

    async def _release(self) -> None:
        """Let the next one begin at once."""
        lease = self._lease
        if lease is None or self.holder != self._terms.identity:
            return
        now = ages.micro_timestamp(self._clock.seconds())
        transitions = _spec(lease).get("leaseTransitions") or 0
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": now, "renewTime": now, "leaseTransitions": transitions}
        try:
            async with asyncio.timeout(self._terms.retry):
                await self._client.update(LEASES, {**lease, "spec": spec})
        except (PaddockError, TimeoutError) as error:
            _LOG.warning("lease release failed", extra={"lease": str(self._terms.key), "error": str(error)})


def _spec(lease: Data | None) -> dict[str, Any]:
    return (lease or {}).get("spec") or {}


def _was_lost(renewing: "asyncio.Task[None]") -> bool:
    return renewing.done() and not renewing.cancelled() and renewing.exception() is None
