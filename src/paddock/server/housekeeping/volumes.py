"""PersistentVolumes: they are kept while a claim has them, and bound to claims.

Machines bring a controller of their own, which makes the volumes of the claims of its class. It binds those, and lets them go.
"""

from paddock.base.jsondata import Data
from paddock.kubernetes.core.storageclass import PROVISIONER, VOLUME_PROTECTION
from paddock.kubernetes.storage import binding
from paddock.server.builtin.claimsizes import CLASSES
from paddock.server.context import ServerParts
from paddock.server.housekeeping.claims import CLAIMS
from paddock.server.housekeeping.keyqueue import KeyQueue
from paddock.server.objects.encoding import decode
from paddock.server.objects.requests import Options, Proposal
from paddock.server.resources.resource import ServedResource
from paddock.server.store.contract import CommittedWrite, StoreKey

VOLUMES = "persistentvolumes"
_BINDER = Options(user="system:serviceaccount:kube-system:persistent-volume-binder", manager="persistent-volume-binder")
_STATUS = Options(user=_BINDER.user, manager=_BINDER.manager, subresource="status")
_PROTECTION = Options(user="system:serviceaccount:kube-system:pv-protection-controller", manager="pv-protection-controller")


class VolumeBinder:
    """Looks at volumes and claims that changed. `alone`: nobody else binds any. A volume's place has no namespace."""

    def __init__(self, parts: ServerParts, *, alone: bool) -> None:
        self._parts = parts
        self._alone = alone
        self.chores: KeyQueue[tuple[str, str]] = KeyQueue("volumes", self._reconcile)
        parts.store.follow(self._changed)

    def start(self) -> None:
        """Look at all, then at what changes."""
        for collection in (VOLUMES, CLAIMS):
            for record in self._parts.store.scan(collection):
                self.chores.offer((record.key.namespace, record.key.name))
        self.chores.start()

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        for change in changes:
            if change.key.collection in (VOLUMES, CLAIMS):
                self.chores.offer((change.key.namespace, change.key.name))
            if change.key.collection == VOLUMES and change.deleted:
                owner = (decode(change.value).get("spec") or {}).get("claimRef") or {}
                self.chores.offer((owner.get("namespace") or "", owner.get("name") or ""))

    async def _reconcile(self, place: tuple[str, str]) -> None:
        if place[0]:
            await self._look_at_claim(place)
        else:
            await self._look_at_volume(place[1])

    async def _look_at_volume(self, name: str) -> None:
        volume = self._read(VOLUMES, "", name)
        # Its controller deletes what the volume holds first.
        if volume is None or (not self._alone and binding.is_provisioned(volume)):
            return
        owner = volume["spec"].get("claimRef") or {}
        claim = self._read(CLAIMS, owner.get("namespace") or "", owner.get("name") or "") if owner.get("uid") else None
        phase, meta = binding.phase(volume, claim), volume["metadata"]
        if meta.get("deletionTimestamp"):
            if phase != "Bound" and VOLUME_PROTECTION in (meta.get("finalizers") or ()):
                await self._parts.writer.replace(self._resource(VOLUMES), "", name, _released, _PROTECTION)
        elif (volume.get("status") or {}).get("phase") != phase:
            await self._set_status(VOLUMES, ("", name), {"phase": phase, "lastPhaseTransitionTime": self._parts.clock.now()})
        if phase == "Available":
            for record in self._parts.store.scan(CLAIMS):
                self.chores.offer((record.key.namespace, record.key.name))

    async def _look_at_claim(self, place: tuple[str, str]) -> None:
        claim = self._read(CLAIMS, *place)
        if claim is not None and (claim["metadata"].get("deletionTimestamp") or self._is_of_machines(claim)):
            return
        volumes = list(self._parts.view.list(VOLUMES))
        if claim is None:
            for each in volumes:
                owner = each["spec"].get("claimRef") or {}
                if (owner.get("namespace"), owner.get("name")) == place:
                    self.chores.offer(("", each["metadata"]["name"]))
            return
        status = claim.get("status") or {}
        if binding.is_settled(claim):
            lost = all(each["metadata"]["name"] != claim["spec"]["volumeName"] for each in volumes)
            if lost and status.get("phase") == "Bound":
                await self._set_status(CLAIMS, place, {**status, "phase": "Lost"})
            elif status.get("phase") == "Pending" and not lost:
                await self._finish(place, next(each for each in volumes if each["metadata"]["name"] == claim["spec"]["volumeName"]))
            return
        volume = binding.chosen(claim, volumes, waits=self._waits(claim))
        if volume is not None:
            name = volume["metadata"]["name"]
            await self._parts.writer.replace(
                self._resource(VOLUMES), "", name, lambda old: Proposal(binding.bound_volume(old, claim)), _BINDER
            )
            await self._parts.writer.replace(
                self._resource(CLAIMS), *place, lambda old: Proposal(binding.bound_claim(old, volume)), _BINDER
            )
            await self._finish(place, volume)

    async def _finish(self, place: tuple[str, str], volume: Data) -> None:
        await self._set_status(CLAIMS, place, binding.claim_status(volume))

    def _is_of_machines(self, claim: Data) -> bool:
        """Return whether the storage controller of machines makes the volume of a claim."""
        return not self._alone and self._class_of(claim).get("provisioner") == PROVISIONER

    def _waits(self, claim: Data) -> bool:
        return bool(self._class_of(claim).get("volumeBindingMode") == "WaitForFirstConsumer")

    def _class_of(self, claim: Data) -> Data:
        """Return the storage class of a claim; empty if there is none."""
        return self._parts.view.get(CLASSES, "", claim["spec"].get("storageClassName") or "") or {}

    def _read(self, collection: str, namespace: str, name: str) -> Data | None:
        record = self._parts.store.decided(StoreKey(collection, namespace, name))
        return None if record is None else decode(record.value)

    def _resource(self, plural: str) -> ServedResource:
        return self._parts.registry.get("", "v1", plural)

    async def _set_status(self, plural: str, place: tuple[str, str], status: Data) -> None:
        def renewed(old: Data) -> Proposal:
            return Proposal({**old, "metadata": dict(old["metadata"]), "status": {**(old.get("status") or {}), **status}})

        await self._parts.writer.replace(self._resource(plural), *place, renewed, _STATUS)


def _released(old: Data) -> Proposal:
    meta = dict(old["metadata"])
    meta["finalizers"] = [each for each in meta.get("finalizers") or () if each != VOLUME_PROTECTION]
    return Proposal({**old, "metadata": meta})
