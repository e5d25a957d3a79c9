"""Letting claims go: a claim that is being deleted is kept until no machine uses it (docs/spec/kube-api.md section 7)."""

from collections.abc import Iterator

from paddock.apiserver.builtin.claims import PROTECTION
from paddock.apiserver.housekeeping.chores import Chores
from paddock.apiserver.objects.asked import Options, Proposal
from paddock.apiserver.objects.encoding import Data, envelope
from paddock.apiserver.parts import Parts
from paddock.store.contract import Change, Key

CLAIMS = "persistentvolumeclaims"
# Running machines; what merely may run later does not hold a claim.
INSTANCES = "virtualmachineinstances.kubevirt.io"
_WHO = Options(user="system:serviceaccount:kube-system:pvc-protection-controller", manager="pvc-protection-controller")


class Claims:
    """Looks at claims that are being deleted."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        # those that are being deleted: a machine has news for nobody else, and machines have news often
        self._going: dict[Key, None] = {}
        self.chores: Chores[tuple[str, str]] = Chores("claims", self._look)
        parts.store.follow(self._changed)

    def start(self) -> None:
        """Look at all, then at what changes."""
        for record in self._parts.store.scan(CLAIMS):
            self._note(record.key, record.value)
        self.chores.start()

    def _changed(self, changes: tuple[Change, ...]) -> None:
        for change in changes:
            if change.key.collection == CLAIMS:
                if change.deleted:
                    self._going.pop(change.key, None)
                else:
                    self._note(change.key, change.value)
            elif change.key.collection == INSTANCES:
                for key in self._going:
                    if key.namespace == change.key.namespace:
                        self._offer(key)

    def _note(self, key: Key, value: bytes) -> None:
        if envelope(value).deletionTimestamp:
            self._going[key] = None
            self._offer(key)

    def _offer(self, key: Key) -> None:
        self.chores.offer((key.namespace, key.name))

    async def _look(self, place: tuple[str, str]) -> None:
        namespace, name = place
        resource = self._parts.registry.find("", "v1", CLAIMS)
        record = self._parts.store.get(Key(CLAIMS, namespace, name))
        if resource is None or record is None:
            return
        meta = envelope(record.value)
        if meta.deletionTimestamp and PROTECTION in meta.finalizers and name not in set(self._used(namespace)):
            await self._parts.writer.replace(resource, namespace, name, _released, _WHO)

    def _used(self, namespace: str) -> Iterator[str]:
        """The claims of the running machines of a namespace."""
        for instance in self._parts.view.list(INSTANCES, namespace):
            if (instance.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                yield from claims_of(instance)


def claims_of(instance: Data) -> Iterator[str]:
    """The claims that a machine has for disks. A DataVolume's claim has its name."""
    for volume in (instance.get("spec") or {}).get("volumes") or ():
        for kind, key in (("persistentVolumeClaim", "claimName"), ("dataVolume", "name"), ("memoryDump", "claimName")):
            name = (volume.get(kind) or {}).get(key)
            if name:
                yield name


def _released(old: Data) -> Proposal:
    meta = dict(old["metadata"])
    meta["finalizers"] = [each for each in meta.get("finalizers") or () if each != PROTECTION]
    return Proposal({**old, "metadata": meta})
