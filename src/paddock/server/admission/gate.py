"""The gate that a request passes before a write is decided. Costs a look-up where nobody has configured anything."""

from collections.abc import Iterable

from paddock.base.jsondata import Data
from paddock.server.admission import bounds, mutations, policies
from paddock.server.admission.ledger import QuotaUsage
from paddock.server.admission.limits import LimitRanges
from paddock.server.admission.matching import AdmissionAttributes
from paddock.server.admission.mutations import Mutations
from paddock.server.admission.policies import PolicySet
from paddock.server.admission.webhooks import MUTATING, VALIDATING, WebhookDispatcher, Webhooks
from paddock.server.admission.world import AdmissionContext
from paddock.server.objects.requests import Attempt, Options
from paddock.server.resources.resource import ServedResource
from paddock.server.webhooks import Caller

# Whoever configures admission must not be kept from it by admission.
_GROUP = "admissionregistration.k8s.io"


class AdmissionGate:
    """All admission. `off` are kube-apiserver's names of what is left out."""

    def __init__(self, admission: AdmissionContext, off: Iterable[str] = ()) -> None:
        left_out = frozenset(off)
        self.ledger = QuotaUsage(admission.store, launchers=admission.launchers)
        self._limits = LimitRanges(admission.store, launchers=admission.launchers)
        self._counts = "ResourceQuota" not in left_out
        self._limited = "LimitRanger" not in left_out
        self._changing = Webhooks(admission, MUTATING if "MutatingAdmissionWebhook" not in left_out else "")
        self._judging = Webhooks(admission, VALIDATING if "ValidatingAdmissionWebhook" not in left_out else "")
        self._mutations = Mutations(admission, off="MutatingAdmissionPolicy" in left_out)
        self._policies = PolicySet(admission, off="ValidatingAdmissionPolicy" in left_out)
        self._admission = admission
        self._caller = Caller()
        self._asking = WebhookDispatcher(admission, self._caller)

    async def close(self) -> None:
        """Hang up on all webhooks."""
        await self._caller.close()

    def concerns(self, resource: ServedResource, operation: str, subresource: str) -> bool:
        """Return whether a webhook or a policy covers such a write."""
        all_ = (self._mutations, self._changing, self._policies, self._judging)
        if not any(each.any for each in all_) or resource.group == _GROUP:
            return False
        asked = AdmissionAttributes(resource, operation, subresource)
        return any(each.find(asked) for each in all_)

    async def change(self, attempt: Attempt) -> Data | None:
        """The object as mutating policies and webhooks leave it; None when it stays as it is."""
        before, asked = attempt.new, _asked(attempt)
        bound, found = self._mutations.find(asked), self._changing.find(asked)
        left = await mutations.change(bound, attempt, self._admission) if bound else {}
        if found:
            await self._asking.change(found, attempt)
        if left:
            await mutations.change_again(bound, left, attempt, self._admission)
        return None if attempt.new is before else attempt.new

    async def judge(self, attempt: Attempt) -> None:
        """Policies first, then the validating webhooks."""
        asked = _asked(attempt)
        bound = self._policies.find(asked)
        if bound:
            await policies.judge(bound, attempt, self._admission)
        found = self._judging.find(asked)
        if found:
            await self._asking.judge(found, attempt)

    def bound(self, resource: ServedResource, new: Data, old: Data | None, options: Options) -> None:
        """Limits and quotas of the namespace."""
        namespace = new["metadata"].get("namespace")
        limited, counts = self._limited and namespace in self._limits.namespaces, self._counts and namespace in self.ledger.namespaces
        if not (limited or counts) or options.unasked or not resource.namespaced:
            return
        write = bounds.bound_write(resource, new, old, options.subresource)
        if write is None:
            return
        if limited:
            quotas = self.ledger.quotas(write.namespace) if counts else ()
            self._limits.check(write, frozenset(name for each in quotas for name in each.hard))
        if counts:
            bounds.check_quotas(self.ledger, write)


def _asked(attempt: Attempt) -> AdmissionAttributes:
    return AdmissionAttributes(attempt.resource, attempt.operation, attempt.options.subresource)
