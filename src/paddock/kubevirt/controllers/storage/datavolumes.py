"""DataVolumes: each has a claim of its name, and tells how far the claim is filled. What fills the claim is begun by `claims`."""

import contextlib
from typing import Literal

import msgspec

from paddock.engine.storage.errors import VolumeBroken
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import AlreadyExists, Invalid
from paddock.kubernetes.client.target import Key
from paddock.kubernetes.core.persistentvolumeclaim import PersistentVolumeClaim, is_bound
from paddock.kubernetes.meta import ages
from paddock.kubernetes.runtime import cache
from paddock.kubernetes.runtime.adoption import Adopter, adopt
from paddock.kubernetes.runtime.cache import CachedObject, Meta
from paddock.kubernetes.runtime.controller import DONE, EventRecorder, Outcome, again
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.reference import controlled_by_another, is_owned, owned, reference
from paddock.kubernetes.runtime.statuses import StatusWriter
from paddock.kubernetes.storage import claimsizes
from paddock.kubevirt.controllers.storage import reporting
from paddock.kubevirt.controllers.storage.ports import VolumeStorePort
from paddock.kubevirt.controllers.storage.targets import BIND_NOW, CLAIMS, DATA_VOLUMES, PROFILES
from paddock.kubevirt.controllers.storage.transfers import Transfers
from paddock.kubevirt.controllers.storage.view import StorageView
from paddock.kubevirt.kinds.datavolume_kind import DataVolume, DataVolumeStatus
from paddock.kubevirt.plan.storage import contents, lostvolumes, transfers
from paddock.kubevirt.plan.storage.contents import UnclearContent, VolumeContent
from paddock.kubevirt.plan.storage.datavolumeclaims import ADOPT, ClaimContext, claim_of
from paddock.kubevirt.plan.storage.transfers import FINAL, Report, TransferFacts

_REPORT_SECONDS = 1.0
_PROBLEM_SECONDS = 10.0


