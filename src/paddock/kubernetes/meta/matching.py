"""Label and field selectors as query strings: `app=web,tier in (a, b),!old` and `metadata.name=x` (docs/spec/kube-api.md 2.8)."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from paddock.base import names
from paddock.base.errors import Terminal

# A selector of more conditions is read by the labels of each object instead of by its conditions.
_FEW = 8
# Each object of a collection is compared with all of them.
_MOST_FIELDS = 256
_TOKEN = re.compile(r"\s*(?:(?P<op>==|!=|=|!|>|<|\(|\)|,)|(?P<word>[^\s=!<>(),]+))")


class BadSelector(Terminal):
    """The text is not a selector."""

    def __init__(self, text: str, why: str, *, of: str = "unable to parse requirement: ") -> None:
        super().__init__(f"{of}{why}")
        self.text = text


class Requirement(NamedTuple):
    """One condition. `operator` is one of =, !=, in, notin, exists, !, >, <."""

    key: str
    operator: str
    values: frozenset[str]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether these labels fulfil the condition."""
        value = labels.get(self.key)
        match self.operator:
            case "=" | "in":
                return value in self.values
            case "!=" | "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        return _compares(value, self.operator, self.values)


def _compares(value: str | None, operator: str, values: frozenset[str]) -> bool:
    (limit,) = values
    try:
        number = int(value or "")
    except ValueError:
        return False
    return number > int(limit) if operator == ">" else number < int(limit)


class _ByKey(NamedTuple):
    """The conditions of a long selector. An object has few labels, so most conditions are about labels that it does not have."""

    conditions: Mapping[str, tuple[Requirement, ...]]
    # those that an object without the label does not fulfil
    needed: frozenset[str]

    def matches(self, labels: Mapping[str, str]) -> bool:
        if len(self.needed) > len(labels) or not self.needed <= labels.keys():
            return False
        return all(each.matches(labels) for key in labels for each in self.conditions.get(key, ()))


