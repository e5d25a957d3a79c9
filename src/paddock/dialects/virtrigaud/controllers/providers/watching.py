"""Looks for machines that have changed behind their Providers' backs: one list tells of all, where a Provider makes it at little cost.

A machine is described only every few minutes. Whose power is another one in the list, or who is not there any more, is described at once.
"""

from collections.abc import Callable

from paddock.contract import features
from paddock.contract import messages as m
from paddock.contract.errors import ProviderError
from paddock.dialects.virtrigaud.controllers import targets
from paddock.dialects.virtrigaud.controllers.context import VirtrigaudParts
from paddock.dialects.virtrigaud.plan import power, status
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubernetes.runtime.kindreconciler import KindReconciler


class VirtrigaudPowerWatch(KindReconciler):
    """Lists the machines of Providers that report the feature `list.power`; `suspect` gets the machines that have changed."""

    def __init__(self, parts: VirtrigaudParts, suspect: Callable[[Key], None]) -> None:
        super().__init__(parts.caches.providers)
        self._parts = parts
        self._suspect = suspect
        self._due: dict[Key, float] = {}

    async def forget(self, key: Key) -> None:
        """Drop when a Provider that is gone is due."""
        self._due.pop(key, None)

    async def finalize(self, seen: CachedObject) -> Outcome:
        """List the machines of a Provider that stays for their sake, too."""
        return await self.work(seen)

    async def work(self, seen: CachedObject) -> Outcome:
        """List the machines of one Provider, when that is due."""
        caches, now, key = self._parts.caches, self._parts.now(), seen.key
        known = caches.capabilities(key)
        if known is None or not features.has(known.features, features.LISTED_POWER):
            self._due.pop(key, None)
            return DONE
        if (wait := self._due.get(key, 0.0) - now) > 0:
            return again(wait)
        pause = self._parts.settings.polls.listed
        self._due[key] = now + pause
        driver = self._parts.providers.find(key, seen.read(targets.PROVIDERS).spec.type).driver
        if driver is not None and caches.referring("Provider", key):
            try:
                listed = await driver.list_vms(m.ListVMsRequest())
            except ProviderError:
                # The check of the Provider's health reports it.
                return again(pause)
            self._compare(key, {each.id: power.known(each.power_state) for each in listed.vms})
        return again(pause)

    def _compare(self, key: Key, powers: dict[str, str]) -> None:
        for seen in self._parts.caches.referring("Provider", key):
            found = status.of(seen.read(targets.MACHINES))
            if found.id and found.powerState and powers.get(found.id) not in (found.powerState, power.UNKNOWN):
                self._suspect(seen.key)
