"""The CEL rules of a schema (`x-kubernetes-validations`, docs/spec/kube-api.md section 6.5): checked when the schema comes, run on objects.

A rule that names `oldSelf` is about a change: it runs where the former value is known. Other rules are not run again on what an
update leaves as it was. Every rule has a budget, and all rules of an object share one.
"""

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Any

import msgspec

from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.cel import syntax, typing
from paddock.kubernetes.schema.cel.errors import BadExpression, EvaluationError, OutOfBudget
from paddock.kubernetes.schema.cel.program import RULE_LIMIT, CompiledExpression, CostMeter, unescape, uses
from paddock.kubernetes.schema.cel.typing import DYN, STRING, Scope, Ty
from paddock.kubernetes.schema.cel.values import NONE, Optional
from paddock.kubernetes.schema.finding import CauseType, Finding
from paddock.kubernetes.schema.structural.adapting import adapter
from paddock.kubernetes.schema.structural.node import ABSENT, MapKey, SchemaNode, Trail, correlated, has_rules, name_of, same

RULE = "structural/cel"
OBJECT_LIMIT = 10_000_000
UNCHECKED = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
_WORD = "x-kubernetes-validations"
_VARIABLES = ("self", "oldSelf")
# Where lists are compared or joined it matters of what kind they are.
_JOINING = ("==", "!=", "+", " in ")
_REASONS = {
    "FieldValueDuplicate": CauseType.DUPLICATE,
    "FieldValueForbidden": CauseType.FORBIDDEN,
    "FieldValueInvalid": CauseType.INVALID,
    "FieldValueRequired": CauseType.REQUIRED,
}
_LONGEST_MESSAGE = 2048
_LONGEST_VALUE = 256
_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\['((?:[^'\\]|\\.)*)'\]")
_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
Schema = dict[str, Any]


@lru_cache(maxsize=4096)
def _program(text: str) -> CompiledExpression:
    return CompiledExpression(syntax.parse(text), _VARIABLES)


class CelRule:
    """One rule, compiled when first run."""

    def __init__(self, said: Schema, schema: Schema) -> None:
        self.text: str = said.get("rule") or ""
        self.message: str = (said.get("message") or "").strip()
        self.expression: str = (said.get("messageExpression") or "").strip()
        self.cause = _REASONS.get(said.get("reason") or "", CauseType.INVALID)
        self.steps = _marked(schema, _path(said.get("fieldPath") or "") or [])
        self.optional = bool(said.get("optionalOldSelf"))

    @cached_property
    def program(self) -> CompiledExpression:
        return _program(self.text)

    @cached_property
    def about_change(self) -> bool:
        """True if it compares with the former value."""
        return uses(self.program.tree, "oldSelf")

    @cached_property
    def saying(self) -> CompiledExpression | None:
        """The expression that makes the message."""
        return _program(self.expression) if self.expression else None


class CelRules:
    """All rules of a schema."""

    def __init__(self, root: SchemaNode) -> None:
        self._root = root
        self._places: dict[int, _Place] = {}
        self._any = has_rules(root.schema)

    def check(self, new: Any, old: Any, *, blocked: bool) -> Iterator[Finding]:
        """Every rule that does not hold. A value whose structure is wrong is not asked: `blocked`."""
        if not self._any:
            return
        if blocked:
            yield finding.invalid(("<nil>",), None, UNCHECKED, RULE)
            return
        budget = CostMeter(OBJECT_LIMIT)
        try:
            yield from self._walk(self._root, new, old, None, budget)
        except OutOfBudget:
            why = "validation failed due to running out of cost budget, no further validation rules will be run"
            yield finding.forbidden(("<nil>",), why, RULE)

    def _place(self, node: SchemaNode) -> "_Place":
        found = self._places.get(id(node))
        if found is None:
            found = self._places[id(node)] = _Place(node)
        return found

    def _walk(self, node: SchemaNode, value: Any, old: Any, trail: Trail, budget: CostMeter) -> Iterator[Finding]:
        place = self._place(node)
        if not place.matters or value is None:
            return
        if place.rules:
            yield from place.check(value, old, trail, budget)
        if isinstance(value, dict):
            before = old if isinstance(old, dict) and not node.atomic_map else {}
            for key, member in value.items():
                below = node.properties.get(key)
                if below is not None:
                    yield from self._walk(below, member, before.get(key, ABSENT), (trail, key), budget)
                elif node.others is not None and key not in node.kept:
                    yield from self._walk(node.others, member, before.get(key, ABSENT), (trail, MapKey(key)), budget)
        elif isinstance(value, list) and node.items is not None:
            former = correlated(node, old)
            for index, entry in enumerate(value):
                yield from self._walk(node.items, entry, former(entry), (trail, index), budget)


