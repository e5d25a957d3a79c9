"""Quotas, decided together with the write that they bound.

The Pod of an instance is a view, so nobody creates it. It is admitted with the write that says that the instance is Scheduling, which is
when KubeVirt creates it, and again with every change of the instance that makes it larger.
"""

from collections.abc import Iterable
from typing import NamedTuple

from paddock.apiserver.admission import measuring
from paddock.apiserver.admission.ledger import Quota, QuotaUsage
from paddock.apiserver.admission.measuring import Amounts, Data
from paddock.apiserver.resources.resource import ServedResource
from paddock.meta import failure
from paddock.plan.quotas import usage
from paddock.plan.views import launchers

_SCHEDULING = "Scheduling"
# The reason of a cause that names one of those that use most.
USER = "QuotaUser"


class BoundWrite(NamedTuple):
    """A write that quotas and limits may refuse: the object as it will be and as it was, and what the refusal is about."""

    collection: str
    new: Data
    old: Data | None
    about: failure.FailureTarget

    @property
    def namespace(self) -> str:
        """The namespace of the object."""
        return str(self.new["metadata"].get("namespace", ""))


def bound_write(resource: ServedResource, new: Data, old: Data | None, subresource: str) -> BoundWrite | None:
    """Return the write as quotas see it; None if they do not look at it."""
    if resource.collection == measuring.INSTANCES and old is not None:
        # A status tells what is so. One write of it asks: that by which the instance gets its Pod.
        asks = usage.has_launcher(new) if not subresource else _is_scheduled(new, old)
        return BoundWrite(resource.collection, new, old, _launcher(new)) if asks else None
    if subresource:
        return None
    return BoundWrite(resource.collection, new, old, resource.about(new["metadata"]["name"]))


def _is_scheduled(new: Data, old: Data) -> bool:
    return (new.get("status") or {}).get("phase") == _SCHEDULING and not usage.has_launcher(old)


def _launcher(instance: Data) -> failure.FailureTarget:
    meta = instance["metadata"]
    return failure.FailureTarget(name=launchers.name_of(meta["name"], meta.get("uid") or ""), kind=measuring.PODS)


def check_quotas(ledger: QuotaUsage, write: BoundWrite) -> None:
    """Refuse a write that would go beyond a quota."""
    collection = write.collection
    if collection in measuring.IGNORED or (write.old is not None and not measuring.is_weighed(collection)):
        return
    new = ledger.measure(collection, write.new)
    old = ledger.measure(collection, write.old) if write.old is not None else None
    for quota in ledger.quotas(write.namespace):
        if not quota.covers(new):
            continue
        if collection == measuring.PODS and old is None and (unsaid := usage.unsaid(write.new, quota.hard)):
            raise failure.forbidden(write.about, f"failed quota: {quota.name}: must specify {unsaid}")
        before = old.amounts if old is not None and quota.covers(old) else {}
        delta = {name: amount - before.get(name, 0) for name, amount in new.amounts.items() if name in quota.hard}
        delta = {name: amount for name, amount in delta.items() if amount > 0}
        if delta:
            _check(ledger, quota, write, delta)


def _check(ledger: QuotaUsage, quota: Quota, write: BoundWrite, delta: Amounts) -> None:
    """Refuse amounts that a quota has no room for. What a write takes away was left out."""
    used, pending = ledger.used(quota, write.namespace), ledger.pending(quota, write.namespace, write.collection)
    used = {name: amount + pending.get(name, 0) for name, amount in used.items()}
    exceeded = sorted(name for name, amount in delta.items() if used[name] + amount > quota.hard[name])
    if not exceeded:
        return
    limited = ",".join(f"{name}={quota.spelled[name]}" for name in exceeded)
    said = f"requested: {_shown(exceeded, delta)}, used: {_shown(exceeded, used)}, limited: {limited}"
    causes = [
        failure.StatusCause(USER, f"{user} uses {_shown(amounts, amounts)}", "")
        for user, amounts in ledger.users(quota, write.namespace, exceeded)
    ]
    raise failure.forbidden(write.about, f"exceeded quota: {quota.name}, {said}", causes)


def _shown(names: Iterable[str], amounts: Amounts) -> str:
    return ",".join(f"{name}={measuring.text(name, amounts[name])}" for name in names)
