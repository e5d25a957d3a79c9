"""`status.changedBlockTracking` of machines and their instances: whether their changed blocks are followed.

The engine follows the disks of all machines that it starts, because that costs nothing before the first backup. So the state is about the
selectors and the gate; an instance that an earlier version started waits for its restart.
"""

import orjson

from paddock.engine.machine.machines import Machines
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.runtime.cache import CacheChange, CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.statuses import StatusWriter, status_of
from paddock.kubevirt.controllers.snapshots.targets import INSTANCES, MACHINES
from paddock.kubevirt.plan.snapshots import tracking as plan

INSTALLATION = Key("kubevirt", "kubevirt")
_MEMBER = "changedBlockTracking"


class TrackingReconciler(KindReconciler):
    """Writes the state of one machine and of its instance."""

    def __init__(
        self, client: Client, machines: Informer, instances: Informer, settings: tuple[Informer, Informer], engine: Machines
    ) -> None:
        """`settings`: the KubeVirt objects, and the namespaces."""
        super().__init__(machines)
        self._machines = machines
        self._instances = instances
        self._installations, self._namespaces = settings
        self._engine = engine
        self._of_machines = StatusWriter(client, MACHINES, machines.expectations)
        self._of_instances = StatusWriter(client, INSTANCES, instances.expectations)

    async def work(self, seen: CachedObject) -> Outcome:
        """Write what is so now."""
        instance = self._instances.cache.get(seen.key)
        if instance is not None and instance.meta.deleting:
            instance = None
        facts = plan.TrackingFacts(
            self.has_gate, self._is_selected(seen), instance is not None, instance is not None and self.is_followed(instance.meta.uid)
        )
        if instance is not None:
            await self._write(self._of_instances, instance, plan.instance_state(_state(instance), facts))
        await self._write(self._of_machines, seen, plan.machine_state(_state(seen), facts))
        return DONE

    async def _write(self, writer: StatusWriter, seen: CachedObject, state: str) -> None:
        if state != _state(seen):
            await writer.change(seen, {_MEMBER: {"state": state}})

    def is_followed(self, uid: str) -> bool:
        """Return whether the engine runs a machine and follows a disk of it."""
        machine = self._engine.get(uid)
        return machine is not None and machine.observed.phase == "running" and any(disk.tracked for disk in machine.config.disks)

    @property
    def has_gate(self) -> bool:
        """The KubeVirt object has backups on."""
        return plan.has_gate(self._configuration)

    @property
    def _configuration(self) -> dict[str, object]:
        found = self._installations.cache.get(INSTALLATION)
        return ((orjson.loads(found.raw).get("spec") or {}).get("configuration") or {}) if found is not None else {}

    def _is_selected(self, seen: CachedObject) -> bool:
        namespace = self._namespaces.cache.get(Key("", seen.key.namespace))
        of_namespace = namespace.meta.labels if namespace is not None else None
        return plan.is_selected(self._configuration, seen.meta.labels or {}, of_namespace or {})

    def everywhere(self, change: CacheChange) -> list[Key]:
        """All machines: a setting has changed."""
        return [seen.key for seen in self._machines.cache] if change.seen.key == INSTALLATION else []

    def inside(self, change: CacheChange) -> list[Key]:
        """The machines of a namespace whose labels may have changed."""
        return [seen.key for seen in self._machines.cache.by("namespace", change.seen.key.name)]


def _state(seen: CachedObject) -> str:
    return str((status_of(seen).get(_MEMBER) or {}).get("state") or "")
