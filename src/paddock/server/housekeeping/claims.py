"""Letting claims go: a claim that is being deleted is kept until no machine uses it (docs/spec/kube-api.md section 7)."""

from collections.abc import Iterator

from paddock.base.jsondata import Data
from paddock.server.builtin.claims import PROTECTION
from paddock.server.context import ServerParts
from paddock.server.housekeeping.keyqueue import KeyQueue
from paddock.server.objects.encoding import decode, envelope
from paddock.server.objects.requests import Options, Proposal
from paddock.server.store.contract import CommittedWrite, StoreKey

CLAIMS = "persistentvolumeclaims"
# Running machines; what merely may run later does not hold a claim.
INSTANCES = "virtualmachineinstances.kubevirt.io"
_WHO = Options(user="system:serviceaccount:kube-system:pvc-protection-controller", manager="pvc-protection-controller")


class ClaimProtection:
    """Looks at claims that are being deleted."""

    def __init__(self, parts: ServerParts) -> None:
        self._parts = parts
        # those that are being deleted: a machine has news for nobody else, and machines have news often
        self._deleting: dict[StoreKey, None] = {}
        self.chores: KeyQueue[tuple[str, str]] = KeyQueue("claims", self._reconcile)
        parts.store.follow(self._changed)

    def start(self) -> None:
        """Look at all, then at what changes."""
        for record in self._parts.store.scan(CLAIMS):
            self._note(record.key, record.value)
        self.chores.start()

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        for change in changes:
            if change.key.collection == CLAIMS:
                if change.deleted:
                    self._deleting.pop(change.key, None)
                else:
                    self._note(change.key, change.value)
            elif change.key.collection == INSTANCES and self._deleting:
                before = change.previous.value if change.previous is not None else None
                for _, name in {each for value in (before, change.value) if value for each in _used(decode(value))}:
                    key = StoreKey(CLAIMS, change.key.namespace, name)
                    if key in self._deleting:
                        self._offer(key)

    def _note(self, key: StoreKey, value: bytes) -> None:
        if envelope(value).deletionTimestamp:
            self._deleting[key] = None
            self._offer(key)

    def _offer(self, key: StoreKey) -> None:
        self.chores.offer((key.namespace, key.name))

    async def _reconcile(self, place: tuple[str, str]) -> None:
        namespace, name = place
        resource = self._parts.registry.find("", "v1", CLAIMS)
        record = self._parts.store.get(StoreKey(CLAIMS, namespace, name))
        if resource is None or record is None:
            return
        meta = envelope(record.value)
        if meta.deletionTimestamp and PROTECTION in meta.finalizers and not self._is_used(namespace, name):
            await self._parts.writer.replace(resource, namespace, name, _released, _WHO)

    def _is_used(self, namespace: str, name: str) -> bool:
        """Return whether a running machine has it."""
        return any(True for _ in self._parts.view.holders(INSTANCES, _used, (namespace, name)))


def _used(instance: Data) -> Iterator[tuple[str, str]]:
    """Yield namespace and name of the claims of a machine while it runs."""
    if (instance.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
        yield from ((instance["metadata"]["namespace"], name) for name in claims_of(instance))


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