class LabelQuery(NamedTuple):
    """All conditions of a label selector; none means everything matches."""

    requirements: tuple[Requirement, ...] = ()
    by_key: _ByKey | None = None

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether these labels fulfil every condition."""
        if self.by_key is not None:
            return self.by_key.matches(labels)
        return all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def equalities(self) -> tuple[tuple[str, frozenset[str]], ...]:
        """The conditions that an index can answer: one of these values."""
        return tuple((each.key, each.values) for each in self.requirements if each.operator in ("=", "in"))


def parse_labels(text: str) -> LabelQuery:
    """A label selector; raises `BadSelector`."""
    said: dict[tuple[str, str], list[Requirement]] = {}
    for each in _Labels(text).read():
        said.setdefault((each.key, _SAME.get(each.operator, each.operator)), []).append(each)
    requirements = tuple(_joined(each) for each in said.values())
    return LabelQuery(requirements, _by_key(requirements) if len(requirements) > _FEW else None)


_SAME = {"=": "in", "!=": "notin"}


def _joined(said: list[Requirement]) -> Requirement:
    """Several conditions of one kind on one label as one."""
    first = said[0]
    if len(said) == 1:
        return first
    values = [each.values for each in said]
    match first.operator:
        case "=" | "in":
            return Requirement(first.key, "in", frozenset.intersection(*values))
        case "!=" | "notin":
            return Requirement(first.key, "notin", frozenset.union(*values))
        case ">" | "<":
            limits = frozenset.union(*values)
            return first._replace(values=frozenset([(max if first.operator == ">" else min)(limits, key=int)]))
    return first


def _by_key(requirements: Iterable[Requirement]) -> _ByKey:
    conditions: dict[str, tuple[Requirement, ...]] = {}
    for each in requirements:
        conditions[each.key] = (*conditions.get(each.key, ()), each)
    return _ByKey(conditions, frozenset(each.key for each in requirements if not each.matches({})))


class _Labels:
    """A reader of the grammar, token by token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                raise BadSelector(text, f"unexpected character in {text!r}")
            self.tokens.append(("op", match["op"]) if match["op"] else ("word", match["word"]))
            at = match.end()
        self.at = 0

    def read(self) -> list[Requirement]:
        found = []
        while self.at < len(self.tokens):
            found.append(self._requirement())
            if self.at < len(self.tokens):
                if self._peek() != ("op", ","):
                    raise BadSelector(self.text, f"found '{self._peek()[1]}', expected: ',' or 'end of string'", of="")
                self.at += 1
                if self.at == len(self.tokens):
                    raise BadSelector(self.text, "found '', expected: identifier after ','")
        return found

    def _peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def _take(self, kind: str, value: str | None = None) -> str:
        found_kind, found = self._peek()
        if found_kind != kind or (value is not None and found != value):
            raise BadSelector(self.text, f"found '{found}', expected: {value or 'identifier'}")
        self.at += 1
        return found

    def _requirement(self) -> Requirement:
        kind, found = self._peek()
        if kind == "op" and found != "!":
            raise BadSelector(self.text, f"found '{found}', expected: !, identifier, or 'end of string'", of="")
        if kind == "op":
            self.at += 1
            return Requirement(self._key(), "!", frozenset())
        key = self._key()
        kind, found = self._peek()
        if kind == "end" or (kind, found) == ("op", ","):
            return Requirement(key, "exists", frozenset())
        if kind == "word" and found in ("in", "notin"):
            self.at += 1
            return Requirement(key, found, self._values())
        if kind == "op" and found in ("=", "==", "!=", ">", "<"):
            self.at += 1
            operator = "=" if found == "==" else found
            return Requirement(key, operator, frozenset([self._value(operator)]))
        raise BadSelector(self.text, f"found '{found}', expected: in, notin, =, ==, !=, >, <")

    def _key(self) -> str:
        key = self._take("word")
        if not names.is_qualified(key):
            raise BadSelector(self.text, f'key: Invalid value: "{key}": must be a label key')
        return key

    def _value(self, operator: str) -> str:
        kind, found = self._peek()
        value = found if kind == "word" else ""
        if kind == "word":
            self.at += 1
        if operator in (">", "<"):
            try:
                int(value)
            except ValueError:
                raise BadSelector(self.text, f"for '{operator}' the value must be an integer") from None
        elif not names.is_label_value(value):
            raise BadSelector(self.text, f'values[0]: Invalid value: "{value}": must be a label value')
        return value

    def _values(self) -> frozenset[str]:
        self._take("op", "(")
        found = set()
        while True:
            found.add(self._value("in"))
            if self._peek() == ("op", ")"):
                self.at += 1
                return frozenset(found)
            self._take("op", ",")


class FieldCondition(NamedTuple):
    """One field that must, or must not, have a value."""

    path: str
    value: str
    equal: bool
    # the field that holds where this one is empty
    otherwise: str = ""

    def holds(self, value_of: Callable[[str], str]) -> bool:
        """Return whether the object whose fields `value_of` gives fulfils it."""
        value = value_of(self.path)
        if not value and self.otherwise:
            value = value_of(self.otherwise)
        return (value == self.value) is self.equal


class FieldQuery(NamedTuple):
    """All conditions of a field selector."""

    conditions: tuple[FieldCondition, ...] = ()

    def matches(self, value_of: Callable[[str], str]) -> bool:
        """Return whether the object whose fields `value_of` gives fulfils every condition."""
        return all(condition.holds(value_of) for condition in self.conditions)

    def exact(self, path: str) -> str | None:
        """The value that a field is required to have, if it is."""
        return next((each.value for each in self.conditions if each.path == path and each.equal), None)


_FIELD = re.compile(r"((?:[^\\,=!]|\\.)+?)(==|!=|=)((?:[^\\,=]|\\.)*)(?:,|$)")


def parse_fields(text: str) -> FieldQuery:
    """A field selector; raises `BadSelector`."""
    conditions, at = [], 0
    while at < len(text):
        match = _FIELD.match(text, at)
        if match is None:
            raise BadSelector(text, f"invalid selector: '{text}'; can't understand '{text[at:]}'", of="")
        conditions.append(FieldCondition(_unescape(match[1]), _unescape(match[3]), match[2] != "!="))
        at = match.end()
    different = tuple(dict.fromkeys(conditions))
    if len(different) > _MOST_FIELDS:
        why = f"invalid selector: it has {len(different)} different conditions, and at most {_MOST_FIELDS} are allowed"
        raise BadSelector(text, why, of="")
    return FieldQuery(different)


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)
