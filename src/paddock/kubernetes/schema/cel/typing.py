"""Type checks of an expression before it runs: fields that do not exist, values that can never be compared, a rule that is no
bool. An unknown type is `dyn`, and the run decides.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from paddock.kubernetes.schema import patterns
from paddock.kubernetes.schema.cel import functions, syntax
from paddock.kubernetes.schema.cel.comprehensions import VARIABLES
from paddock.kubernetes.schema.cel.errors import BadExpression
from paddock.kubernetes.schema.cel.values import TYPES, name_of


def _nothing(name: str) -> "Ty | None":
    return None


class Ty(msgspec.Struct, frozen=True):
    """A type. `item` is what lists, maps and optionals hold; `member` finds the fields of objects."""

    kind: str
    item: "Ty | None" = None
    member: Callable[[str], "Ty | None"] = _nothing

    @property
    def inner(self) -> "Ty":
        """The type of the entries."""
        return self.item or DYN


DYN = Ty("dyn")
BOOL, INT, STRING, DOUBLE = Ty("bool"), Ty("int"), Ty("string"), Ty("double")
_SCALARS = frozenset(("int", "uint", "double", "bool", "string", "bytes"))
_NUMBERS = frozenset(("int", "uint", "double"))
_CONTAINERS = frozenset(("list", "map", "object"))
Scope = Mapping[str, Ty]


def infer(tree: Any, scope: Scope) -> Ty:
    """The type of an expression; raises `BadExpression` for what can never be right."""
    match tree:
        case syntax.Literal():
            return Ty("null" if tree.value is None else name_of(tree.value))
        case syntax.Ident():
            return scope.get(tree.name) or (Ty("type") if tree.name in TYPES else DYN)
        case syntax.Select():
            return _select(tree, scope)
        case syntax.Index():
            return _index(tree, scope)
        case syntax.MakeList():
            found = [infer(each, scope) for each in tree.entries]
            same = bool(found) and all(each == found[0] for each in found) and not any(tree.optional)
            return Ty("list", found[0] if same else DYN)
        case syntax.MakeMap():
            for key, value in tree.entries:
                infer(key, scope)
                infer(value, scope)
            return Ty("map", DYN)
        case syntax.MakeMessage():
            return _message(tree, scope)
        case syntax.Call():
            return _call(tree, scope)
    raise AssertionError(tree)


def _message(tree: syntax.MakeMessage, scope: Scope) -> Ty:
    """The type of a message is a name of the scope; a field is what its type says, or anything."""
    made = scope.get(tree.name.partition(".")[0]) or Ty("object", None, _anything)
    made = msgspec.structs.replace(made, kind=tree.name)
    for (name, value, at), optional in zip(tree.fields, tree.optional, strict=True):
        given, wanted = infer(value, scope), made.member(name)
        given = given.inner if optional and given.kind == "optional" else given
        if wanted is None or (wanted is not DYN and given.kind not in (wanted.kind, "dyn")):
            kind = wanted.kind if wanted else ""
            raise BadExpression(f"expected type of field '{name}' is '{kind}' but provided type is '{given.kind}'", at)
    return made


def _anything(name: str) -> Ty | None:
    return DYN


def _field(of: Ty, name: str, at: int) -> Ty:
    if of.kind == "object" or of.member is not _nothing:
        found = of.member(name)
        if found is None:
            raise BadExpression(f"undefined field '{name}'", at)
        return found
    if of.kind in ("map", "dyn"):
        return of.inner
    if of.kind == "optional":
        inner = of.inner
        return Ty("optional", DYN if inner is DYN else _field(inner, name, at))
    raise BadExpression(f"type '{of.kind}' does not support field selection", at)


def _select(tree: syntax.Select, scope: Scope) -> Ty:
    found = _field(infer(tree.operand, scope), tree.field, tree.at)
    return found if not tree.optional or found.kind == "optional" else Ty("optional", found)


def _index(tree: syntax.Index, scope: Scope) -> Ty:
    of = infer(tree.operand, scope)
    infer(tree.key, scope)
    if of.kind in _SCALARS:
        raise BadExpression(f"found no matching overload for '_[_]' applied to '({of.kind}, dyn)'", tree.at)
    found = of.inner if of.kind in ("list", "map") else DYN
    return Ty("optional", found) if tree.optional else found


def _call(tree: syntax.Call, scope: Scope) -> Ty:
    if tree.target is None and tree.name == "has":
        if tree.args and isinstance(tree.args[0], syntax.Select):
            infer(tree.args[0], scope)
        return BOOL
    count = VARIABLES.get((tree.name, len(tree.args))) if tree.target is not None else None
    if count is not None and all(isinstance(each, syntax.Ident) for each in tree.args[:count]):
        return _macro(tree, count, scope)
    if tree.target is not None and tree.name in ("optMap", "optFlatMap") and isinstance(tree.args[0], syntax.Ident):
        held = infer(tree.target, scope).inner
        made = infer(tree.args[-1], {**scope, tree.args[0].name: held})
        return made if tree.name == "optFlatMap" else Ty("optional", made)
    if isinstance(tree.target, syntax.Ident) and tree.target.name not in scope:
        return _qualified(tree, f"{tree.target.name}.{tree.name}", scope)
    args = [infer(each, scope) for each in ((tree.target,) if tree.target is not None else ()) + tree.args]
    if tree.target is None and tree.name in _OPERATORS:
        return _OPERATORS[tree.name](tree, args)
    if tree.name == "matches" and tree.args and isinstance(tree.args[-1], syntax.Literal):
        _check_pattern(tree.args[-1])
    if tree.name in ("orValue", "value") and args[0].kind == "optional":
        return args[0].inner
    table = functions.GLOBAL if tree.target is None else functions.METHODS
    known = table.get(tree.name)
    return Ty(known.result) if known is not None and known.result else DYN


def _check_pattern(literal: syntax.Literal) -> None:
    try:
        patterns.check(str(literal.value))
    except patterns.BadPattern:
        raise BadExpression("invalid matches argument", literal.at) from None


def _qualified(tree: syntax.Call, name: str, scope: Scope) -> Ty:
    if name == "cel.bind" and len(tree.args) == 3 and isinstance(tree.args[0], syntax.Ident):
        return infer(tree.args[2], {**scope, tree.args[0].name: infer(tree.args[1], scope)})
    found = [infer(each, scope) for each in tree.args]
    if name == "optional.of" and found:
        return Ty("optional", found[0])
    known = functions.GLOBAL.get(name)
    return Ty(known.result) if known is not None and known.result else DYN


def _macro(tree: syntax.Call, count: int, scope: Scope) -> Ty:
    source = infer(tree.target, scope)
    if source.kind in _SCALARS or source.kind == "object":
        raise BadExpression(f"expression of type '{source.kind}' cannot be range of a comprehension", tree.at)
    names = [each.name for each in tree.args[:count]]
    by_key = source.kind == "map"
    key = STRING if by_key else INT if source.kind == "list" else DYN
    held = source.inner if source.kind in ("list", "map") else DYN
    bound = (key, held) if count == 2 else (key if by_key else held,)
    inside = {**scope, **dict(zip(names, bound, strict=True))}
    made = [infer(each, inside) for each in tree.args[count:]]
    tests = made if tree.name in ("all", "exists", "exists_one", "existsOne", "filter") else made[:-1]
    for each in tests:
        _need_bool(each, "_?_:_" if tree.name == "filter" else tree.name, tree.at)
    if tree.name == "filter":
        return Ty("list", bound[0])
    if tree.name in ("map", "transformList"):
        return Ty("list", made[-1])
    if tree.name in ("transformMap", "transformMapEntry"):
        return Ty("map", made[-1] if tree.name == "transformMap" else DYN)
    return BOOL


def _need_bool(cel_type: Ty, name: str, at: int) -> None:
    if cel_type.kind not in ("bool", "dyn"):
        raise BadExpression(f"expected type 'bool' but found '{cel_type.kind}'", at)


def _logic(tree: syntax.Call, args: list[Ty]) -> Ty:
    for each in args:
        _need_bool(each, tree.name, tree.at)
    return BOOL


def _refuse(tree: syntax.Call, args: list[Ty]) -> BadExpression:
    kinds = ", ".join(each.kind for each in args)
    return BadExpression(f"found no matching overload for '{_SPELLED.get(tree.name, tree.name)}' applied to '({kinds})'", tree.at)


def _equality(tree: syntax.Call, args: list[Ty]) -> Ty:
    one, other = (each.kind for each in args)
    known = _SCALARS | _CONTAINERS | {"null"}
    if one != other and one in known and other in known and not _may_equal(one, other):
        raise _refuse(tree, args)
    return BOOL


def _may_equal(one: str, other: str) -> bool:
    """Maps and objects are alike, and anything but a scalar may be null."""
    return {one, other} <= {"map", "object"} or ("null" in (one, other) and not {one, other} & _SCALARS)


def _order(tree: syntax.Call, args: list[Ty]) -> Ty:
    one, other = (each.kind for each in args)
    if one in _SCALARS | _CONTAINERS and other in _SCALARS | _CONTAINERS and one != other and not {one, other} <= _NUMBERS:
        raise _refuse(tree, args)
    return BOOL


def _arithmetic(tree: syntax.Call, args: list[Ty]) -> Ty:
    kinds = {each.kind for each in args}
    if len(kinds) > 1 and kinds <= _SCALARS | _CONTAINERS:
        raise _refuse(tree, args)
    if "dyn" in kinds:
        return DYN
    return args[0] if len(kinds) == 1 and kinds <= _SCALARS | {"list"} else DYN


def _membership(tree: syntax.Call, args: list[Ty]) -> Ty:
    if args[1].kind in _SCALARS:
        raise _refuse(tree, args)
    return BOOL


def _choice(tree: syntax.Call, args: list[Ty]) -> Ty:
    _need_bool(args[0], "?:", tree.at)
    return args[1] if args[1].kind == args[2].kind else DYN


_SPELLED = {sign: f"_{sign}_" for sign in ("==", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%")} | {"in": "@in"}
_OPERATORS: dict[str, Callable[[syntax.Call, list[Ty]], Ty]] = {
    "||": _logic,
    "&&": _logic,
    "!": _logic,
    "?:": _choice,
    "==": _equality,
    "!=": _equality,
    **dict.fromkeys(("<", "<=", ">", ">="), _order),
    **dict.fromkeys(("+", "-", "*", "/", "%"), _arithmetic),
    "in": _membership,
}
