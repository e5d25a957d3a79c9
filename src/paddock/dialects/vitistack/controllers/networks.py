"""NetworkConfigurations: the definition that machines are attached with, as long as one uses it, and who they are."""

import logging
from collections.abc import Iterable, Iterator

import orjson

from paddock.base.errors import PaddockError
from paddock.base.jsondata import Data
from paddock.dialects.vitistack.controllers import targets
from paddock.dialects.vitistack.controllers.context import ControllerParts
from paddock.dialects.vitistack.controllers.reader import VitistackCaches, brief
from paddock.dialects.vitistack.kinds.networkconfiguration import NetworkConfiguration
from paddock.dialects.vitistack.plan import networks
from paddock.dialects.vitistack.plan.networks import NetworkUser
from paddock.dialects.vitistack.plan.problems import BACKEND
from paddock.dialects.vitistack.translate.attachments import is_managed, to_definition
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.core.networkattachment import NetworkAttachmentDefinition
from paddock.kubernetes.meta.wire import to_data
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubernetes.runtime.desired import DesiredObject, DesiredSet
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.reference import reference
from paddock.kubernetes.runtime.statuses import StatusWriter

_LOG = logging.getLogger(__name__)
# A thousand machines that come at once are a few changes of the list.
_GATHER_SECONDS = 1.0
CONTROLLER = "NetworkConfiguration"


class NetworkDefinitions:
    """The definitions of networks; they belong to their NetworkConfiguration, since machines share them."""

    def __init__(self, client: Client, caches: VitistackCaches) -> None:
        self._caches = caches
        self._set = DesiredSet(client, [caches.attachments], manager=targets.MANAGER)

    async def ensure(self, definition: NetworkAttachmentDefinition) -> None:
        """Make a definition that a machine needs; one that is there is looked after by the network's own controller."""
        key = Key(definition.metadata.namespace or "", definition.metadata.name)
        owner = self._caches.networks.cache.get(key)
        if owner is not None and self._caches.attachments.cache.get(key) is None:
            await self._reach(owner, definition)

    async def keep(self, owner: CachedObject, network: NetworkConfiguration) -> bool:
        """Have the definition say what the network says; whether one was rewritten."""
        there = self._caches.read_attachment.get(owner.key)
        if there is not None and not is_managed(there):
            return False
        return bool(await self._reach(owner, to_definition(network))) and there is not None

    async def drop(self, owner: CachedObject) -> None:
        """Take the definition away; one that somebody else made stays."""
        await self._set.reach(reference(targets.NETWORKS, owner.meta), [])

    async def _reach(self, owner: CachedObject, definition: NetworkAttachmentDefinition) -> tuple[str, ...]:
        reached = await self._set.reach(reference(targets.NETWORKS, owner.meta), [DesiredObject(targets.ATTACHMENTS, to_data(definition))])
        return reached.applied


class NetworkConfigurationReconciler(KindReconciler):
    def __init__(self, parts: ControllerParts, attachments: NetworkDefinitions) -> None:
        super().__init__(parts.caches.networks)
        self._caches = parts.caches
        self._statuses = StatusWriter(parts.client, targets.NETWORKS, parts.caches.networks.expectations)
        self._attachments = attachments
        self._clock = parts.clock
        self._recorder = parts.recorder
        self._metrics = parts.metrics
        # when each was last written
        self._written: dict[Key, float] = {}

    async def forget(self, key: Key) -> None:
        """Drop what is remembered of a network that is gone."""
        self._written.pop(key, None)

    async def finalize(self, seen: CachedObject) -> Outcome:
        """Look no more after one that is being deleted: its definition belongs to it."""
        await self.forget(seen.key)
        return DONE

    async def work(self, seen: CachedObject) -> Outcome:
        """Bring one network a step on."""
        key, network = seen.key, self._caches.read_network.get(seen.key)
        if network is None:
            return await self.finalize(seen)
        pause = self._written.get(key, 0.0) + _GATHER_SECONDS - self._clock.seconds()
        if pause > 0:
            return again(pause)
        users = list(self._users(key))
        try:
            await self._see_to_definition(seen, network, users)
        except PaddockError:
            self._metrics.network_failed(key.name)
            self._metrics.failed(CONTROLLER, BACKEND)
            raise
        await self._report(seen, users)
        return DONE

    def _users(self, key: Key) -> Iterator[NetworkUser]:
        """The machines that name the network; those that go until nothing of them is left that could be attached."""
        for each in self._caches.users_of(self._caches.networks, key):
            seen = self._caches.machines.cache.get(each)
            if seen is None or (seen.meta.deleting and not self._caches.remains(seen, ()).uses_networks):
                continue
            instance = self._caches.instance_of(each)
            yield NetworkUser(seen.read(targets.MACHINES), instance.read(targets.INSTANCES) if instance is not None else None)

    async def _see_to_definition(self, seen: CachedObject, network: NetworkConfiguration, users: list[NetworkUser]) -> None:
        if users:
            if await self._attachments.keep(seen, network):
                self._tell_of_change(users, network)
        elif self._caches.attachments.cache.get(seen.key) is not None and not self._others_use(seen.key):
            await self._attachments.drop(seen)

    def _others_use(self, key: Key) -> bool:
        """Return whether a VirtualMachine without a Machine is attached to it."""
        for seen in self._caches.vms.cache.by("namespace", key.namespace):
            spec: Data = orjson.loads(seen.raw).get("spec") or {}
            attached = ((spec.get("template") or {}).get("spec") or {}).get("networks") or ()
            names = {(each.get("multus") or {}).get("networkName") for each in attached}
            if names & {key.name, str(key)}:
                return True
        return False

    def _tell_of_change(self, users: list[NetworkUser], network: NetworkConfiguration) -> None:
        note = f"NetworkConfiguration {network.metadata.name} has changed: a restart is needed for the machine to be wired by it"
        for user in users:
            seen = self._caches.machines.cache.get(Key.of(user.name))
            if seen is not None and user.instance is not None:
                self._recorder.tell(reference(targets.MACHINES, seen.meta), "Normal", "RestartRequired", note)

    async def _report(self, seen: CachedObject, users: list[NetworkUser]) -> None:
        ready = self._caches.attachments.cache.get(seen.key) is not None
        if await self._statuses.write(seen, networks.status(seen.meta.name, users, ready=ready)):
            self._written[seen.key] = self._clock.seconds()
            _LOG.info("network status updated", extra={"machines": len(users)})

    def by_machine(self, change: CacheChange) -> Iterable[Key]:
        """The networks that a change of a machine concerns: those it names, before and after."""
        return {key: None for seen in (change.old, change.new) if seen is not None for key in networks_of(seen)}

    def by_instance(self, change: CacheChange) -> Iterable[Key]:
        """The networks that a change of a run concerns, when its addresses change."""
        seen = self._caches.machines.cache.get(change.seen.key)
        found = networks_of(seen) if seen is not None else []
        if not found:
            return ()
        old, new = (each.read(targets.INSTANCES).status.interfaces if each is not None else None for each in (change.old, change.new))
        return found if old != new else ()


def networks_of(seen: CachedObject) -> list[Key]:
    """The networks that a machine names."""
    return [Key(seen.key.namespace, name) for name in brief(seen).spec.network_names]
