"""Quotas and limits, decided together with the write that they bound."""

from collections.abc import Iterable

from paddock.apiserver.admission import measuring
from paddock.apiserver.admission.ledger import Quota, QuotaUsage
from paddock.apiserver.admission.measuring import Amounts, Data
from paddock.apiserver.objects.encoding import decode
from paddock.apiserver.resources.resource import ServedResource
from paddock.base import quantity
from paddock.meta import failure
from paddock.store.contract import CommittedWrite, Store

LIMITS = "limitranges"
_CLAIM = "PersistentVolumeClaim"


def check_quotas(ledger: QuotaUsage, resource: ServedResource, new: Data, old: Data | None) -> None:
    """Refuse a write that would go beyond a quota."""
    meta, collection = new["metadata"], resource.collection
    if collection in measuring.IGNORED or (old is not None and not measuring.is_weighed(collection)):
        return
    for quota in ledger.quotas(meta["namespace"]):
        delta = _delta(quota, collection, new, old)
        if not delta:
            continue
        used, pending = ledger.used(quota, meta["namespace"]), ledger.pending(quota, meta["namespace"], collection)
        used = {name: amount + pending.get(name, 0) for name, amount in used.items()}
        exceeded = sorted(name for name, amount in delta.items() if used[name] + amount > quota.hard[name])
        if exceeded:
            said = ", ".join(
                f"{what}: {_shown(exceeded, amounts)}" for what, amounts in (("requested", delta), ("used", used), ("limited", quota.hard))
            )
            raise failure.forbidden(resource.about(meta["name"]), f"exceeded quota: {quota.name}, {said}")


def _delta(quota: Quota, collection: str, new: Data, old: Data | None) -> Amounts:
    """Return the amounts that a write adds to those of a quota. Amounts that it takes away are left out."""
    if not quota.covers(collection, new):
        return {}
    amounts = measuring.measured(collection, new)
    before = measuring.measured(collection, old) if old is not None and quota.covers(collection, old) else {}
    delta = {name: amount - before.get(name, 0) for name, amount in amounts.items() if name in quota.hard}
    return {name: amount for name, amount in delta.items() if amount > 0}


def _shown(names: Iterable[str], amounts: Amounts) -> str:
    return ",".join(f"{name}={measuring.text(name, amounts[name])}" for name in names)


class LimitRanges:
    """An index of the namespaces with a LimitRange; it follows the store."""

    def __init__(self, store: Store) -> None:
        self._ranges: dict[str, dict[str, list[Data]]] = {}
        for record in store.scan(LIMITS):
            self._put(record.key.namespace, record.key.name, record.value)
        store.follow(self._changed)

    def check(self, resource: ServedResource, new: Data, old: Data | None) -> None:
        """Refuse a claim that is smaller or larger than its namespace allows."""
        if resource.collection != measuring.CLAIMS or (old is not None and old["metadata"].get("deletionTimestamp")):
            return
        for _, items in sorted(self._ranges.get(new["metadata"]["namespace"], {}).items()):
            wrong = [said for item in items if item.get("type") == _CLAIM for said in _wrong(item, new)]
            if wrong:
                text = wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]"
                raise failure.forbidden(resource.about(new["metadata"]["name"]), text)

    def _put(self, namespace: str, name: str, value: bytes) -> None:
        items = (decode(value).get("spec") or {}).get("limits") or []
        self._ranges.setdefault(namespace, {})[name] = items

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        for change in changes:
            if change.key.collection != LIMITS:
                continue
            if change.deleted:
                self._ranges.get(change.key.namespace, {}).pop(change.key.name, None)
            else:
                self._put(change.key.namespace, change.key.name, change.value)


def _wrong(item: Data, claim: Data) -> list[str]:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    found = []
    for what, bounds, sign in (("minimum", item.get("min"), 1), ("maximum", item.get("max"), -1)):
        for name, bound in (bounds or {}).items():
            said = f"{what} {name} usage per {_CLAIM} is {bound}"
            if name not in requests:
                found.append(f"{said}.  No request is specified")
            elif sign * quantity.parse(requests[name]) < sign * quantity.parse(bound):
                found.append(f"{said}, but request is {requests[name]}")
    return found
