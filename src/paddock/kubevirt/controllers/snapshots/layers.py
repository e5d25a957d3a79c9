"""Layers that snapshots left behind: merged when nothing needs them any more and no machine runs on the volume."""

from paddock.engine.snapshots import Snapshots
from paddock.engine.storage.errors import VolumeBroken, VolumeBusy, VolumeMissing
from paddock.engine.storage.volumes import Volumes
from paddock.kubernetes.runtime.cache import CachedObject
from paddock.kubernetes.runtime.controller import DONE, Outcome, again
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.kindreconciler import KindReconciler
from paddock.kubevirt.plan.instance.brief import BY_CLAIM, claim_places

_BUSY_SECONDS = 60.0


class Layers(KindReconciler):
    """Looks at a claim when it changes, at the start, and when a machine has ended."""

    def __init__(self, claims: Informer, instances: Informer, engine: Snapshots, volumes: Volumes) -> None:
        super().__init__(claims)
        self._claims = claims
        self._instances = instances
        instances.cache.index(BY_CLAIM, lambda seen: claim_places(seen.key.namespace, seen.raw))
        self._engine = engine
        self._volumes = volumes

    async def work(self, seen: CachedObject) -> Outcome:
        """Merge what can be merged of one claim."""
        if self._instances.cache.by(BY_CLAIM, str(seen.key)):
            # When the last instance that has it is gone, we are here again.
            return DONE
        try:
            if self._engine.user_of(seen.meta.uid) is not None:
                # A machine outlives its instance for a moment.
                return again(_BUSY_SECONDS)
            await self._volumes.collapse(seen.meta.uid)
        except (VolumeMissing, VolumeBroken):
            # The claim says what is damaged.
            return DONE
        except VolumeBusy:
            # Its QEMU has not quite let go, or a copy is being made.
            return again(_BUSY_SECONDS)
        return DONE
