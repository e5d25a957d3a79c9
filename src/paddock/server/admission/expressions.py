"""The expressions of policies and match conditions: what they may name, what they are worth for a request.

Besides the plain variables there are two that are looked into: `variables.NAME`, worked out when first used, and
`authorizer.requestResource`. Both are one name to the compiler.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from paddock.kubernetes.schema.cel import syntax, typing
from paddock.kubernetes.schema.cel.errors import BadExpression, EvaluationError, OutOfBudget
from paddock.kubernetes.schema.cel.program import RULE_LIMIT, CompiledExpression, CostMeter
from paddock.kubernetes.schema.cel.typing import BOOL, DYN, STRING, Ty

# What all conditions of a webhook, and all expressions of a policy, may cost for one request.
CONDITIONS_LIMIT, POLICY_LIMIT = 2_500_000, 10_000_000
_PLAIN = ("object", "oldObject", "request", "namespaceObject")
_AUTHORIZER = ("authorizer", "authorizer.requestResource")
_BELOW = "variables."


class Scope(msgspec.Struct, frozen=True):
    """The names that expressions of one place may use."""

    params: bool
    authorizer: bool = True
    # names below `variables`; None where there is nothing of that name
    known: tuple[str, ...] | None = None
    # whether they make what changes objects
    mutates: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """All names, as the compiler sees them."""
        params, authorizer = ("params",) if self.params else (), _AUTHORIZER if self.authorizer else ()
        return (*_PLAIN, *params, *authorizer, *(f"{_BELOW}{name}" for name in self.known or ()))


# Types by name, for checks before an expression runs.
Types = dict[str, Ty]


def _object(**members: Ty) -> Ty:
    return Ty("object", None, members.get)


_PATCH = {"op": STRING, "path": STRING, "from": STRING, "value": DYN}
_MESSAGES: Types = {"Object": Ty("Object", None, lambda name: DYN), "JSONPatch": Ty("JSONPatch", None, _PATCH.get)}
_TEXTS, _LABELS = Ty("list", STRING), Ty("map", STRING)
_KIND, _RESOURCE = _object(group=STRING, version=STRING, kind=STRING), _object(group=STRING, version=STRING, resource=STRING)
_USER = _object(username=STRING, uid=STRING, groups=_TEXTS, extra=Ty("map", _TEXTS))
_REQUEST = _object(
    kind=_KIND,
    resource=_RESOURCE,
    subResource=STRING,
    requestKind=_KIND,
    requestResource=_RESOURCE,
    requestSubResource=STRING,
    name=STRING,
    namespace=STRING,
    operation=STRING,
    userInfo=_USER,
    dryRun=BOOL,
    options=DYN,
)
_NAMESPACE = _object(
    metadata=_object(
        **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion"), STRING),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp", "generation", "deletionGracePeriodSeconds"), DYN),
        labels=_LABELS,
        annotations=_LABELS,
        finalizers=_TEXTS,
    ),
    spec=_object(finalizers=_TEXTS),
    status=_object(phase=STRING, conditions=Ty("list", DYN)),
)


def _folded(tree: Any, scope: Scope) -> Any:
    """The tree with `variables.x` and `authorizer.requestResource` as single names."""
    if isinstance(tree, syntax.Select) and isinstance(tree.operand, syntax.Ident) and not tree.optional:
        if tree.operand.name == "variables" and scope.known is not None:
            if tree.field not in scope.known:
                raise BadExpression(f"undefined field '{tree.field}'", tree.at)
            return syntax.Ident(f"{_BELOW}{tree.field}", tree.at)
        if f"{tree.operand.name}.{tree.field}" in scope.names:
            return syntax.Ident(f"{tree.operand.name}.{tree.field}", tree.at)
    return _with_children(tree, lambda child: _folded(child, scope))


def _with_children(tree: Any, change: Callable[[Any], Any]) -> Any:
    match tree:
        case syntax.Select():
            return msgspec.structs.replace(tree, operand=change(tree.operand))
        case syntax.Index():
            return msgspec.structs.replace(tree, operand=change(tree.operand), key=change(tree.key))
        case syntax.Call():
            if tree.name == "has" and tree.target is None and len(tree.args) == 1 and isinstance(tree.args[0], syntax.Select):
                inner = msgspec.structs.replace(tree.args[0], operand=change(tree.args[0].operand))
                return msgspec.structs.replace(tree, args=(inner,))
            target = None if tree.target is None else change(tree.target)
            return msgspec.structs.replace(tree, target=target, args=tuple(change(each) for each in tree.args))
        case syntax.MakeList():
            return msgspec.structs.replace(tree, entries=tuple(change(each) for each in tree.entries))
        case syntax.MakeMap():
            return msgspec.structs.replace(tree, entries=tuple((change(key), change(value)) for key, value in tree.entries))
        case syntax.MakeMessage():
            return msgspec.structs.replace(tree, fields=tuple((name, change(value), at) for name, value, at in tree.fields))
    return tree


@lru_cache(maxsize=4096)
def _program(text: str, scope: Scope) -> CompiledExpression:
    late = frozenset(f"{_BELOW}{name}" for name in scope.known or ())
    return CompiledExpression(_folded(syntax.parse(text), scope), scope.names, late, *((_is_message,) if scope.mutates else ()))


def _is_message(name: str) -> bool:
    """Parts of an object have the names of their places behind that of the object."""
    return name == "JSONPatch" or name.partition(".")[0] == "Object"


def check(text: str, scope: Scope, kinds: tuple[str, ...] = ()) -> str:
    """Return the mistake in an expression, or an empty text. `kinds` are the types it may have; none means any."""
    return _checked(text, scope, {}, kinds)[1]


def _checked(text: str, scope: Scope, types: Types, kinds: tuple[str, ...]) -> tuple[Ty, str]:
    try:
        tree = _program(text, scope).tree
        named = _MESSAGES if scope.mutates else {}
        given = {**dict.fromkeys(scope.names, DYN), "request": _REQUEST, "namespaceObject": _NAMESPACE, **named, **types}
        found = typing.infer(tree, given)
    except BadExpression as bad:
        return DYN, f"compilation failed: {pointed(bad, text)}"
    # What is only looked up in an object has no type that could be trusted; of anything else that has none too little is known here.
    unknown = () if isinstance(tree, syntax.Select | syntax.Index) else ("dyn",)
    if kinds and found.kind not in (*kinds, *unknown, *(("null",) if "null_type" in kinds else ())):
        wanted = kinds[0] if len(kinds) == 1 else f"one of [{' '.join(kinds)}]"
        return found, f"must evaluate to {wanted} but got {found.kind}"
    return found, ""


def type_of(text: str, scope: Scope, types: Types) -> tuple[Ty, str]:
    """The type of an expression where the types of some names are known, and what is wrong with it."""
    return _checked(text, scope, types, ())


def pointed(bad: BadExpression, text: str) -> str:
    """The mistake, and an arrow at it."""
    before = text[: bad.at]
    line, column = before.count("\n"), len(before) - (before.rfind("\n") + 1)
    return f"ERROR: <input>:{line + 1}:{column + 1}: {bad.why}\n | {text.split(chr(10))[line]}\n | {'.' * column}^"


class ExpressionFailed(Exception):
    """An expression has no value for a request."""


class Activation:
    """The values of the names for one request. Costs are paid from one budget."""

    def __init__(
        self, values: dict[str, Any], scope: Scope, variables: tuple[tuple[str, str], ...] = (), limit: int = POLICY_LIMIT
    ) -> None:
        self._values = values
        self._scope = scope
        self._left = limit
        self._late: dict[str, Callable[[CostMeter], Any]] = {}
        for index, (name, text) in enumerate(variables):
            self._late[f"{_BELOW}{name}"] = self._lately(name, text, msgspec.structs.replace(scope, known=(scope.known or ())[:index]))

    def value(self, text: str, *, authorizer: bool = True) -> Any:
        """The value of an expression; raises `ExpressionFailed`."""
        scope = self._scope if authorizer else msgspec.structs.replace(self._scope, authorizer=False)
        budget = CostMeter(min(RULE_LIMIT, self._left))
        whole = budget.left
        try:
            return self._run(text, scope, budget)
        except BadExpression as error:
            raise ExpressionFailed(f"compilation failed: {pointed(error, text)}") from None
        except EvaluationError as error:
            raise ExpressionFailed(f"expression '{text.strip()}' resulted in error: {error}") from None
        except OutOfBudget:
            if self._left <= RULE_LIMIT:
                raise ExpressionFailed(
                    "validation failed due to running out of cost budget, no further validation rules will be run"
                ) from None
            raise ExpressionFailed(
                f"expression '{text.strip()}' resulted in error: operation cancelled: actual cost limit exceeded"
            ) from None
        finally:
            self._left = max(0, self._left - (whole - max(budget.left, 0)))

    def _run(self, text: str, scope: Scope, budget: CostMeter) -> Any:
        values = tuple(self._late[name] if name.startswith(_BELOW) else self._values.get(name) for name in scope.names)
        return _program(text, scope).run(values, budget)

    def _lately(self, name: str, text: str, scope: Scope) -> Callable[[CostMeter], Any]:
        """A variable that is worked out when first used; a failure is remembered, too."""
        known: list[Any] = []

        def value(budget: CostMeter) -> Any:
            if not known:
                try:
                    known.append(self._run(text, scope, budget))
                except EvaluationError as error:
                    known.append(EvaluationError(f'composited variable "{name}" fails to evaluate: {error}'))
            if isinstance(known[0], EvaluationError):
                raise known[0]
            return known[0]

        return value
