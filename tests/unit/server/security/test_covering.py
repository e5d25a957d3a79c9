"""The rights that a user may give away: our decision against one point at a time, and at sizes where points cannot be counted."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paddock.server.security.covering import HeldRights
from paddock.server.security.rbac import RbacRule


def _points(rule: RbacRule) -> Iterator[RbacRule]:
    """A rule as the smallest rules it is made of."""
    for verb in rule.verbs:
        for url in rule.nonResourceURLs:
            yield RbacRule(verbs=(verb,), nonResourceURLs=(url,))
        for group in rule.apiGroups:
            for resource in rule.resources:
                for name in rule.resourceNames or ("",):
                    yield RbacRule((verb,), (group,), (resource,), (name,) if name else ())


def _holds(rule: RbacRule, point: RbacRule) -> bool:
    if point.verbs[0] not in rule.verbs and "*" not in rule.verbs:
        return False
    if point.nonResourceURLs:
        url = point.nonResourceURLs[0]
        return any(each in ("*", url) or (each.endswith("*") and url.startswith(each[:-1])) for each in rule.nonResourceURLs)
    if point.apiGroups[0] not in rule.apiGroups and "*" not in rule.apiGroups:
        return False
    resource = point.resources[0]
    _, _, sub = resource.partition("/")
    if not {"*", resource, f"*/{sub}" if sub else resource} & set(rule.resources):
        return False
    return not rule.resourceNames or (bool(point.resourceNames) and point.resourceNames[0] in rule.resourceNames)


def naive(held: list[RbacRule], wanted: RbacRule) -> bool:
    """Return whether a single rule holds each point of the wanted one."""
    return all(any(_holds(rule, point) for rule in held) for point in _points(wanted))


def some(*words: str) -> Any:
    return st.lists(st.sampled_from(words), max_size=4).map(tuple)


_rules = st.builds(
    RbacRule,
    verbs=some("get", "list", "create", "*"),
    apiGroups=some("", "a.b", "c", "*"),
    resources=some("pods", "pods/log", "secrets/log", "pods/", "*/log", "*/*", "/log", "*"),
    resourceNames=st.one_of(st.just(()), some("one", "two", "three", "")),
    nonResourceURLs=st.one_of(st.just(()), some("/a", "/a/b", "/a*", "/a/*", "*", "", "/a/b*", "/a/b/c")),
)


@pytest.mark.spec("kube-api", 120)
@pytest.mark.hypothesis
@settings(max_examples=10 * settings().max_examples)
@example(held=[], wanted=RbacRule())
@example(held=[RbacRule(("get",), ("",), ("pods",), ("one",))], wanted=RbacRule(("get",), ("",), ("pods",)))
@given(held=st.lists(_rules, max_size=8), wanted=_rules)
def test_each_point_is_held_by_one_rule(held: list[RbacRule], wanted: RbacRule) -> None:
    assert HeldRights(held).cover(wanted) is naive(held, wanted)


_small = st.builds(
    RbacRule,
    *(st.lists(st.sampled_from(letters), min_size=1, max_size=3).map(tuple) for letters in ("abc", "def", "ghi")),
    st.lists(st.sampled_from("jkl"), max_size=3).map(tuple),
)
_CUBE = RbacRule(tuple("abc"), tuple("def"), tuple("ghi"), tuple("jkl"))


@pytest.mark.hypothesis
@settings(max_examples=5 * settings().max_examples)
@given(held=st.lists(_small, min_size=10, max_size=60))
def test_many_rules_may_make_up_one(held: list[RbacRule]) -> None:
    assert HeldRights(held).cover(_CUBE) is naive(held, _CUBE)


def _words(letter: str, count: int = 5000) -> tuple[str, ...]:
    return tuple(f"{letter}{number}" for number in range(count))


_WIDE = RbacRule(_words("v"), _words("g"), _words("r"), _words("n"))
_REPEATED = RbacRule(("get",) * 5000, ("",) * 5000, ("pods",) * 5000, ("one",) * 5000)
_HALVES = [
    RbacRule(("*",), _words("g", 2500), ("*",)),
    RbacRule(("*",), _words("g")[2500:], _words("r", 2500)),
    RbacRule(("*",), _words("g")[2500:], _words("r")[2500:]),
]
# What somebody has made who wants to be judged for long: each a part of what the halves give.
_PARTS = [RbacRule((f"v{number}",), (f"g{number % 7}",), (f"r{number}",), (f"n{number}",)) for number in range(1000)]
_TABLE = [
    (_REPEATED, [RbacRule(("get",), ("",), ("pods",))], True),
    (_REPEATED, [RbacRule(("get",), ("",), ("secrets",))], False),
    (_WIDE, [RbacRule(("*",), ("*",), ("*",))], True),
    (_WIDE, [_WIDE], True),
    (_WIDE, [RbacRule(_WIDE.verbs[1:], ("*",), ("*",)), RbacRule(("*",), ("*",), ("*",), _WIDE.resourceNames[1:])], False),
    (_WIDE, _HALVES, True),
    (_WIDE, [*_PARTS, *_HALVES], True),
    (_WIDE, [*_PARTS, *_HALVES[:2]], False),
    (_WIDE, _PARTS, False),
    (RbacRule(_words("v"), nonResourceURLs=_words("/u")), [RbacRule(_words("v"), nonResourceURLs=("/u*",))], True),
    (RbacRule(_words("v"), nonResourceURLs=_words("/u")), [RbacRule(_words("v"), nonResourceURLs=("/u1*",))], False),
]


@pytest.mark.spec("kube-api", 120)
@pytest.mark.parametrize(("wanted", "held", "expected"), _TABLE)
def test_rules_of_more_points_than_can_be_counted(wanted: RbacRule, held: list[RbacRule], expected: bool) -> None:
    assert HeldRights(held).cover(wanted) is expected