class DataVolumeReconciler(KindReconciler):
    def __init__(
        self, client: Client, view: StorageView, volumes: VolumeStorePort, running: Transfers, recorder: EventRecorder, machinery: Machinery
    ) -> None:
        super().__init__(view.data_volumes)
        self._client = client
        self._view = view
        self._volumes = volumes
        self._transfers = running
        self._recorder = recorder
        self._clock = machinery.clock
        self._statuses = StatusWriter(client, DATA_VOLUMES, view.data_volumes.expectations)

    async def work(self, seen: CachedObject) -> Outcome:
        """See that the claim is there, and say how far it is."""
        volume = seen.read(DATA_VOLUMES)
        content: VolumeContent | UnclearContent | None = self._content(volume)
        claim, problem = await self._claim(volume, content, seen.meta)
        looked = self._observe(volume, content, claim, problem)
        report = transfers.report(looked)
        await self._report(volume, report, looked, seen)
        if report.phase in FINAL:
            return DONE
        if looked.transfer.stage == "running":
            return again(_REPORT_SECONDS)
        # What is in the way may be an object that nobody here watches.
        return again(_PROBLEM_SECONDS) if problem is not None else DONE

    def _content(self, volume: DataVolume) -> VolumeContent | UnclearContent | None:
        """Return the content that fills the claim; None where the claim names its source itself, or somebody else fills it."""
        if contents.has_reference(volume.spec) or _is_prepopulated(volume):
            return None
        return contents.of_data_volume(volume, self._view.lookup)

    # --- the claim --------------------------------------------------------------------------------------------------------

    async def _claim(
        self, volume: DataVolume, content: VolumeContent | UnclearContent | None, meta: Meta
    ) -> tuple[PersistentVolumeClaim | None, tuple[str, str] | None]:
        """The claim if it is there, and what stands in the way."""
        found = self._view.claims.cache.get(meta.key)
        if found is not None:
            return await self._adopted(volume, found, meta)
        if _is_prepopulated(volume):
            return None, None
        if volume.status is not None and volume.status.phase in FINAL:
            # The claim was deleted. The status says so first: whoever looks at a new claim must not take it for the one that was filled.
            return None, None
        if isinstance(content, UnclearContent):
            if content.reason == contents.CROSS_NAMESPACE:
                self._tell(meta, "Warning", content.reason, content.message)
            return None, (content.reason, content.message)
        around = self._circumstances(volume, content)
        if content is not None and content.kind == "pvc" and around.copied_size is None:
            return None, ("CloneSourceNotFound", f"the claim {content.namespace}/{content.name} to copy is not there")
        wanted = claim_of(volume, content, around)
        if isinstance(wanted, UnclearContent):
            self._tell(meta, "Warning", wanted.reason, wanted.message)
            return None, (wanted.reason, wanted.message)
        try:
            made = await self._client.create(CLAIMS, CLAIMS.read(msgspec.json.encode(owned(wanted, reference(DATA_VOLUMES, meta)))))
        except AlreadyExists:
            # The cache is behind; the watch brings us here again.
            return None, None
        except Invalid as error:
            self._tell(meta, "Warning", "ErrClaimNotValid", str(error))
            return None, ("ErrClaimNotValid", str(error))
        return made, None

    async def _adopted(
        self, volume: DataVolume, seen: cache.CachedObject, meta: Meta
    ) -> tuple[PersistentVolumeClaim | None, tuple[str, str] | None]:
        """A claim that is there: ours, or one to take over, or somebody else's."""
        found, claim, owner = seen.meta, seen.read(CLAIMS), Adopter(DATA_VOLUMES, meta.key, meta.uid, shares=True)
        if is_owned(found, meta.uid):
            # An adoption that was interrupted is settled.
            await adopt(self._client, owner, CLAIMS, seen)
            return claim, None
        may = (volume.metadata.annotations or {}).get(ADOPT) == "true" or (claim.metadata.annotations or {}).get(
            contents.POPULATED_FOR
        ) == meta.name
        if found.deleting or not may or controlled_by_another(found, meta.uid) is not None:
            text = f"Resource {claim.metadata.name} already exists and is not managed by DataVolume"
            self._tell(meta, "Warning", "ErrResourceExists", text)
            return None, ("ErrResourceExists", text)
        await adopt(self._client, owner, CLAIMS, seen)
        return claim, None

    def _circumstances(self, volume: DataVolume, content: VolumeContent | None) -> ClaimContext:
        spec = volume.spec
        given = spec.pvc or spec.storage
        named = (given.storageClassName if given is not None else None) or spec.storageClassName
        found = self._view.storage_class(named or None)
        name = found.metadata.name if found is not None else named or ""
        profile = self._view.read(self._view.profiles, PROFILES, Key("", name)) if name else None
        return ClaimContext(
            storage_class=found, profile=profile, overhead=self._view.overhead(name), copied_size=self._copied_size(content)
        )

    def _copied_size(self, content: VolumeContent | None) -> int | None:
        if content is None or content.kind not in ("pvc", "snapshot"):
            return None
        if content.kind == "snapshot":
            # The transfer says what is wrong with a snapshot that is damaged.
            with contextlib.suppress(VolumeBroken):
                held = self._volumes.get_snapshot(self._view.snapshot_id(content.namespace, content.name) or "none")
                return held.size if held is not None else None
            return None
        source = self._view.claim(Key(content.namespace, content.name))
        return claimsizes.guest_size(source) if source is not None else None

    # --- the report -------------------------------------------------------------------------------------------------------

    def _observe(
        self,
        volume: DataVolume,
        content: VolumeContent | UnclearContent | None,
        claim: PersistentVolumeClaim | None,
        problem: tuple[str, str] | None,
    ) -> TransferFacts:
        status, uid = volume.status or DataVolumeStatus(), (claim.metadata.uid or "") if claim is not None else ""
        transfer = self._transfers.progress(uid)
        if transfer.stage == "none":
            # What an earlier run of this program counted.
            transfer = msgspec.structs.replace(transfer, restarts=max(transfer.restarts, status.restartCount or 0))
        if problem is None and isinstance(content, UnclearContent):
            problem = (content.reason, content.message)
        return TransferFacts(
            name=volume.metadata.name,
            source=content.kind if isinstance(content, VolumeContent) else _kind_of(volume),
            claim=_state(claim),
            damage=lostvolumes.damage_of(claim) if claim is not None else "",
            waits_for_consumer=claim is not None and self._waits(claim),
            filled=bool(uid) and self._is_filled(uid),
            transfer=transfer,
            problem=problem,
            phase_before=status.phase or "",
            progress_before=status.progress or "",
        )

    def _is_filled(self, uid: str) -> bool:
        # The claim of a volume that is damaged says so.
        with contextlib.suppress(VolumeBroken):
            return self._volumes.get(uid) is not None
        return False

    def _waits(self, claim: PersistentVolumeClaim) -> bool:
        if is_bound(claim) or lostvolumes.is_lost(claim) or claim.spec is None or BIND_NOW in (claim.metadata.annotations or {}):
            return False
        found = self._view.storage_class(claim.spec.storageClassName)
        place = Key(claim.metadata.namespace or "", claim.metadata.name)
        return found is not None and found.volumeBindingMode == "WaitForFirstConsumer" and not self._view.users(place)

    async def _report(self, volume: DataVolume, report: Report, looked: TransferFacts, seen: cache.CachedObject) -> None:
        before = volume.status or DataVolumeStatus()
        now = ages.timestamp(self._clock.seconds())
        conditions = reporting.conditions(before.conditions, report.conditions, now)
        status = DataVolumeStatus(
            claimName=volume.metadata.name,
            phase=report.phase,
            progress=report.progress,
            restartCount=max(before.restartCount or 0, looked.transfer.restarts) or None,
            conditions=conditions,
        )
        if await self._statuses.write(seen, status) is None:
            return
        for event in report.events:
            self._tell(seen.meta, event.kind, event.reason, event.note)
        if looked.transfer.stage == "waiting":
            self._tell(seen.meta, "Warning", f"{transfers.family_of(looked.source)}Failed", looked.transfer.message)

    def _tell(self, meta: Meta, kind: str, reason: str, note: str) -> None:
        self._recorder.tell(reference(DATA_VOLUMES, meta), kind, reason, note)


def _state(claim: PersistentVolumeClaim | None) -> Literal["absent", "pending", "bound", "lost"]:
    if claim is None:
        return "absent"
    phase = claim.status.phase if claim.status is not None else None
    return "bound" if phase == "Bound" else "lost" if phase == "Lost" else "pending"


def _is_prepopulated(volume: DataVolume) -> bool:
    """Return whether somebody else makes and fills the claim."""
    return contents.PREPOPULATED in (volume.metadata.annotations or {})


def _kind_of(volume: DataVolume) -> str:
    """The kind of source as far as the DataVolume itself says it; a DataSource that is not there is most likely an import."""
    source = volume.spec.source
    if source is None:
        return "http" if volume.spec.sourceRef is not None else ""
    return next((name for name in source.__struct_fields__ if getattr(source, name) is not None), "")
