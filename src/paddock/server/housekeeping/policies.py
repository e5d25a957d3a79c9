"""The status of every ValidatingAdmissionPolicy: what a look at its expressions showed."""

from paddock.base.jsondata import Data
from paddock.server.admission.policies import POLICIES
from paddock.server.context import ServerParts
from paddock.server.housekeeping.keyqueue import KeyQueue
from paddock.server.objects.encoding import decode
from paddock.server.objects.requests import Options, Proposal
from paddock.server.store.contract import CommittedWrite, StoreKey

_WHO = Options(
    user="system:serviceaccount:kube-system:validatingadmissionpolicy-status-controller",
    groups=("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"),
    manager="validatingadmissionpolicy-status-controller",
    subresource="status",
)


class PolicyStatusController:
    """Looks at policies that changed."""

    def __init__(self, parts: ServerParts) -> None:
        self._parts = parts
        self.chores: KeyQueue[str] = KeyQueue("policies", self._reconcile)
        parts.store.follow(self._changed)

    def start(self) -> None:
        """Look at all, then at what changes."""
        for record in self._parts.store.scan(POLICIES):
            self.chores.offer(record.key.name)
        self.chores.start()

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        for change in changes:
            if change.key.collection == POLICIES and not change.deleted:
                self.chores.offer(change.key.name)

    async def _reconcile(self, name: str) -> None:
        plural, _, group = POLICIES.partition(".")
        resource = self._parts.registry.find(group, "v1", plural)
        record = self._parts.store.decided(StoreKey(POLICIES, "", name))
        if resource is None or record is None:
            return
        policy = decode(record.value)
        status, generation = policy.get("status") or {}, policy["metadata"].get("generation", 0)
        if status.get("observedGeneration") == generation and "typeChecking" in status:
            return
        from paddock.server.admission import typechecking  # noqa: PLC0415 - most servers never see an expression

        odd = typechecking.expression_warnings(policy.get("spec") or {}, self._parts.registry)
        seen = {**status, "observedGeneration": generation, "typeChecking": {"expressionWarnings": odd} if odd else {}}

        def with_status(old: Data) -> Proposal:
            return Proposal({**old, "metadata": dict(old["metadata"]), "status": seen})

        await self._parts.writer.replace(resource, "", name, with_status, _WHO)
