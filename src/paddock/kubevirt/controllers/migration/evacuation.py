"""The controller of evacuations: an instance whose node is drained gets a migration, until it is on another node."""

import asyncio

from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Controller, Outcome, again
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.migration.controller import MIGRATIONS
from paddock.kubevirt.controllers.migration.moves import INSTANCES
from paddock.kubevirt.kinds.migration import MigrationSpec, VirtualMachineInstanceMigration
from paddock.kubevirt.plan.migration.steps import FINAL

# After a migration that failed, the next one waits.
_PAUSE_SECONDS = 5.0
_BY_INSTANCE = "migrations by instance"
_NODE = "kubevirt.io/evacuationMigration"


class EvacuationReconciler(KindReconciler):
    """Makes migrations of instances that have to leave their node."""

    def __init__(self, client: Client, instances: Informer, migrations: Informer) -> None:
        super().__init__(instances)
        self._client = client
        self._migrations = migrations
        migrations.cache.index(_BY_INSTANCE, lambda seen: (str(_instance_of(seen)),))
        # when the last migration of each was made, by the loop's clock
        self._made: dict[Key, float] = {}

    async def forget(self, key: Key) -> None:
        """Drop what is known of an instance that is gone."""
        self._made.pop(key, None)

    async def work(self, seen: CachedObject) -> Outcome:
        """Make a migration, unless one is under way."""
        if _IN_JSON not in seen.raw:
            return DONE
        status = seen.read(INSTANCES).status
        if status is None or not status.evacuationNodeName or status.phase != "Running":
            return DONE
        if any(_phase(each) not in FINAL for each in self._migrations.cache.by(_BY_INSTANCE, str(seen.key))):
            return DONE
        now = asyncio.get_running_loop().time()
        if (left := self._made.get(seen.key, now - _PAUSE_SECONDS) + _PAUSE_SECONDS - now) > 0:
            return again(left)
        self._made[seen.key] = now
        metadata = ObjectMeta(
            name="", generateName="kubevirt-evacuation-", namespace=seen.key.namespace, annotations={_NODE: status.evacuationNodeName}
        )
        migration = VirtualMachineInstanceMigration(
            apiVersion=MIGRATIONS.api_version, kind=MIGRATIONS.kind, metadata=metadata, spec=MigrationSpec(vmiName=seen.key.name)
        )
        await self._client.create(MIGRATIONS, migration)
        return again(_PAUSE_SECONDS)


_IN_JSON = b'"evacuationNodeName"'


def _instance_of(seen: CachedObject) -> Key:
    return Key(seen.key.namespace, seen.read(MIGRATIONS).spec.vmiName or "")


def _phase(seen: CachedObject) -> str:
    status = seen.read(MIGRATIONS).status
    return (status.phase if status is not None else None) or ""


def wire(program: ControllerManager) -> Controller:
    """Add the controller to a program."""
    instances, migrations = program.informers.of(INSTANCES), program.informers.of(MIGRATIONS)
    evacuations = EvacuationReconciler(program.client, instances, migrations)
    controller = Controller("evacuation", instances, evacuations.reconcile, machinery=program.machinery, recorder=program.recorder)
    controller.watch(migrations, lambda change: (_instance_of(change.seen),))
    program.add(controller)
    return controller
