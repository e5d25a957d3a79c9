"""The status of every ResourceQuota: what is enforced and what is used, written again whenever it is not what is true."""

from paddock.base.jsondata import Data
from paddock.kubernetes.quotas import measuring
from paddock.kubernetes.quotas.quota import Quota
from paddock.server.admission.ledger import QUOTAS
from paddock.server.context import ServerParts
from paddock.server.housekeeping.keyqueue import KeyQueue
from paddock.server.objects.encoding import decode
from paddock.server.objects.requests import Options, Proposal
from paddock.server.store.contract import StoreKey

_WHO = Options(
    user="system:serviceaccount:kube-system:resourcequota-controller",
    groups=("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"),
    manager="resourcequota-controller",
    subresource="status",
)


class QuotaController:
    """Looks at namespaces whose quotas, or what counts for them, changed."""

    def __init__(self, parts: ServerParts) -> None:
        self._parts = parts
        self._ledger = parts.gate.ledger
        self.chores: KeyQueue[str] = KeyQueue("quotas", self._reconcile)
        self._ledger.on_change.append(self.chores.offer)

    def start(self) -> None:
        """Look at all, then at what changes."""
        for record in self._parts.store.scan(QUOTAS):
            self.chores.offer(record.key.namespace)
        self.chores.start()

    async def _reconcile(self, namespace: str) -> None:
        resource = self._parts.registry.find("", "v1", QUOTAS)
        for quota in self._ledger.quotas(namespace):
            record = self._parts.store.decided(StoreKey(QUOTAS, namespace, quota.name))
            if resource is None or record is None:
                continue
            status = self._status(quota, namespace)
            if decode(record.value).get("status") == status:
                continue

            def with_status(old: Data, status: Data = status) -> Proposal:
                return Proposal({**old, "metadata": dict(old["metadata"]), "status": status})

            await self._parts.writer.replace(resource, namespace, quota.name, with_status, _WHO)

    def _status(self, quota: Quota, namespace: str) -> Data:
        used = self._ledger.used(quota, namespace)
        shown = {key: measuring.text(key, amount) for key, amount in used.items()}
        return {"hard": dict(quota.spelled), "used": shown} if shown else {}