class _Place:
    """The rules of one place, and whether there are any there or below."""

    def __init__(self, node: SchemaNode) -> None:
        self.matters = has_rules(node.schema)
        self.rules = tuple(CelRule(each, node.schema) for each in node.schema.get(_WORD) or ())
        gathers = any(sign in rule.text for rule in self.rules for sign in _JOINING)
        self._adapt = adapter(node, gathers=gathers) if self.rules else None

    def check(self, value: Any, old: Any, trail: Trail, budget: CostMeter) -> Iterator[Finding]:
        """Run the rules of the place."""
        known = old is not ABSENT and old is not None
        unchanged = known and same(value, old)
        adapt = self._adapt
        shown = value if adapt is None else adapt(value)
        former = (old if adapt is None else adapt(old)) if known else None
        for rule in self.rules:
            if rule.about_change:
                if not known and not rule.optional:
                    continue
                before: Any = (Optional(former, True) if known else NONE) if rule.optional else former
            elif unchanged:
                continue
            else:
                before = None
            wrong = self._run(rule, (shown, before), budget)
            if wrong is not None:
                yield _finding(rule, wrong, value, trail)

    def _run(self, rule: CelRule, values: tuple[Any, ...], total: CostMeter) -> "str | _Failed | None":
        """None when the rule holds; else the message."""
        if total.left <= 0:
            raise OutOfBudget
        budget = CostMeter(min(RULE_LIMIT, total.left))
        whole = budget.left
        try:
            if rule.program.run(values, budget) is True:
                return None
            return _message(rule, values, budget)
        except EvaluationError as error:
            return _Failed(f"{error} evaluating rule: {rule.message or rule.text.strip()}")
        except OutOfBudget:
            why = (
                "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit"
            )
            return _Failed(f"{why} for rule: {rule.message or rule.text.strip()}")
        finally:
            total.spend(whole - max(budget.left, 0))


class _Failed(str):
    """The message of a rule that could not be run."""

    __slots__ = ()


def _message(rule: CelRule, values: tuple[Any, ...], budget: CostMeter) -> str:
    plain = rule.message or f"failed rule: {rule.text.strip()}"
    if rule.saying is None:
        return plain
    try:
        said = rule.saying.run(values, budget)
    except (EvaluationError, OutOfBudget):
        return plain
    fits = isinstance(said, str) and said.strip() and "\n" not in said and len(said) <= _LONGEST_MESSAGE
    return str(said).strip() if fits else plain


def _finding(rule: CelRule, wrong: str, value: Any, trail: Trail) -> Finding:
    if isinstance(wrong, _Failed):
        kind = _KINDS.get(type(value), "object")
        return Finding(path=(name_of(trail),), message=f'Invalid value: "{kind}": {wrong}', rule=RULE)
    for step in rule.steps:
        trail = (trail, step)
    path = (name_of(trail),)
    plain = isinstance(value, dict | list) or bool(rule.steps)
    shown = "" if plain or (isinstance(value, str) and len(value) > _LONGEST_VALUE) else f": {finding.show(value)}"
    message = {
        CauseType.INVALID: f"Invalid value{shown}: {wrong}",
        CauseType.FORBIDDEN: f"Forbidden: {wrong}",
        CauseType.REQUIRED: f"Required value: {wrong}",
        CauseType.DUPLICATE: f"Duplicate value{shown}",
    }[rule.cause]
    return Finding(path=path, message=message, rule=RULE, cause=rule.cause)


def rules_of(root: SchemaNode) -> CelRules:
    """The rules of a schema."""
    return CelRules(root)


