"""What the road of a request asks before a write is decided. Costs a look-up where nobody has configured anything."""

from collections.abc import Iterable

from paddock.apiserver.admission import bounds, measuring
from paddock.apiserver.admission.bounds import Limits
from paddock.apiserver.admission.ledger import Ledger
from paddock.apiserver.admission.measuring import Data
from paddock.apiserver.admission.world import World
from paddock.apiserver.objects.writing import Attempt, Options
from paddock.apiserver.resources.resource import Resource


class Gate:
    """All admission. `off` are kube-apiserver's names of what is left out."""

    def __init__(self, world: World, off: Iterable[str] = ()) -> None:
        left_out = frozenset(off)
        self.ledger = Ledger(world.store)
        self._limits = Limits(world.store)
        self._counts = "ResourceQuota" not in left_out
        self._limited = "LimitRanger" not in left_out

    def concerns(self, resource: Resource, operation: str, subresource: str) -> bool:
        """Whether a webhook or a policy wants to see such a write."""
        return False

    async def change(self, attempt: Attempt) -> Data | None:
        """The object as the mutating webhooks leave it; None when it stays as it is."""
        return None

    async def judge(self, attempt: Attempt) -> None:
        """Policies first, then the validating webhooks."""

    def bound(self, resource: Resource, new: Data, old: Data | None, options: Options) -> None:
        """Limits and quotas of the namespace."""
        if not resource.namespaced or options.subresource:
            return
        if self._limited and resource.collection == measuring.CLAIMS:
            self._limits.check(resource, new, old)
        if self._counts and self.ledger.bounds(new["metadata"].get("namespace", "")):
            bounds.check_quotas(self.ledger, resource, new, old)
