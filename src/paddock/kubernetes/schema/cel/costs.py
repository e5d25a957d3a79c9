"""The estimated cost of an expression before it runs, in the units of a kube-apiserver: the worst that its schema allows.

The estimate follows the places of values in the schema: the bounds of a place limit the size of its values, and a value without a place
has no bound. It only has to agree with upstream, which also means its shortcuts: an iterated value without a place counts as large as
the value of the rule.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from paddock.kubernetes.schema.cel import functions, syntax
from paddock.kubernetes.schema.cel.comprehensions import VARIABLES
from paddock.kubernetes.schema.cel.values import TYPES, name_of

MOST = 2**64 - 1
_TEXT, _PATTERN = 0.1, 0.25
_LIST, _MAP = 10, 30
# The texts of named formats.
_FORMAT_PATTERN = 128


class Decl:
    """The declaration of the values at one place. `elements` is the largest size, `smallest` the shortest JSON."""

    def __init__(
        self,
        kind: str,
        *,
        elements: int = 0,
        smallest: int = 0,
        item: "Decl | None" = None,
        field: "Callable[[str], Decl | None]" = lambda _: None,
    ) -> None:
        self.kind = kind
        self.elements = elements
        self.smallest = smallest
        self.item = item
        self.field = field


# A place that leads out of the schema.
_LOST = Decl("dyn")
KEY = Decl("string", smallest=2)


class Size(NamedTuple):
    """The smallest and the largest that a value may be."""

    low: int
    high: int


_UNKNOWN = Size(0, MOST)


class Estimate(NamedTuple):
    """Of an expression: what it costs at most, how large its value is if that is known, its type, and its place."""

    cost: int
    kind: str = "dyn"
    size: Size | None = None
    place: Decl | None = None
    # type and size of the entries of a list or a map, where they are made by the expression
    item: str = "dyn"
    inner: Size | None = None

    @property
    def known(self) -> Size:
        """The size, or that it may be anything."""
        return self.size or _UNKNOWN


def estimate(tree: Any, root: Decl) -> int:
    """The most that a rule may cost once."""
    return _Estimator(root).of(tree, {"self": root, "oldSelf": root}).cost


def _plus(*costs: int) -> int:
    return min(sum(costs), MOST)


def _times(count: int, cost: int) -> int:
    return min(count * cost, MOST)


def _factor(size: int, per: float) -> int:
    made = size * per
    return MOST if made >= 2.0**64 else math.ceil(made)


_SCALARS = frozenset(("bool", "double", "int", "uint", "timestamp", "duration", "google.protobuf.Duration", "google.protobuf.Timestamp"))
Scope = Mapping[str, "Decl | Estimate"]


class _Estimator:
    """Walks the tree of one rule."""

    def __init__(self, root: Decl) -> None:
        self._root = root

    def of(self, tree: Any, scope: Scope) -> Estimate:
        match tree:
            case syntax.Literal():
                return _literal(tree.value)
            case syntax.Ident():
                return self._ident(tree.name, scope)
            case syntax.Select():
                return self._select(tree, scope)
            case syntax.Index():
                return self._index(tree, scope)
            case syntax.MakeList():
                entries = [self.of(each, scope) for each in tree.entries]
                kinds = {each.kind for each in entries}
                size, item = Size(len(entries), len(entries)), kinds.pop() if len(kinds) == 1 else "dyn"
                return Estimate(_plus(_LIST, *(each.cost for each in entries)), "list", size, None, item)
            case syntax.MakeMap():
                costs = [self.of(each, scope).cost for pair in tree.entries for each in pair]
                return Estimate(_plus(_MAP, *costs), "map", Size(len(tree.entries), len(tree.entries)))
            case syntax.MakeMessage():
                return Estimate(_plus(_MAP, *(self.of(value, scope).cost for _, value, _ in tree.fields)), "map")
        return self._call(tree, scope)

    def _ident(self, name: str, scope: Scope) -> Estimate:
        found = scope.get(name)
        if found is None:
            # The name of a type is a place without steps, which is the root.
            return Estimate(1, "type" if name in TYPES else "dyn", Size(0, self._root.elements), self._root)
        return found._replace(cost=1) if isinstance(found, Estimate) else _at(found, 1)

    def _select(self, tree: syntax.Select, scope: Scope) -> Estimate:
        of = self.of(tree.operand, scope)
        if tree.optional:
            return Estimate(_plus(of.cost, 1), "optional_type")
        cost = _plus(of.cost, 1 if of.kind in ("map", "object") else 0)
        if of.place is None:
            return Estimate(cost)
        return _at(of.place.field(tree.field) or _LOST, cost)

    def _index(self, tree: syntax.Index, scope: Scope) -> Estimate:
        of, key = self.of(tree.operand, scope), self.of(tree.key, scope)
        cost = _plus(of.cost, key.cost, 1)
        if tree.optional:
            return Estimate(cost, "optional_type")
        if of.kind not in ("list", "map"):
            return Estimate(cost)
        found = self._entry(of, cost)
        return found if of.inner is None else found._replace(size=of.inner)

    def _entry(self, of: Estimate, cost: int) -> Estimate:
        """An entry of a list or a map; what has no place is taken for the root."""
        if of.place is None:
            return Estimate(cost, of.item, Size(0, self._root.elements), self._root)
        return _at(of.place.item or _LOST, cost, of.item)

    def _call(self, tree: syntax.Call, scope: Scope) -> Estimate:
        name, args = tree.name, tree.args
        if tree.target is None and name == "has":
            return Estimate(self.of(args[0].operand, scope).cost if isinstance(args[0], syntax.Select) else 0, "bool", Size(1, 1))
        count = VARIABLES.get((name, len(args))) if tree.target is not None else None
        if count is not None and all(isinstance(each, syntax.Ident) for each in args[:count]):
            return self._comprehension(tree, count, scope)
        if tree.target is not None and name in ("optMap", "optFlatMap") and isinstance(args[0], syntax.Ident):
            held = self.of(tree.target, scope)
            body = self.of(args[-1], {**scope, args[0].name: Estimate(1)})
            bound = _plus(_LIST, held.cost, 1, body.cost)
            return Estimate(_plus(held.cost, 1, bound, 1 if name == "optMap" else 0), "optional_type")
        if isinstance(tree.target, syntax.Ident) and tree.target.name not in scope:
            if (tree.target.name, name) == ("cel", "bind") and len(args) == 3 and isinstance(args[0], syntax.Ident):
                bound_to = self.of(args[1], scope)
                made = self.of(args[2], {**scope, args[0].name: bound_to})
                return made._replace(cost=_plus(_LIST, bound_to.cost, made.cost))
            name = f"{tree.target.name}.{name}"
            return self._function(name, None, [self.of(each, scope) for each in args])
        target = None if tree.target is None else self.of(tree.target, scope)
        return self._function(name, target, [self.of(each, scope) for each in args])

    # --- macros ---------------------------------------------------------------------------------------------------------

    def _comprehension(self, tree: syntax.Call, count: int, scope: Scope) -> Estimate:
        source = self.of(tree.target, scope)
        names = [each.name for each in tree.args[:count]]
        key: Decl | Estimate = KEY if source.kind == "map" else Estimate(1, "int", Size(1, 1))
        value = self._entry(source, 1)
        bound = (key, value) if count == 2 else (key if source.kind == "map" else value,)
        inside = {**scope, **dict(zip(names, bound, strict=True))}
        made = [self.of(each, inside) for each in tree.args[count:]]
        step, fixed = _steps(tree.name, made)
        cost = _plus(source.cost, fixed, _times(source.known.high, step))
        if tree.name in ("map", "transformList", "filter"):
            first = bound[0]
            item = made[-1].kind if tree.name != "filter" else first.kind
            inner = Size(0, made[-1].known.high) if tree.name != "filter" else None
            return Estimate(cost, "list", source.known, None, item, inner)
        if tree.name in ("transformMap", "transformMapEntry"):
            return Estimate(cost, "map", source.known, None, made[-1].kind)
        return Estimate(cost, "bool", Size(1, 1))

    # --- functions ------------------------------------------------------------------------------------------------------

    def _function(self, name: str, target: Estimate | None, args: list[Estimate]) -> Estimate:
        spent = _plus(target.cost if target is not None else 0, *(each.cost for each in args))
        made = _operator(name, args) if target is None else _method(name, target, args)
        if made is None:
            made = _library(name, target, args)
        own, size, item = made
        kind = _kind_of(name, target, args)
        if kind in _SCALARS and size is None:
            size = Size(1, 1)
        if name == "?:":
            spent = _plus(args[0].cost, max(args[1].cost, args[2].cost))
        return Estimate(_plus(spent, own), kind, size, None, item)


def _literal(value: Any) -> Estimate:
    kind = "null" if value is None else name_of(value)
    count = len(value) if isinstance(value, str | bytes) else 1
    return Estimate(0, kind, Size(count, count))


def _at(declaration: Decl, cost: int, kind: str = "") -> Estimate:
    """A value at a place of the schema."""
    if declaration is _LOST:
        return Estimate(cost, kind or "dyn", Size(1, 1) if kind in _SCALARS else None, _LOST)
    return Estimate(
        cost, declaration.kind, Size(0, declaration.elements), declaration, declaration.item.kind if declaration.item else "dyn"
    )


def _steps(name: str, made: list[Estimate]) -> tuple[int, int]:
    """Return the cost of a round of a macro, and the cost besides."""
    first = made[0].cost
    match name:
        case "all":
            return _plus(first, 3), 1
        case "exists":
            return _plus(first, 4), 1
        case "exists_one" | "existsOne":
            return _plus(first, 2), 2
        case "filter":
            return _plus(first, 13), _LIST + 1
        case "transformMap" | "transformMapEntry":
            insert = _plus(made[-1].cost, 3 if name == "transformMap" else 2)
            return (insert if len(made) == 1 else _plus(first, max(insert, 1))), _MAP + 1
    grow = _plus(made[-1].cost, _LIST + 2)
    return (grow if len(made) == 1 else _plus(first, max(grow, 1))), _LIST + 1


Own = tuple[int, Size | None, str]


def _operator(name: str, args: list[Estimate]) -> Own | None:
    if name in ("||", "&&"):
        return 0, None, "dyn"
    if name == "?:":
        low, high = zip(args[1].known, args[2].known, strict=True)
        return 0, Size(min(low), max(high)), args[1].item
    if name in ("==", "!="):
        opaque = args[0].kind == args[1].kind and args[0].kind.startswith(("kubernetes.", "net."))
        return 1 if opaque and name == "==" else _smaller(args), None, "dyn"
    if name in ("<", "<=", ">", ">="):
        kinds = {each.kind for each in args}
        if kinds <= _SCALARS:
            return 1, None, "dyn"
        return (_smaller(args) if kinds & {"string", "bytes"} else max(1, _smaller(args))), None, "dyn"
    if name == "+" and not {each.kind for each in args} & _SCALARS:
        size = Size(_plus(args[0].known.low, args[1].known.low), _plus(args[0].known.high, args[1].known.high))
        if "list" in (args[0].kind, args[1].kind):
            return 1, size, args[0].item
        return _factor(size.high, _TEXT), size, "dyn"
    if name == "in":
        return (1 if args[1].kind == "map" else args[1].known.high), None, "dyn"
    return None


def _smaller(args: list[Estimate]) -> int:
    return _factor(min(each.known.high for each in args), _TEXT)


def _method(name: str, target: Estimate, args: list[Estimate]) -> Own | None:
    size = target.known.high
    if name == "format":
        return _factor(size, _TEXT), None, "dyn"
    if name in ("startsWith", "endsWith") and args:
        return _factor(args[0].known.high, _TEXT), None, "dyn"
    if name in ("matches", "find", "findAll") and args:
        cost = _times(_factor(_plus(size, 1), _TEXT), _factor(args[0].known.high, _PATTERN))
        return cost, None if name == "matches" else Size(0, size), "string" if name == "findAll" else "dyn"
    if name == "contains" and args:
        return _times(_factor(size, _TEXT), _factor(args[0].known.high, _TEXT)), None, "dyn"
    if name in ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"):
        return _walk(target), None, "dyn"
    if name in ("lowerAscii", "upperAscii", "substring", "trim"):
        return _factor(size, _TEXT), target.known, "dyn"
    if name == "replace" and len(args) >= 2:
        return _factor(size, 2 * _TEXT), _replaced(target.known, args[0].known, args[1].known), "dyn"
    if name == "split":
        return _factor(size, 2 * _TEXT), Size(0, size), "string"
    if name == "join":
        return _joined(target, args)
    if name in ("containsIP", "containsCIDR") and args:
        base = 4 if name == "containsIP" else 7
        text = args[0].kind in ("string", "dyn")
        return _plus(base, _factor(args[0].known.high, _TEXT) if text else 0), None, "dyn"
    if name == "validate" and args:
        return _factor(_factor(args[0].known.high, _TEXT), _FORMAT_PATTERN * _PATTERN), None, "dyn"
    return None


def _walk(target: Estimate) -> int:
    """The estimate reads every entry of a list, and texts to their end."""
    if target.kind != "list":
        return _factor(target.known.high, _TEXT)
    each = 1
    if target.item in ("string", "bytes"):
        each = _plus(1, _factor(_item_size(target), _TEXT))
    return _times(target.known.high, each)


def _item_size(target: Estimate) -> int:
    place = target.place.item if target.place is not None else None
    return MOST if place is None else place.elements


def _joined(target: Estimate, args: list[Estimate]) -> Own:
    count = target.known.high
    size = _times(count, _item_size(target))
    if args:
        size = _plus(size, _times(args[0].known.high, max(0, count - 1)))
    return _factor(size, _TEXT), Size(0, size), "dyn"


def _replaced(text: Size, old: Size, new: Size) -> Size:
    """Return the largest size of a text when parts of it are replaced."""
    if old.low == 0:
        return Size(0, _plus(_times(_plus(text.high, 1), new.high), text.high))
    if new.high <= old.low:
        return Size(0, text.high)
    return Size(0, _times(math.ceil(text.high / old.low), new.high))


_OPAQUE = {
    "semver": "kubernetes.Semver",
    "quantity": "kubernetes.Quantity",
    "url": "kubernetes.URL",
    "ip": "net.IP",
    "cidr": "net.CIDR",
}
_PARSED = frozenset(("cidr", "ip", "isIP", "isCIDR", "url", "quantity", "isQuantity", "semver", "isSemver"))


def _library(name: str, target: Estimate | None, args: list[Estimate]) -> Own:
    if target is None and args:
        size = args[0].known
        if name in _PARSED:
            return _factor(size.high, _TEXT), size if name == "url" else None, "dyn"
        if name == "ip.isCanonical":
            return _factor(size.high, 2 * _TEXT), None, "dyn"
        if name == "bytes" and args[0].kind in ("string", "dyn"):
            return max(1, _factor(size.high, _TEXT)), Size(size.low, _times(size.high, 4)), "dyn"
        if name == "string" and args[0].kind in ("bytes", "dyn"):
            return max(1, _factor(size.high, _TEXT)), size, "dyn"
        if name == "dyn":
            return 1, args[0].size, args[0].item
    return 1, None, "dyn"


def _kind_of(name: str, target: Estimate | None, args: list[Estimate]) -> str:
    if name == "?:":
        return args[1].kind if args[1].kind == args[2].kind else "dyn"
    if target is None and name in ("+", "-", "*", "/", "%", "neg") and args:
        return args[0].kind if all(each.kind == args[0].kind for each in args) else "dyn"
    if target is not None and name in ("sum", "min", "max"):
        return target.item
    if target is None and name in _OPAQUE:
        return _OPAQUE[name]
    known = (functions.GLOBAL if target is None else functions.METHODS).get(name)
    if known is not None and known.result:
        return known.result
    return "bool" if name in ("||", "&&", "!") else "dyn"