def _path(text: str) -> list[str] | None:
    """The steps of `.spec.x['y z']`; None when it is no path."""
    steps, at = [], 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            return None
        steps.append(match[1] if match[1] is not None else re.sub(r"\\(.)", r"\1", match[2]))
        at = match.end()
    return steps


# --- when a schema comes --------------------------------------------------------------------------------------------------------


def check(schema: Schema, place: str) -> Iterator[Finding]:
    """Everything wrong with the rules of a schema."""
    yield from _check(schema, place, top=True, lost="")


def scope_of(schema: Schema, rule: Schema, *, top: bool) -> Scope:
    """The types of the variables of a rule."""
    kind = type_of(schema, top=top)
    return {"self": kind, "oldSelf": Ty("optional", kind) if rule.get("optionalOldSelf") else kind}


def _check(schema: Schema, place: str, *, top: bool, lost: str) -> Iterator[Finding]:
    """`lost` is the place below which former values are unknown; empty where they are known."""
    if not has_rules(schema):
        return
    said = schema.get(_WORD) or ()
    scope: Scope = {}
    if said:
        self_type = type_of(schema, top=top)
        scope = {"self": self_type, "oldSelf": self_type}
    for index, rule in enumerate(said):
        yield from _check_rule(rule, schema, f"{place}.{_WORD}[{index}]", scope, lost)
    inside = lost or (place if schema.get("x-kubernetes-map-type") == "atomic" else "")
    for name, member in (schema.get("properties") or {}).items():
        yield from _check(member, f"{place}.properties[{name}]", top=False, lost=inside)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _check(schema["additionalProperties"], f"{place}.additionalProperties", top=False, lost=inside)
    if isinstance(schema.get("items"), dict):
        inside = lost or ("" if schema.get("x-kubernetes-list-type") == "map" else place)
        yield from _check(schema["items"], f"{place}.items", top=False, lost=inside)


def _check_rule(said: Schema, schema: Schema, place: str, scope: Scope, lost: str) -> Iterator[Finding]:
    text = said.get("rule") or ""
    yield from _check_words(said, schema, place)
    if not text.strip():
        yield finding.required((f"{place}.rule",), RULE, "rule is not specified")
        return
    optional = bool(said.get("optionalOldSelf"))
    if optional:
        scope = {**scope, "oldSelf": Ty("optional", scope["self"])}
    shown = _shown(said)
    try:
        tree = _program(text).tree
        kind = typing.infer(tree, scope).kind
    except BadExpression as bad:
        why = f"compilation failed: {_pointed(bad, text)}"
        yield Finding(path=(f"{place}.rule",), message=f"Invalid value: {shown}: {why}", rule=RULE)
        return
    if kind not in ("bool", "dyn"):
        why = "cel expression must evaluate to a bool"
        yield Finding(path=(f"{place}.rule",), message=f"Invalid value: {shown}: {why}", rule=RULE)
    compares = uses(tree, "oldSelf")
    if optional and not compares:
        yield finding.invalid((f"{place}.optionalOldSelf",), True, "may not be set if oldSelf is not used in rule", RULE)
    if compares and lost and not optional:
        why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {lost}"
        yield finding.invalid((f"{place}.rule",), text, why, RULE)
    yield from _check_expression(said, place, scope, shown)


def _check_expression(said: Schema, place: str, scope: Scope, shown: str) -> Iterator[Finding]:
    text = said.get("messageExpression") or ""
    if not text:
        return
    at = (f"{place}.messageExpression",)
    if not text.strip():
        yield finding.required(at, RULE, "must be non-empty if specified")
        return
    try:
        kind = typing.infer(_program(text).tree, scope).kind
    except BadExpression as bad:
        why = f"messageExpression compilation failed: {_pointed(bad, text)}"
        yield Finding(path=at, message=f"Invalid value: {shown}: {why}", rule=RULE)
        return
    if kind not in ("string", "dyn"):
        yield Finding(path=at, message=f"Invalid value: {shown}: messageExpression must evaluate to a string", rule=RULE)


