"""LimitRanges: the smallest and the largest that a claim, a container or a Pod may be, decided together with the write.

The container `compute` of an instance's launcher Pod counts as any other. It gets the defaults of the ranges for what it does not say.
"""

from collections.abc import Iterator

from paddock.base import quantity
from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.kubernetes.quotas import launcher, measuring, usage
from paddock.kubernetes.quotas.measuring import Amounts
from paddock.server.admission.bounds import BoundWrite
from paddock.server.objects.encoding import decode
from paddock.server.store.contract import CommittedWrite, Store

LIMITS = "limitranges"
_CLAIM, _CONTAINER, _POD = "PersistentVolumeClaim", "Container", "Pod"
_LIMITED = (measuring.CLAIMS, measuring.INSTANCES)


class LimitRanges:
    """An index of the namespaces with a LimitRange; it follows the store."""

    def __init__(self, store: Store, *, launchers: bool = True) -> None:
        self._launchers = launchers
        # by namespace and name; a namespace without any does not stand here
        self.namespaces: dict[str, dict[str, list[Data]]] = {}
        for record in store.scan(LIMITS):
            self._put(record.key.namespace, record.key.name, record.value)
        store.follow(self._changed)

    def check(self, write: BoundWrite, hard: frozenset[str]) -> None:
        """Refuse what is smaller or larger than its namespace allows. `hard`: the names that quotas of the namespace bound."""
        if write.collection not in _LIMITED or (write.old is not None and write.old["metadata"].get("deletionTimestamp")):
            return
        ranges = [items for _, items in sorted(self.namespaces.get(write.namespace, {}).items())]
        for items in ranges:
            wrong = list(self._wrong(items, ranges, write, hard))
            if wrong:
                raise failure.forbidden(write.about, wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]")

    def _wrong(self, items: list[Data], ranges: list[list[Data]], write: BoundWrite, hard: frozenset[str]) -> Iterator[str]:
        if write.collection == measuring.CLAIMS:
            requests = ((write.new.get("spec") or {}).get("resources") or {}).get("requests") or {}
            for item in _of_type(items, _CLAIM):
                yield from _wrong_claim(item, requests)
        elif self._launchers and usage.has_launcher(write.new):
            found = launcher.resources_of(write.new.get("spec") or {})
            implied = {name: amount for name, amount in found.implied.items() if f"limits.{name}" in hard}
            requests, limits = dict(found.requests), {**implied, **found.limits}
            for each in ranges:
                for item in _of_type(each, _CONTAINER):
                    _complete(limits, item.get("default"))
                    _complete(requests, item.get("defaultRequest"))
            for item in (*_of_type(items, _CONTAINER), *_of_type(items, _POD)):
                yield from _wrong_launcher(item, requests, limits)

    def _put(self, namespace: str, name: str, value: bytes) -> None:
        items = (decode(value).get("spec") or {}).get("limits") or []
        self.namespaces.setdefault(namespace, {})[name] = items

    def _changed(self, changes: tuple[CommittedWrite, ...]) -> None:
        for change in changes:
            if change.key.collection != LIMITS:
                continue
            if not change.deleted:
                self._put(change.key.namespace, change.key.name, change.value)
                continue
            known = self.namespaces.get(change.key.namespace, {})
            known.pop(change.key.name, None)
            if not known:
                self.namespaces.pop(change.key.namespace, None)


def _of_type(items: list[Data], kind: str) -> list[Data]:
    return [each for each in items if each.get("type") == kind]


def _complete(amounts: Amounts, defaults: Data | None) -> None:
    for name, amount in (defaults or {}).items():
        amounts.setdefault(name, quantity.parse(amount))


def _wrong_claim(item: Data, requests: Data) -> Iterator[str]:
    """The bounds of a claim, which has requests only."""
    spelled = {name: str(amount) for name, amount in requests.items()}
    for what, member, sign in (("minimum", "min", 1), ("maximum", "max", -1)):
        for name, bound in (item.get(member) or {}).items():
            yield from _outside(f"{what} {name} usage per {_CLAIM} is {bound}", name, (sign, quantity.parse(bound)), {"request": spelled})


def _wrong_launcher(item: Data, requests: Amounts, limits: Amounts) -> Iterator[str]:
    """The bounds of a container or a Pod: a minimum is about the request, a maximum about the limit, and each about the other as well."""
    kind = item["type"]
    asked, most = ({name: measuring.text(name, amount) for name, amount in each.items()} for each in (requests, limits))
    sides = (("minimum", "min", 1, {"request": asked, "limit": most}), ("maximum", "max", -1, {"limit": most, "request": asked}))
    for what, member, sign, amounts in sides:
        for name, bound in (item.get(member) or {}).items():
            yield from _outside(f"{what} {name} usage per {kind} is {bound}", name, (sign, quantity.parse(bound)), amounts)
    for name, bound in (item.get("maxLimitRequestRatio") or {}).items():
        said = f"{name} max limit to request ratio per {kind} is {bound}"
        if not requests.get(name):
            yield f"{said}, but no request is specified or request is 0"
        elif not limits.get(name):
            yield f"{said}, but no limit is specified or limit is 0"
        elif limits[name] * quantity.UNIT > quantity.parse(bound) * requests[name]:
            yield f"{said}, but provided ratio is {limits[name] / requests[name]:f}"


def _outside(said: str, name: str, bound: tuple[int, int], amounts: dict[str, dict[str, str]]) -> Iterator[str]:
    """Say that the first of some amounts is missing, or which is out of bounds. The sign of a bound is that of a minimum, or -1."""
    sign, value = bound
    first = next(iter(amounts))
    if name not in amounts[first]:
        yield f"{said}.  No {first} is specified"
        return
    for word, spelled in amounts.items():
        if name in spelled and sign * quantity.parse(spelled[name]) < sign * value:
            yield f"{said}, but {word} is {spelled[name]}"
            return
