"""The largest cost of a schema's rules, and the limits that a definition keeps to (docs/spec/kube-api.md section 6.5).

A rule costs as much as its expression, times the largest number of its place in one object: the product of the bounds of the lists and
maps around it, or, where one of them has no bound, as many as fit into the largest request.
"""

import math
from collections.abc import Iterator
from typing import Any

from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.cel import costs, syntax, typing
from paddock.kubernetes.schema.cel.costs import MOST, Decl
from paddock.kubernetes.schema.cel.errors import BadExpression
from paddock.kubernetes.schema.cel.program import unescape
from paddock.kubernetes.schema.finding import Finding
from paddock.kubernetes.schema.structural import expressions

RULE = "structural/cel-cost"
LARGEST_REQUEST = 3 * 1024 * 1024
RULE_LIMIT, DEFINITION_LIMIT = 10_000_000, 100_000_000
# How many of the rules that make a definition too expensive are named.
_NAMED = 4
_RULES = "x-kubernetes-validations"
Schema = dict[str, Any]


def check(schema: Schema, place: str, *, each: bool = True) -> Iterator[Finding]:
    """Rules that could cost too much, alone (`each`) or together."""
    found = list(_walk(schema, place, top=True, times=1))
    if each:
        for name, at, cost in found:
            if cost > RULE_LIMIT:
                yield finding.forbidden((at,), _exceeds(f"estimated {name} cost", cost, RULE_LIMIT), RULE)
    total = min(sum(cost for _, _, cost in found), MOST)
    if total <= DEFINITION_LIMIT:
        return
    expensive = sorted((one for one in found if one[2] >= DEFINITION_LIMIT // 100), key=lambda one: -one[2])
    for _, at, _ in expensive[:_NAMED]:
        yield finding.forbidden((at,), "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema", RULE)
    what = f"{_RULES} estimated rule cost total for entire OpenAPIv3 schema"
    yield finding.forbidden((place,), _exceeds(what, total, DEFINITION_LIMIT), RULE)


def _exceeds(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    times = "more than 100x" if factor > 100 else f"{factor:.6f}x" if factor < 1.5 else f"{factor:.1f}x"
    advice = "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared"
    return f"{what} exceeds budget by factor of {times} ({advice})"


def _walk(schema: Schema, place: str, *, top: bool, times: int | None) -> Iterator[tuple[str, str, int]]:
    """Every expression with what it costs in one object; `times` is how often its place occurs, if that is bounded."""
    rules = schema.get(_RULES) or ()
    decl = decl_of(schema, top=top or bool(schema.get("x-kubernetes-embedded-resource"))) if rules else None
    for index, rule in enumerate(rules):
        at = f"{place}.{_RULES}[{index}]"
        if decl is not None:
            occurs = times if times is not None else LARGEST_REQUEST // (decl.smallest + 1)
            kinds = expressions.scope_of(schema, rule, top=top)
            cost = _cost(rule.get("rule"), decl, kinds)
            yield "rule", f"{at}.rule", min(cost * occurs, MOST)
            if cost and rule.get("messageExpression"):
                yield "messageExpression", f"{at}.messageExpression", _cost(rule["messageExpression"], decl, kinds)
    inside = _occurs(schema, times)
    for name, member in (schema.get("properties") or {}).items():
        yield from _walk(member, f"{place}.properties[{name}]", top=False, times=inside)
    for word in ("additionalProperties", "items"):
        if isinstance(schema.get(word), dict):
            yield from _walk(schema[word], f"{place}.{word}", top=False, times=inside)


def _occurs(schema: Schema, times: int | None) -> int | None:
    """Return the largest number of values inside a place."""
    word = {"array": "maxItems", "object": "maxProperties"}.get(schema.get("type") or "")
    if word is None or (word == "maxProperties" and schema.get("additionalProperties") is None):
        return times
    most = schema.get(word)
    return None if most is None or times is None else min(times * max(0, int(most)), MOST)


def _cost(text: str | None, decl: Decl, kinds: typing.Scope) -> int:
    """Return the cost of an expression; 0 when it cannot be compiled, which another finding reports."""
    try:
        tree = syntax.parse(text or "")
        typing.infer(tree, kinds)
        return costs.estimate(tree, decl)
    except BadExpression:
        return 0


# --- sizes -----------------------------------------------------------------------------------------------------------------


def decl_of(schema: Schema, *, top: bool = False) -> Decl | None:
    """Return the declaration of a place for expressions; None where they see nothing."""
    if schema.get("x-kubernetes-int-or-string"):
        return Decl("dyn", elements=_length(schema, LARGEST_REQUEST - 2), smallest=1)
    match schema.get("type"):
        case "array":
            return _list(schema)
        case "object":
            return _object(schema, top=top)
        case "string":
            return _text(schema)
        case "boolean":
            return Decl("bool", smallest=4)
        case "number":
            return Decl("double", smallest=1)
        case "integer":
            return Decl("int", smallest=1)
    # A root need not say that it is an object.
    return _object(schema, top=True) if top else None


def _inner(schema: Any) -> Decl | None:
    return decl_of(schema, top=bool(schema.get("x-kubernetes-embedded-resource"))) if isinstance(schema, dict) else None


def _list(schema: Schema) -> Decl | None:
    item = _inner(schema.get("items"))
    if item is None:
        return None
    most = schema.get("maxItems")
    elements = (LARGEST_REQUEST - 2) // (item.smallest + 1) if most is None else max(0, int(most))
    return Decl("list", elements=elements, smallest=2, item=item)


def _object(schema: Schema, *, top: bool) -> Decl | None:
    if isinstance(schema.get("additionalProperties"), dict):
        item = _inner(schema["additionalProperties"])
        if item is None:
            return None
        most = schema.get("maxProperties")
        elements = (LARGEST_REQUEST - 2) // (item.smallest + 6) if most is None else max(0, int(most))
        return Decl("map", elements=elements, smallest=2, item=item)
    members = schema.get("properties") or {}
    smallest = 2
    for name in dict.fromkeys(schema.get("required") or ()):
        member = _inner(members.get(name))
        if member is not None and members[name].get("default") is None:
            smallest += len(name) + member.smallest + 4

    def field(name: str) -> Decl | None:
        plain = unescape(name)
        if top and plain in _ENVELOPE:
            return _ENVELOPE[plain]
        return _inner(members.get(plain))

    return Decl("object", smallest=smallest, field=field)


def _text(schema: Schema) -> Decl:
    form, enum = schema.get("format"), schema.get("enum")
    if form in _FORMS:
        kind, elements, smallest = _FORMS[form]
        return Decl(kind, elements=elements, smallest=smallest)
    if form == "byte":
        most = schema.get("maxLength")
        return Decl("bytes", elements=LARGEST_REQUEST - 2 if most is None else max(0, int(most)), smallest=2)
    longest = max((len(each.encode()) for each in enum if isinstance(each, str)), default=0) if enum else LARGEST_REQUEST - 2
    return Decl("string", elements=_length(schema, longest), smallest=2)


def _length(schema: Schema, otherwise: int) -> int:
    """The largest size of a text, in bytes."""
    most = schema.get("maxLength")
    return otherwise if most is None else max(0, math.trunc(most)) * 4


_FORMS = {"duration": ("duration", 32, 3), "date": ("timestamp", 12, 12), "date-time": ("timestamp", 32, 21)}
_WORD = Decl("string", elements=LARGEST_REQUEST - 2, smallest=2)
_NAMES = {"name": _WORD, "generateName": _WORD}
_ENVELOPE = {"apiVersion": _WORD, "kind": _WORD, "metadata": Decl("object", smallest=2, field=_NAMES.get)}
