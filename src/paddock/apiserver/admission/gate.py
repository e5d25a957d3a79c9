"""What the road of a request asks before a write is decided. Costs a look-up where nobody has configured anything."""

from collections.abc import Iterable

from paddock.apiserver.admission import bounds, measuring, mutations, policies
from paddock.apiserver.admission.bounds import Limits
from paddock.apiserver.admission.ledger import Ledger
from paddock.apiserver.admission.matching import Asked
from paddock.apiserver.admission.measuring import Data
from paddock.apiserver.admission.mutations import Mutations
from paddock.apiserver.admission.policies import Policies
from paddock.apiserver.admission.webhooks import MUTATING, VALIDATING, Asking, Webhooks
from paddock.apiserver.admission.world import World
from paddock.apiserver.calling import Caller
from paddock.apiserver.objects.asked import Attempt, Options
from paddock.apiserver.resources.resource import Resource

# Whoever configures admission must not be kept from it by admission.
_GROUP = "admissionregistration.k8s.io"


class Gate:
    """All admission. `off` are kube-apiserver's names of what is left out."""

    def __init__(self, world: World, off: Iterable[str] = ()) -> None:
        left_out = frozenset(off)
        self.ledger = Ledger(world.store)
        self._limits = Limits(world.store)
        self._counts = "ResourceQuota" not in left_out
        self._limited = "LimitRanger" not in left_out
        self._changing = Webhooks(world, MUTATING if "MutatingAdmissionWebhook" not in left_out else "")
        self._judging = Webhooks(world, VALIDATING if "ValidatingAdmissionWebhook" not in left_out else "")
        self._mutations = Mutations(world, off="MutatingAdmissionPolicy" in left_out)
        self._policies = Policies(world, off="ValidatingAdmissionPolicy" in left_out)
        self._world = world
        self._caller = Caller()
        self._asking = Asking(world, self._caller)

    async def close(self) -> None:
        """Hang up on all webhooks."""
        await self._caller.close()

    def concerns(self, resource: Resource, operation: str, subresource: str) -> bool:
        """Whether a webhook or a policy wants to see such a write."""
        all_ = (self._mutations, self._changing, self._policies, self._judging)
        if not any(each.any for each in all_) or resource.group == _GROUP:
            return False
        asked = Asked(resource, operation, subresource)
        return any(each.find(asked) for each in all_)

    async def change(self, attempt: Attempt) -> Data | None:
        """The object as mutating policies and webhooks leave it; None when it stays as it is."""
        before, asked = attempt.new, _asked(attempt)
        bound, found = self._mutations.find(asked), self._changing.find(asked)
        left = await mutations.change(bound, attempt, self._world) if bound else {}
        if found:
            await self._asking.change(found, attempt)
        if left:
            await mutations.change_again(bound, left, attempt, self._world)
        return None if attempt.new is before else attempt.new

    async def judge(self, attempt: Attempt) -> None:
        """Policies first, then the validating webhooks."""
        asked = _asked(attempt)
        bound = self._policies.find(asked)
        if bound:
            await policies.judge(bound, attempt, self._world)
        found = self._judging.find(asked)
        if found:
            await self._asking.judge(found, attempt)

    def bound(self, resource: Resource, new: Data, old: Data | None, options: Options) -> None:
        """Limits and quotas of the namespace."""
        counts, limited = self.ledger.namespaces, self._limited and resource.collection == measuring.CLAIMS
        if not (counts or limited) or options.subresource or options.unasked or not resource.namespaced:
            return
        if limited:
            self._limits.check(resource, new, old)
        if self._counts and new["metadata"].get("namespace") in counts:
            bounds.check_quotas(self.ledger, resource, new, old)


def _asked(attempt: Attempt) -> Asked:
    return Asked(attempt.resource, attempt.operation, attempt.options.subresource)
