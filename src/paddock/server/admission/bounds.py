"""Quotas, decided together with the write that they bound.

The Pod of an instance is a view, so nobody creates it. It is admitted with the write that says that the instance is Scheduling, which is
when KubeVirt creates it, and again with every change of the instance that makes it larger.
"""

from typing import NamedTuple

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.kubernetes.quotas import launcher, measuring, quota, usage
from paddock.kubernetes.quotas.measuring import Amounts
from paddock.kubernetes.quotas.quota import Quota
from paddock.server.admission.ledger import QuotaUsage
from paddock.server.resources.resource import ServedResource

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
        return BoundWrite(resource.collection, new, old, _launcher(new)) if _asks(new, old) else None
    if subresource:
        return None
    return BoundWrite(resource.collection, new, old, resource.about(new["metadata"]["name"]))


def _asks(instance: Data, before: Data) -> bool:
    """Return whether a write takes something: that by which an instance gets its Pod, or a change of its spec after it.

    Every other write of a status tells what is so.
    """
    if usage.has_launcher(before):
        return bool(instance.get("spec") != before.get("spec"))
    return bool((instance.get("status") or {}).get("phase") == _SCHEDULING)


def _launcher(instance: Data) -> failure.FailureTarget:
    meta = instance["metadata"]
    return failure.FailureTarget(name=launcher.name_of(meta["name"], meta.get("uid") or ""), kind=measuring.PODS)


def check_quotas(ledger: QuotaUsage, write: BoundWrite) -> None:
    """Refuse a write that would go beyond a quota."""
    collection = write.collection
    if collection in measuring.IGNORED or (write.old is not None and not measuring.is_weighed(collection)):
        return
    new = ledger.measure(collection, write.new)
    old = ledger.measure(collection, write.old) if write.old is not None else None
    for each in ledger.quotas(write.namespace):
        is_new_pod = collection == measuring.PODS and old is None and each.covers(new)
        if is_new_pod and (unsaid := usage.unsaid(write.new, each.hard)):
            raise failure.forbidden(write.about, f"failed quota: {each.name}: must specify {unsaid}")
        if more := quota.growth(each, new, old):
            _check(ledger, each, write, more)


def _check(ledger: QuotaUsage, bound: Quota, write: BoundWrite, more: Amounts) -> None:
    """Refuse amounts that a quota has no room for, and name who uses most of it."""
    used, pending = ledger.used(bound, write.namespace), ledger.pending(bound, write.namespace, write.collection)
    used = {name: amount + pending.get(name, 0) for name, amount in used.items()}
    if names := quota.exceeded(bound, used, more):
        users = ledger.users(bound, write.namespace, names)
        causes = [failure.StatusCause(USER, f"{user} uses {quota.shown(amounts, amounts)}", "") for user, amounts in users]
        raise failure.forbidden(write.about, quota.refusal(bound, names, used, more), causes)
