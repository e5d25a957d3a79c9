"""The outlook for the quotas of namespaces if planned objects are made, and the objects that find no room. Pure.

Objects are made in their order, as if each that fits were there before the next. One that does not fit takes nothing, and what it would
become is not made.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from paddock.base.jsondata import Data
from paddock.kubernetes.quotas import measuring, quota
from paddock.kubernetes.quotas.measuring import Amounts, ObjectUsage
from paddock.kubernetes.quotas.quota import Quota
from paddock.kubevirt.plan.quotas.becoming import ObjectKey, PlannedObject, is_waiting


class BoundForecast(msgspec.Struct, frozen=True):
    """One bound of a quota that planned objects touch: what is used, what they add, and what the quota allows."""

    namespace: str
    quota: str
    resource: str
    used: str
    added: str
    hard: str
    fits: bool

    def line(self) -> str:
        """Return the bound for people."""
        verdict = "fits" if self.fits else "does not fit"
        return f"quota {self.namespace}/{self.quota}: {self.resource}: used {self.used}, adds {self.added}, hard {self.hard}: {verdict}"


class LackingObject(msgspec.Struct, frozen=True):
    """Objects of the manifest's object `title` that find no room: the reason of the first in the server's words, and their number.

    `waits`: they are made when there is room; otherwise the server refuses them.
    """

    namespace: str
    title: str
    why: str
    waits: bool
    count: int = 1


class QuotaForecast(msgspec.Struct, frozen=True):
    """The outlook for planned objects. `unclear` names those whose amounts are not known, with the reason."""

    bounds: tuple[BoundForecast, ...] = ()
    lacking: tuple[LackingObject, ...] = ()
    unclear: tuple[tuple[str, str], ...] = ()


def forecast(quotas: Iterable[Data], planned: Iterable[PlannedObject], present: Mapping[ObjectKey, ObjectUsage]) -> QuotaForecast:
    """Return what becomes of the quotas. `present` has what each object takes that is there."""
    books = _Books(quotas)
    lacking: dict[tuple[str, str, bool], LackingObject] = {}
    missing: set[ObjectKey] = set()
    unclear: dict[tuple[str, str], None] = {}
    for each in planned:
        if each.parent in missing:
            missing.add(each.key)
            continue
        if each.unclear and books.of(each.key.namespace):
            unclear[each.title, each.unclear] = None
        refused = books.take(each, present.get(each.key))
        if refused is None:
            continue
        missing.add(each.key)
        key = (each.key.namespace, each.title, is_waiting(each, refused[0]))
        first = lacking.get(key)
        count = first.count + 1 if first is not None else 1
        lacking[key] = LackingObject(key[0], key[1], first.why if first is not None else refused[1], key[2], count)
    return QuotaForecast(tuple(books.bounds()), tuple(lacking.values()), tuple(unclear))


class _Books:
    """The quotas with what is used of them, and what was asked of them."""

    def __init__(self, quotas: Iterable[Data]) -> None:
        self._quotas: dict[str, list[Quota]] = defaultdict(list)
        self._used: dict[tuple[str, str], Amounts] = {}
        self._before: dict[tuple[str, str], Amounts] = {}
        self._asked: dict[tuple[str, str], Amounts] = {}
        for data in sorted(quotas, key=lambda each: str(each["metadata"]["name"])):
            namespace = data["metadata"].get("namespace") or "default"
            bound, used = quota.read(data), quota.used_of(data)
            self._quotas[namespace].append(bound)
            self._used[namespace, bound.name], self._before[namespace, bound.name] = used, dict(used)
            self._asked[namespace, bound.name] = {}

    def of(self, namespace: str) -> list[Quota]:
        """Return the quotas of a namespace."""
        return self._quotas.get(namespace, [])

    def take(self, planned: PlannedObject, present: ObjectUsage | None) -> tuple[list[str], str] | None:
        """Take what an object needs; without room nothing, and return the bounds that it breaks, with the server's words."""
        needs = [(bound, quota.growth(bound, planned.usage, present)) for bound in self.of(planned.key.namespace)]
        refused: tuple[list[str], str] | None = None
        for bound, more in needs:
            place = (planned.key.namespace, bound.name)
            for name, amount in more.items():
                self._asked[place][name] = self._asked[place].get(name, 0) + amount
            if refused is None and (broken := quota.exceeded(bound, self._used[place], more)):
                refused = broken, quota.refusal(bound, broken, self._used[place], more)
        for bound, more in needs if refused is None else ():
            used = self._used[planned.key.namespace, bound.name]
            for name, amount in more.items():
                used[name] = used.get(name, 0) + amount
        return refused

    def bounds(self) -> Iterator[BoundForecast]:
        """Yield every bound of which something was asked."""
        for namespace, quotas in sorted(self._quotas.items()):
            for bound in quotas:
                place = namespace, bound.name
                for name, added in sorted(self._asked[place].items()):
                    used = self._before[place].get(name, 0)
                    texts = (measuring.text(name, used), measuring.text(name, added), str(bound.spelled[name]))
                    yield BoundForecast(namespace, bound.name, name, *texts, used + added <= bound.hard[name])