def _pointed(bad: BadExpression, text: str) -> str:
    """The mistake, and an arrow at it."""
    before = text[: bad.at]
    line, column = before.count("\n"), len(before) - (before.rfind("\n") + 1)
    shown = text.split("\n")[line] if text else ""
    return f"ERROR: <input>:{line + 1}:{column + 1}: {bad.why}\n | {shown}\n | {'.' * column}^"


def _shown(said: Schema) -> str:
    words: tuple[tuple[str, str, Any], ...] = (
        *(("Rule", "rule", ""), ("Message", "message", ""), ("MessageExpression", "messageExpression", "")),
        *(("Reason", "reason", None), ("FieldPath", "fieldPath", ""), ("OptionalOldSelf", "optionalOldSelf", None)),
    )
    return msgspec.json.encode({name: said.get(word, empty) for name, word, empty in words}).decode()


def _check_words(said: Schema, schema: Schema, place: str) -> Iterator[Finding]:
    message, text = said.get("message"), said.get("rule") or ""
    if message is not None and not message.strip():
        yield finding.invalid((f"{place}.message",), message, "message must be non-empty if specified", RULE)
    elif message and "\n" in message.strip():
        yield finding.invalid((f"{place}.message",), message, "must not contain line breaks", RULE)
    elif message and len(message) > _LONGEST_MESSAGE:
        yield finding.invalid(
            (f"{place}.message",), message[:10] + "...", f"must have a maximum length of {_LONGEST_MESSAGE} characters", RULE
        )
    elif not message and "\n" in text.strip():
        yield finding.required((f"{place}.message",), RULE, "message must be specified if rule contains line breaks")
    reason = said.get("reason")
    if reason is not None and reason not in _REASONS:
        yield finding.unsupported((f"{place}.reason",), reason, sorted(_REASONS), RULE)
    path = said.get("fieldPath") or ""
    if path and not _leads(schema, _path(path) if path.startswith((".", "[")) else None):
        yield finding.invalid((f"{place}.fieldPath",), path, "must be a valid path", RULE)


def _marked(schema: Schema, steps: list[str]) -> tuple[str, ...]:
    """Return the steps of a path with those marked that are keys of maps."""
    made: list[str] = []
    place: Any = schema
    for step in steps:
        named = (place.get("properties") or {}).get(step)
        others = place.get("additionalProperties")
        made.append(MapKey(step) if named is None and isinstance(others, dict) else step)
        place = named or (others if isinstance(others, dict) else {})
    return tuple(made)


def _leads(schema: Schema, steps: list[str] | None) -> bool:
    if not steps:
        return False
    place: Any = schema
    for step in steps:
        others = place.get("additionalProperties")
        inner = (place.get("properties") or {}).get(step) or (others if isinstance(others, dict) else None)
        if inner is None:
            return place.get("x-kubernetes-embedded-resource") is True and step in ("apiVersion", "kind", "metadata")
        place = inner
    return True


_META = {"name": STRING, "generateName": STRING}
_ENVELOPE = {"apiVersion": STRING, "kind": STRING, "metadata": Ty("object", None, _META.get)}
_SCALARS = {"string": "string", "integer": "int", "number": "double", "boolean": "bool"}
_FORMATS = {"date-time": "timestamp", "datetime": "timestamp", "date": "timestamp", "duration": "duration", "byte": "bytes"}


def type_of(schema: Schema, *, top: bool = False) -> Ty:
    """The type that expressions see."""
    if schema.get("x-kubernetes-int-or-string"):
        return DYN
    kind = schema.get("type")
    if kind == "string":
        return Ty(_FORMATS.get(schema.get("format") or "", "string"))
    if kind in _SCALARS:
        return Ty(_SCALARS[kind])
    if kind == "array":
        return Ty("list", type_of(schema.get("items") or {}))
    if kind != "object":
        return DYN
    if isinstance(schema.get("additionalProperties"), dict):
        return Ty("map", type_of(schema["additionalProperties"]))
    if schema.get("additionalProperties") is True:
        return Ty("map", DYN)
    own = _ENVELOPE if top or schema.get("x-kubernetes-embedded-resource") else {}
    members = schema.get("properties") or {}

    def member(name: str) -> Ty | None:
        plain = unescape(name)
        if plain in own:
            return own[plain]
        return type_of(members[plain]) if plain in members else None

    return Ty("object", None, member)
