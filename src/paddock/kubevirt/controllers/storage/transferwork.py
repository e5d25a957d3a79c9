"""The work of a transfer: from a claim's content to a volume that holds it. A volume appears when it is complete, at the end."""

import msgspec

from paddock.base import reasons
from paddock.base.images.progress import Progress
from paddock.engine.storage.errors import VolumeBroken, VolumeBusy
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.meta.wire import to_data
from paddock.kubevirt.controllers.storage import permission
from paddock.kubevirt.controllers.storage.imports import ImportSourceReader, SourceRefused
from paddock.kubevirt.controllers.storage.ports import ImageLibraryPort, VolumeStorePort
from paddock.kubevirt.controllers.storage.transfers import Tell, TransferBlocked, Work
from paddock.kubevirt.controllers.storage.view import StorageView
from paddock.kubevirt.plan.storage import hostdirectories
from paddock.kubevirt.plan.storage.contents import VolumeContent


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """The volume that is wanted."""

    uid: str
    claim: Key
    size: int
    pool: str = ""
    content: VolumeContent


class TransferWork:
    """Makes the work of transfers."""

    def __init__(
        self, client: Client, view: StorageView, importing: ImportSourceReader, images: ImageLibraryPort, volumes: VolumeStorePort
    ) -> None:
        self._client = client
        self._view = view
        self._importing = importing
        self._images = images
        self._volumes = volumes

    def work(self, goal: Goal) -> Work:
        """The work that reaches a goal."""
        kind = goal.content.kind

        async def do(tell: Tell) -> None:
            try:
                if kind == "blank":
                    await self._volumes.create(goal.uid, goal.size, preallocate=self._preallocates(goal), pool=goal.pool)
                elif kind == "pvc":
                    await self._copy(goal, tell)
                elif kind == "snapshot":
                    await self._restore(goal)
                else:
                    await self._import(goal, tell)
            except VolumeBroken as error:
                # A file that is put back mends it.
                raise TransferBlocked(reasons.VOLUME_DAMAGED, error.what, why=error.why, fix=error.fix) from error

        return do

    async def _import(self, goal: Goal, tell: Tell) -> None:
        if goal.content.archive:
            why = "archives are unpacked when they are uploaded, and not fetched"
            raise SourceRefused("cannot import an archive", why=why, fix="upload it, or make it a disk image")
        source = await self._importing.source(goal.content, goal.content.home or goal.claim.namespace)

        def report(progress: Progress) -> None:
            tell(progress.fraction)

        image = await self._images.fetch(source, report, limit=goal.size, owner=goal.claim.namespace)
        await self._volumes.create(goal.uid, goal.size, base=image, preallocate=self._preallocates(goal), pool=goal.pool)

    async def _copy(self, goal: Goal, tell: Tell) -> None:
        content = goal.content
        await permission.check(self._client, content, goal.claim.namespace)
        place = Key(content.namespace, content.name)
        source = self._view.claim(place)
        if source is None:
            raise TransferBlocked("CloneSourceNotFound", f"the claim {place} to copy is not there", fix="make it")
        volume = self._volumes.get(source.metadata.uid or "")
        if hostdirectories.is_static(to_data(source)):
            why = "has a volume that an administrator made, which is no disk"
            raise TransferBlocked("CloneSourceNotReady", f"the claim {place} to copy {why}", fix="name a claim of Paddock's own class")
        if volume is None and self._view.was_filled(source.metadata.uid or ""):
            raise TransferBlocked("CloneSourceNotReady", f"the claim {place} to copy has lost its volume")
        if volume is None:
            raise TransferBlocked("CloneSourceNotReady", f"the claim {place} to copy is not filled yet")
        if self._view.users(place):
            raise _in_use(place)

        def report(done: int, total: int) -> None:
            tell(done / total if total else None)

        try:
            await self._volumes.clone(volume.id, goal.uid, goal.size, tell=report, pool=goal.pool)
        except VolumeBusy as error:
            raise _in_use(place) from error

    async def _restore(self, goal: Goal) -> None:
        content = goal.content
        await permission.check(self._client, content, goal.claim.namespace)
        place = f"{content.namespace}/{content.name}"
        snapshot = self._view.snapshot_id(content.namespace, content.name)
        if not snapshot or self._volumes.get_snapshot(snapshot) is None:
            raise TransferBlocked("SnapshotNotReady", f"the snapshot {place} is not there, or not ready")
        await self._volumes.restore(snapshot, goal.uid, goal.size, pool=goal.pool)

    def _preallocates(self, goal: Goal) -> bool:
        return goal.content.preallocate or bool(self._view.config.spec.preallocation)


def _in_use(key: Key) -> TransferBlocked:
    """A disk that a machine writes is never copied: what came out would be no state that it ever had."""
    return TransferBlocked("CloneSourceInUse", f"the claim {key} is in use by a machine", fix="stop the machine, or copy a snapshot of it")
