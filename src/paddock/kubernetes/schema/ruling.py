"""Runs the rules of a kind. It looks up each place of an object once, and runs only rules that can find something there.

A rule names what must be set for it to find anything, as ways from its place: `spec.domain.cpu.numa` (a member), `spec.volumes[].hostDisk`
(a member of an entry of a list), `annotations{example.com/a}` (a key of a map). Most rules of a large kind are about members that most
objects do not have. So the ways of a group of rules are compiled into one function, which costs less than running each rule.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import count, groupby
from typing import Any

from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.kind import AdmissionSettings, CrossFieldRule, Kind

# A step of a way: a member, with [] if the way goes on from each entry of its list; or the key of a map.
_STEP = re.compile(r"\.?(\w+)(\[\])?|\{([^}]+)\}")
# Sets of rules to run that a group keeps; beyond these, it starts anew.
_MOST_KEPT = 256


class RuleSet:
    """The rules of a kind, in order."""

    def __init__(self, rules: Iterable[CrossFieldRule]) -> None:
        self._groups = tuple(_Group(tuple(each)) for _, each in groupby(rules, key=lambda rule: rule.place_of))

    def findings(self, value: Any, settings: AdmissionSettings, before: Any = None) -> list[Finding]:
        """Return the findings. `before` is the stored object if the spec is unchanged: then rules about an unchanged place only warn."""
        found: list[Finding] = []
        for group in self._groups:
            group.add(found, value, settings, before)
        return found


def rules_of(kind: Kind) -> RuleSet:
    """The rules of a kind; a declaration never changes, so they are put together once."""
    made: RuleSet | None = kind.__dict__.get("rule_set")
    if made is None:
        made = kind.__dict__["rule_set"] = RuleSet(kind.rules)
    return made


class _Group:
    """Neighbouring rules about one place, or about the whole object."""

    def __init__(self, rules: tuple[CrossFieldRule, ...]) -> None:
        self._rules = rules
        self._place_of = rules[0].place_of
        self._given = compiled([rule.given for rule in rules])
        # the rules to run, by the bits that `_given` returns
        self._due: dict[int, tuple[CrossFieldRule, ...]] = {}

    def add(self, findings: list[Finding], value: Any, settings: AdmissionSettings, before: Any) -> None:
        """Run the rules, and add their findings."""
        if self._place_of is None:
            for rule in self._asked(self._given(value)):
                findings.extend(rule.check(value, settings))
            return
        former = None if before is None else self._place_of(before, settings)
        place = self._place_of(value, settings)
        is_new = place != former
        for rule in self._asked(self._given(place)):
            if (is_new or rule.warns) and rule.judge is not None:
                findings.extend(rule.judge(place))

    def _asked(self, mask: int) -> tuple[CrossFieldRule, ...]:
        due = self._due.get(mask)
        if due is None:
            if len(self._due) >= _MOST_KEPT:
                self._due.clear()
            due = self._due[mask] = tuple(rule for index, rule in enumerate(self._rules) if mask >> index & 1)
        return due


def compiled(ways: Sequence[tuple[str, ...]]) -> Callable[[Any], int]:
    """Return a function that takes a place and sets bit n if one of `ways[n]` leads to a value there, or if `ways[n]` is empty."""
    tree: dict[str, Any] = {}
    always = 0
    for index, each in enumerate(ways):
        always |= 0 if each else 1 << index
        for way in each:
            node = tree
            for step in _STEP.finditer(way):
                node = node.setdefault(step[0].removeprefix("."), {})
            node[""] = node.get("", 0) | 1 << index
    lines = ["def given(place):", f" bits = {always}", *_lines(tree, "place", 1, count()), " return bits"]
    made: dict[str, Any] = {}
    # Generated code is several times faster than a walk over the ways. It contains nothing but names from declarations.
    exec("\n".join(lines), made)
    function: Callable[[Any], int] = made["given"]
    return function


def _lines(tree: dict[str, Any], holder: str, depth: int, names: "count[int]") -> Iterable[str]:
    indent = " " * depth
    for step, below in tree.items():
        if not step:
            continue
        name = f"v{next(names)}"
        member, is_list = step.removesuffix("[]"), step.endswith("[]")
        yield f"{indent}{name} = {holder}.get({member[1:-1]!r})" if member[0] == "{" else f"{indent}{name} = {holder}.{member}"
        yield f"{indent}if {name} is not None:"
        if below.get(""):
            yield f"{indent} bits |= {below['']}"
        if is_list:
            yield f"{indent} for e{name} in {name}:"
            yield f"{indent}  pass"
            yield from _lines(below, f"e{name}", depth + 2, names)
        else:
            yield f"{indent} pass"
            yield from _lines(below, name, depth + 1, names)
