"""The rights that some rules give together, and whether they cover those of another rule: nobody can grant rights that they lack.

A rule is a box: its verbs, groups, resources and names, every one with every other. Each point of the box has to lie in a single rule
that is held. Clients write rules of any length, so points are not counted: members that the same held rules cover are one, and what
a held rule covers is cut off the box until nothing is left.
"""

from collections.abc import Iterable
from itertools import combinations

from paddock.server.security.rbac import RbacRule

# The held rules that cover a member, as the bits of a number; a box is the different ones of each side.
_Side = frozenset[int]
_Box = tuple[_Side, ...]


class HeldRights:
    """The rights that somebody holds by several rules."""

    def __init__(self, rules: Iterable[RbacRule]) -> None:
        self._verbs: dict[str, int] = {}
        self._groups: dict[str, int] = {}
        self._resources: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self._urls: dict[str, int] = {}
        # by what is before the star
        self._prefixes: dict[str, int] = {}
        self._any_name = 0
        for number, rule in enumerate(dict.fromkeys(rules)):
            self._add(rule, 1 << number)
        self._prefix_lengths = sorted({len(each) for each in self._prefixes})

    def _add(self, rule: RbacRule, bit: int) -> None:
        _mark(self._verbs, rule.verbs, bit)
        _mark(self._groups, rule.apiGroups, bit)
        _mark(self._resources, rule.resources, bit)
        _mark(self._names, rule.resourceNames, bit)
        _mark(self._urls, rule.nonResourceURLs, bit)
        _mark(self._prefixes, (each[:-1] for each in rule.nonResourceURLs if each.endswith("*")), bit)
        if not rule.resourceNames:
            self._any_name |= bit

    def cover(self, rbac_rule: RbacRule) -> bool:
        """Return whether the rules together allow everything that another one allows."""
        verbs = frozenset(self._by_word(self._verbs, each) for each in rbac_rule.verbs)
        groups = frozenset(self._by_word(self._groups, each) for each in rbac_rule.apiGroups)
        resources = frozenset(self._by_resource(each) for each in rbac_rule.resources)
        # a rule without names is for all of them
        names = frozenset(self._by_name(each) for each in rbac_rule.resourceNames or ("",))
        urls = frozenset(self._by_url(each) for each in rbac_rule.nonResourceURLs)
        return _is_covered((verbs, urls)) and _is_covered((verbs, groups, resources, names))

    def _by_word(self, known: dict[str, int], word: str) -> int:
        return known.get(word, 0) | known.get("*", 0)

    def _by_resource(self, resource: str) -> int:
        _, _, sub = resource.partition("/")
        below = self._resources.get(f"*/{sub}", 0) if sub else 0
        return self._by_word(self._resources, resource) | below

    def _by_name(self, name: str) -> int:
        return self._any_name | (self._names.get(name, 0) if name else 0)

    def _by_url(self, url: str) -> int:
        found = self._urls.get(url, 0)
        for length in self._prefix_lengths:
            if length > len(url):
                break
            found |= self._prefixes.get(url[:length], 0)
        return found


def _mark(known: dict[str, int], words: Iterable[str], bit: int) -> None:
    for word in words:
        known[word] = known.get(word, 0) | bit


def _is_covered(box: _Box) -> bool:
    """Return whether each combination of the sides' members has a rule that covers all of them."""
    left = [box]
    while left:
        box = left.pop()
        if not all(box):
            continue
        touching = _all(_any(side) for side in box)
        if not touching:
            return False
        whole = [_all(side) for side in box]
        if _all(whole):
            continue
        left.extend(_cut(box, whole, touching))
    return True


def _cut(box: _Box, whole: list[int], touching: int) -> list[_Box]:
    """Return what is left of a box without the rule that covers the most of it; `whole` are the rules that cover a whole side."""
    sides = range(len(box))
    for index in sides:
        # What covers all other sides takes a slice off and leaves one piece.
        slicing = _all(whole[other] for other in sides if other != index) & touching
        if slicing:
            return [(*box[:index], frozenset(each for each in box[index] if not each & slicing), *box[index + 1 :])]
    pairs = touching & _any(whole[one] & whole[other] for one, other in combinations(sides, 2))
    best = pairs or touching & _any(whole) or touching
    rule = best & -best
    inside = [frozenset(each for each in side if each & rule) for side in box]
    return [(*inside[:index], box[index] - inside[index], *box[index + 1 :]) for index in sides]


def _all(masks: Iterable[int]) -> int:
    found = -1
    for each in masks:
        found &= each
    return found


def _any(masks: Iterable[int]) -> int:
    found = 0
    for each in masks:
        found |= each
    return found
