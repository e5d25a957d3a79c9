"""Checks Providers: Validate at their interval, with thresholds, and what they report that they can do (docs/spec/virtrigaud.md 2.4)."""

import asyncio

import msgspec

from paddock.base import reasons as causes
from paddock.contract import extensionmessages as x
from paddock.contract import messages as m
from paddock.contract.driver import Driver, extensions
from paddock.contract.errors import ProviderError
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.context import VirtrigaudParts
from paddock.dialects.virtrigaud.controllers.usage import CountPauses
from paddock.dialects.virtrigaud.kinds.provider import Provider, ReportedCapabilities
from paddock.dialects.virtrigaud.plan import health, marks
from paddock.dialects.virtrigaud.plan.health import CheckCounts, HealthProblem, ProviderFacts
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime import finalizers
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubernetes.runtime.kindreconciler import KindReconciler, ObjectFinalizer
from paddock.kubernetes.runtime.reference import reference
from paddock.kubernetes.runtime.statuses import StatusWriter

# A hypervisor that has just started reports more a little later, so pauses grow to the longest one.
_CAPABILITIES_FIRST_SECONDS, _CAPABILITIES_SECONDS = 5.0, 600.0
_CAPABILITIES_AGAIN_SECONDS = 30.0
# After a check that failed, the next one comes no later than that.
_CHECK_AGAIN_SECONDS = 30.0


class _ProviderMemory(msgspec.Struct):
    """What is remembered of a Provider between passes."""

    uid: str
    driver: Driver | None = None
    generation: int | None = None
    counts: CheckCounts = CheckCounts()
    problem: HealthProblem = HealthProblem()
    checked_at: str | None = None
    due: float = 0.0
    capabilities: ReportedCapabilities | None = None
    capabilities_problem: HealthProblem = HealthProblem()
    capabilities_due: float = 0.0
    capabilities_pause: float = _CAPABILITIES_FIRST_SECONDS


class VirtrigaudProviderReconciler(KindReconciler):
    def __init__(self, parts: VirtrigaudParts) -> None:
        super().__init__(parts.caches.providers, ObjectFinalizer(parts.client, marks.PROVIDER_FINALIZER))
        self._parts = parts
        self._statuses = StatusWriter(parts.client, targets.PROVIDERS, parts.caches.providers.expectations)
        self._pauses = CountPauses(parts)
        self._memories: dict[Key, _ProviderMemory] = {}

    async def forget(self, key: Key) -> None:
        """Release the program of a Provider that is gone."""
        self._memories.pop(key, None)
        self._pauses.forget(key)
        await self._parts.providers.release(key)

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Release its program, and let it go, when no machine and no image needs it; until then, report on it."""
        users, images = self._users(seen), self._parts.caches.images_in_removal(seen.key)
        if users or images:
            return await self._check(seen, users, images)
        await self._parts.providers.release(seen.key)
        await finalizers.take_off(self._parts.client, targets.PROVIDERS, seen.meta, marks.PROVIDER_FINALIZER)
        return DONE

    async def work(self, seen: CachedObject) -> Outcome:
        """Check one Provider when that is due, and report."""
        return await self._check(seen, self._users(seen), 0)

    def _users(self, seen: CachedObject) -> int:
        return len(self._parts.caches.referring("Provider", seen.key))

    async def _check(self, seen: CachedObject, users: int, images: int) -> Outcome:
        key = seen.key
        provider = seen.read(targets.PROVIDERS)
        await self._parts.providers.ensure(key, provider, self._parts.caches.provider_secrets(provider))
        connection = self._parts.providers.find(key, provider.spec.type)
        memory = self._memory(key, seen, connection.driver)
        wait: float | None = None
        if connection.driver is not None:
            wait = await self._ask(connection.driver, provider, memory)
        facts = ProviderFacts(
            runtime=connection.runtime,
            connected=connection.driver is not None,
            counts=memory.counts,
            problem=memory.problem,
            checked_at=memory.checked_at,
            machines=users,
            images=images,
            capabilities=memory.capabilities,
            capabilities_problem=memory.capabilities_problem,
        )
        wanted = health.status(provider, facts, self._parts.timestamp())
        before = provider.status.healthy if provider.status is not None else None
        pause = self._pauses.left(seen)
        if pause > 0 and provider.status == msgspec.structs.replace(wanted, connectedVMs=(provider.status or wanted).connectedVMs):
            return again(min(pause, wait) if wait is not None else pause)
        if await self._statuses.write(seen, wanted) is not None:
            self._pauses.wrote(seen)
        if wanted.healthy != before and before is not None:
            reason, kind = ("Healthy", "Normal") if wanted.healthy else ("Unhealthy", "Warning")
            self._parts.recorder.tell(
                reference(targets.PROVIDERS, seen.meta), kind, reason, memory.problem.message or "the provider answers"
            )
        return again(wait) if wait is not None else DONE

    def _memory(self, key: Key, seen: CachedObject, driver: Driver | None) -> _ProviderMemory:
        memory = self._memories.get(key)
        if memory is None or memory.uid != seen.meta.uid or memory.driver is not driver or memory.generation != seen.meta.generation:
            # Another driver, or another address: nothing that is known holds for it.
            memory = self._memories[key] = _ProviderMemory(seen.meta.uid, driver, seen.meta.generation)
        return memory

    async def _ask(self, driver: Driver, provider: Provider, memory: _ProviderMemory) -> float:
        """Ask what is due; the seconds until something is due again."""
        now = self._parts.now()
        checks = health.settings(provider)
        if not checks.enabled:
            # Nobody knows then whether it is healthy.
            memory.counts, memory.problem = CheckCounts(), HealthProblem()
        elif now >= memory.due:
            memory.problem = await self._validate(driver, health.timeout(provider))
            memory.counts = memory.counts.after(memory.problem.message)
            memory.checked_at = self._parts.timestamp()
            pause = health.interval(provider)
            memory.due = now + (min(pause, _CHECK_AGAIN_SECONDS) if memory.problem.message else pause)
        if not memory.problem.message and now >= memory.capabilities_due:
            await self._ask_capabilities(driver, memory)
        waits = [memory.capabilities_due] if not memory.problem.message else []
        waits += [memory.due] if checks.enabled else []
        return max(0.1, min(waits) - self._parts.now())

    @staticmethod
    async def _validate(driver: Driver, seconds: float) -> HealthProblem:
        try:
            async with asyncio.timeout(seconds):
                answer = await driver.validate(m.ValidateRequest())
        except TimeoutError:
            return HealthProblem(f"the provider did not answer in {seconds:g} s", causes.PROVIDER_TIMEOUT)
        except ProviderError as error:
            return HealthProblem(error.reported, error.reason_code)
        if answer.ok:
            return HealthProblem()
        return HealthProblem(answer.message or "the provider says that it is not well, and not why", answer.reason)

    async def _ask_capabilities(self, driver: Driver, memory: _ProviderMemory) -> None:
        try:
            answer = await driver.get_capabilities(m.GetCapabilitiesRequest())
            known = await extensions(driver).get_features(x.GetFeaturesRequest())
        except ProviderError as error:
            memory.capabilities_problem = HealthProblem(error.reported, error.reason_code)
            memory.capabilities_due = self._parts.now() + _CAPABILITIES_AGAIN_SECONDS
            return
        memory.capabilities, memory.capabilities_problem = health.capabilities(answer, known.features), HealthProblem()
        memory.capabilities_due = self._parts.now() + memory.capabilities_pause
        memory.capabilities_pause = min(memory.capabilities_pause * 2, _CAPABILITIES_SECONDS)
