"""What the controller does to disks and to the right to copy: writes beside the set of what is applied. Each may be repeated."""

from collections.abc import Iterable

from paddock.base.errors import Terminal
from paddock.client.client import Client
from paddock.client.errors import NotFound
from paddock.client.options import WriteOptions, merge_patch
from paddock.client.target import Key
from paddock.controllers.stakater import kinds
from paddock.controllers.stakater.caches import StakaterCaches
from paddock.controllers.stakater.reader import MachineObserver, ReconcilePass
from paddock.plan.stakater import clonerights, disks
from paddock.plan.stakater.disks import Growth
from paddock.runtime import finalizers
from paddock.runtime.deleting import delete_seen

MANAGER = "paddock-stakater"
WRITE = WriteOptions(manager=MANAGER)
_APPLY = WriteOptions(manager=MANAGER, force=True)


class StakaterActions:
    """The writes."""

    def __init__(self, client: Client, caches: StakaterCaches, eyes: MachineObserver) -> None:
        self._client = client
        self._caches = caches
        self.eyes = eyes

    # --- disks ------------------------------------------------------------------------------------------------------------

    async def grow(self, namespace: str, growth: Growth) -> None:
        """Have a claim ask for more."""
        seen = self._caches.classes.cache.get(Key("", growth.storage_class))
        if seen is not None and not seen.read(kinds.CLASSES).allowVolumeExpansion:
            raise Terminal(
                f"cannot grow the claim {namespace}/{growth.name} to {growth.size}",
                why=f"the StorageClass {growth.storage_class} does not allow it (allowVolumeExpansion)",
                fix="allow it there, or make the disk as large again as it was",
            )
        await self._client.patch(kinds.CLAIM_DATA, Key(namespace, growth.name), merge_patch(growth.patch), WRITE)

    async def guard_root(self, look: ReconcilePass, machine_uid: str) -> bool:
        """See to it that the root disk does not go unnoticed; whether something was written."""
        seen = self._caches.disks.cache.get(Key(look.key.namespace, look.root))
        if seen is None or seen.meta.going or not any(each.uid == machine_uid for each in seen.meta.ownerReferences or ()):
            return False
        return await finalizers.put_on(self._client, kinds.DISK_DATA, seen.meta, disks.ROOT_FINALIZER) is not None

    async def release_roots(self, key: Key, *, going: bool = False) -> None:
        """Let the DataVolumes of a machine go that are held: all, or those that are deleted."""
        for seen, _ in self.eyes.labelled(key):
            if going and not seen.meta.going:
                continue
            await finalizers.take_off(self._client, kinds.DISK_DATA, seen.meta, disks.ROOT_FINALIZER)

    async def prune(self, look: ReconcilePass, wanted: Iterable[str], machine_uid: str) -> list[str]:
        """Delete the disks that were taken out of the spec; returns their names."""
        found = self.eyes.labelled(look.key)
        instance = self.eyes.sight(look).instance
        names = disks.surplus((volume for _, volume in found), tuple(wanted), machine_uid, instance)
        for seen, volume in found:
            if volume.metadata.name in names:
                await delete_seen(self._client, kinds.DISK_DATA, seen)
        return names

    # --- the right to copy ------------------------------------------------------------------------------------------------

    async def grant(self, source: str, namespace: str, product: str) -> None:
        """Let the machines of a namespace copy images out of another."""
        role, binding = clonerights.manifests(source, namespace, product)
        await self._client.apply(kinds.ROLES, role, _APPLY)
        await self._client.apply(kinds.ROLE_BINDINGS, binding, _APPLY)

    async def revoke(self, source: str, namespace: str, *, last: bool) -> None:
        """Nobody in the namespace copies from there any more; with `last` nobody at all."""
        doomed = [(kinds.ROLE_BINDINGS, clonerights.binding_name(namespace))]
        if last:
            doomed.append((kinds.ROLES, clonerights.ROLE))
        for target, name in doomed:
            try:
                await self._client.delete(target, Key(source, name))
            except NotFound:
                continue
