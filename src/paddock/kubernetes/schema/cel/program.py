"""Makes a function of an expression: a tree of closures over a frame, with a budget.

A frame is a list: the budget, then the variables, then the variables of macros; where each stands is settled when the expression
is compiled. What an expression costs is known without counting every step: a comprehension pays the size of its body in each
round, a function that walks a text or a list pays its length, one that compares values pays for what stands inside of them, and
nothing else can repeat.
"""

from collections.abc import Callable
from typing import Any

from paddock.kubernetes.schema.cel import functions, syntax
from paddock.kubernetes.schema.cel.comprehensions import MACROS, Code, Frame, Macro, rounds_over, truth
from paddock.kubernetes.schema.cel.errors import BadExpression, EvaluationError, OutOfBudget
from paddock.kubernetes.schema.cel.functions.function import Function
from paddock.kubernetes.schema.cel.values import NONE, TYPES, Message, Optional, has_key, name_of

# Nobody writes a rule that needs more, and the closures are called inside one another.
RULE_LIMIT = 1_000_000
# Whether messages of a type may be made.
Types = Callable[[str], bool]


def _none(name: str) -> bool:
    return False


_UNESCAPED = {"__underscores__": "__", "__dot__": ".", "__dash__": "-", "__slash__": "/"}


class CostMeter:
    """The rest of the budget."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, cost: int) -> None:
        """Pay; raises `OutOfBudget` when there is not enough."""
        self.left -= cost
        if self.left < 0:
            raise OutOfBudget


class CompiledExpression:
    """A compiled expression. The values of `late` variables are functions of the budget, called where the variable is used.

    `types` says of which types an expression may make messages.
    """

    def __init__(self, tree: syntax.Expr, variables: tuple[str, ...], late: frozenset[str] = frozenset(), types: Types = _none) -> None:
        compiler = _Compiler({name: index + 1 for index, name in enumerate(variables)}, late, types)
        self.tree = tree
        self._code, self._cost = compiler.make(tree)
        self._slots = compiler.slots

    def run(self, values: tuple[Any, ...], budget: CostMeter) -> Any:
        """The value for these variables; raises `EvaluationError` or `OutOfBudget`."""
        budget.spend(self._cost)
        frame = [budget, *values, *[None] * (self._slots - len(values))]
        try:
            return self._code(frame)
        except RecursionError:
            raise OutOfBudget from None


def unescape(name: str) -> str:
    """A property as the schema has it: names that are no identifiers are written with words between underscores."""
    if "__" not in name:
        return name
    if name.startswith("__") and name.endswith("__") and name not in _UNESCAPED and name.count("__") == 2:
        return name[2:-2]
    made, at = "", 0
    while at < len(name):
        word = next((each for each in _UNESCAPED if name.startswith(each, at)), "")
        made += _UNESCAPED[word] if word else name[at]
        at += len(word) or 1
    return made


def uses(tree: Any, name: str) -> bool:
    """Return whether an expression uses a variable anywhere."""
    match tree:
        case syntax.Ident():
            return tree.name == name
        case syntax.Select():
            return uses(tree.operand, name)
        case syntax.Index():
            return uses(tree.operand, name) or uses(tree.key, name)
        case syntax.Call():
            return (tree.target is not None and uses(tree.target, name)) or any(uses(each, name) for each in tree.args)
        case syntax.MakeList():
            return any(uses(each, name) for each in tree.entries)
        case syntax.MakeMap():
            return any(uses(key, name) or uses(value, name) for key, value in tree.entries)
        case syntax.MakeMessage():
            return any(uses(value, name) for _, value, _ in tree.fields)
    return False


class _Compiler:
    """Each maker returns the code of an expression and what one run of it costs."""

    def __init__(self, scope: dict[str, int], late: frozenset[str], types: Types) -> None:
        self._scope = scope
        self._late = late
        self._types = types
        self.slots = len(scope)

    def make(self, tree: Any) -> tuple[Code, int]:
        match tree:
            case syntax.Literal():
                value = tree.value
                return lambda frame: value, 0
            case syntax.Ident():
                return self._ident(tree)
            case syntax.Select():
                return self._select(tree)
            case syntax.Index():
                return self._index(tree)
            case syntax.MakeList():
                return self._list(tree)
            case syntax.MakeMap():
                return self._map(tree)
            case syntax.MakeMessage():
                return self._message(tree)
            case syntax.Call():
                return self._call(tree)
        raise AssertionError(tree)

    def _ident(self, tree: syntax.Ident) -> tuple[Code, int]:
        slot = self._scope.get(tree.name)
        if slot is not None:
            if tree.name in self._late:
                return lambda frame: frame[slot](frame[0]), 1
            return lambda frame: frame[slot], 1
        if tree.name in TYPES:
            named = TYPES[tree.name]
            return lambda frame: named, 0
        raise BadExpression(f"undeclared reference to '{tree.name}' (in container '')", tree.at)

    def _select(self, tree: syntax.Select) -> tuple[Code, int]:
        operand, cost = self.make(tree.operand)
        name, other = tree.field, unescape(tree.field)
        if tree.optional:
            return lambda frame: _optional_field(operand(frame), name, other), cost + 1

        def select(frame: Frame) -> Any:
            value = operand(frame)
            if type(value) is dict:
                if name in value:
                    return value[name]
                if other in value:
                    return value[other]
                raise EvaluationError(f"no such key: {name}")
            if isinstance(value, Optional):
                return _optional_field(value, name, other)
            if isinstance(value, Message):
                return value.get(other)
            if value is None:
                raise EvaluationError(f"no such key: {name}")
            raise EvaluationError(f"no such overload: {name_of(value)}.{name}")

        return select, cost + 1

    def _index(self, tree: syntax.Index) -> tuple[Code, int]:
        operand, cost = self.make(tree.operand)
        key, key_cost = self.make(tree.key)
        if tree.optional:
            return lambda frame: _optional_index(operand(frame), key(frame)), cost + key_cost + 1
        return lambda frame: _at(operand(frame), key(frame)), cost + key_cost + 1

    def _list(self, tree: syntax.MakeList) -> tuple[Code, int]:
        made = [self.make(each) for each in tree.entries]
        codes = [(code, optional) for (code, _), optional in zip(made, tree.optional, strict=True)]
        cost = 10 + sum(each for _, each in made)
        if not any(tree.optional):
            return lambda frame: [code(frame) for code, _ in codes], cost

        def build(frame: Frame) -> list[Any]:
            found = []
            for code, optional in codes:
                value = code(frame)
                if not optional:
                    found.append(value)
                elif _need_optional(value).there:
                    found.append(value.value)
            return found

        return build, cost

    def _map(self, tree: syntax.MakeMap) -> tuple[Code, int]:
        made = [(self.make(key), self.make(value)) for key, value in tree.entries]
        codes = [(key[0], value[0], optional) for (key, value), optional in zip(made, tree.optional, strict=True)]
        cost = 30 + sum(key[1] + value[1] for key, value in made)

        def build(frame: Frame) -> dict[Any, Any]:
            found: dict[Any, Any] = {}
            for key_code, value_code, optional in codes:
                key, value = key_code(frame), value_code(frame)
                if optional:
                    if not _need_optional(value).there:
                        continue
                    value = value.value
                if has_key(found, key):
                    raise EvaluationError("insert failed: key already exists")
                found[key] = value
            return found

        return build, cost

    def _message(self, tree: syntax.MakeMessage) -> tuple[Code, int]:
        if not self._types(tree.name):
            raise BadExpression(f"undeclared reference to '{tree.name}' (in container '')", tree.at)
        made = [(unescape(name), self.make(value)) for name, value, _ in tree.fields]
        codes = [(name, code, optional) for (name, (code, _)), optional in zip(made, tree.optional, strict=True)]

        def build(frame: Frame) -> Message:
            found = Message(tree.name, {})
            for name, code, optional in codes:
                value = code(frame)
                if not optional:
                    found[name] = value
                elif _need_optional(value).there:
                    found[name] = value.value
            return found

        return build, 40 + sum(cost for _, (_, cost) in made)

    # --- calls ------------------------------------------------------------------------------------------------------------

    def _call(self, tree: syntax.Call) -> tuple[Code, int]:
        if tree.target is None and tree.name in _LOGIC:
            return _LOGIC[tree.name](*(self.make(each) for each in tree.args))
        if tree.target is None and tree.name == "has":
            return self._has(tree)
        macro = MACROS.get((tree.name, len(tree.args))) if tree.target is not None else None
        if macro is not None and all(isinstance(each, syntax.Ident) for each in tree.args[: macro[0]]):
            return self._comprehension(tree, *macro)
        if tree.target is not None and tree.name in ("optMap", "optFlatMap") and len(tree.args) == 2:
            return self._opt_map(tree)
        if isinstance(tree.target, syntax.Ident) and tree.target.name not in self._scope:
            name = f"{tree.target.name}.{tree.name}"
            if name == "cel.bind" and len(tree.args) == 3 and isinstance(tree.args[0], syntax.Ident):
                return self._bind(tree)
            if name in functions.GLOBAL:
                return self._plain(functions.GLOBAL[name], tree.args, name)
        return self._function(tree)

    def _function(self, tree: syntax.Call) -> tuple[Code, int]:
        table = functions.GLOBAL if tree.target is None else functions.METHODS
        found = table.get(tree.name)
        if found is None:
            raise BadExpression(f"undeclared reference to '{tree.name}' (in container '')", tree.at)
        args = tree.args if tree.target is None else (tree.target, *tree.args)
        if not found.least <= len(args) <= found.most:
            raise BadExpression(f"found no matching overload for '{tree.name}' applied to {len(args)} arguments", tree.at)
        return self._plain(found, args, tree.name)

    def _plain(self, function: Function, args: tuple[Any, ...], name: str) -> tuple[Code, int]:
        if not function.least <= len(args) <= function.most:
            raise BadExpression(f"found no matching overload for '{name}' applied to {len(args)} arguments")
        made = [self.make(each) for each in args]
        cost = 1 + sum(each for _, each in made)
        codes, run = [code for code, _ in made], function.run
        if len(codes) == 1:
            only = codes[0]
            return lambda frame: run(frame[0], only(frame)), cost
        if len(codes) == 2:
            first, second = codes
            return lambda frame: run(frame[0], first(frame), second(frame)), cost
        return lambda frame: run(frame[0], *[code(frame) for code in codes]), cost

    def _has(self, tree: syntax.Call) -> tuple[Code, int]:
        if len(tree.args) != 1 or not isinstance(tree.args[0], syntax.Select):
            raise BadExpression("invalid argument to has() macro", tree.at)
        operand, cost = self.make(tree.args[0].operand)
        name, other = tree.args[0].field, unescape(tree.args[0].field)

        def has(frame: Frame) -> bool:
            value = operand(frame)
            if isinstance(value, Optional):
                value = value.value
                if value is None:
                    return False
            if not isinstance(value, dict):
                raise EvaluationError(f"no such overload: {name_of(value)}.{name}")
            return name in value or other in value

        return has, cost + 1

    def _variable(self, name: str) -> int:
        self.slots += 1
        self._scope[name] = self.slots
        return self.slots

    def _inside(self, names: list[str], trees: tuple[Any, ...]) -> tuple[list[int], list[tuple[Code, int]]]:
        """Codes of expressions that see further variables."""
        outer = dict(self._scope)
        slots = [self._variable(name) for name in names]
        made = [self.make(each) for each in trees]
        self._scope = outer
        return slots, made

    def _comprehension(self, tree: syntax.Call, variables: int, make: Macro) -> tuple[Code, int]:
        names = [each.name for each in tree.args[:variables]]
        source, cost = self.make(tree.target)
        slots, made = self._inside(names, tree.args[variables:])
        body = 2 + sum(each for _, each in made)
        rounds = rounds_over(source, slots, body)
        return make(rounds, [code for code, _ in made]), cost + 1

    def _bind(self, tree: syntax.Call) -> tuple[Code, int]:
        value, cost = self.make(tree.args[1])
        (slot,), ((body, body_cost),) = self._inside([tree.args[0].name], (tree.args[2],))

        def bind(frame: Frame) -> Any:
            frame[slot] = value(frame)
            return body(frame)

        return bind, cost + body_cost + 1

    def _opt_map(self, tree: syntax.Call) -> tuple[Code, int]:
        if not isinstance(tree.args[0], syntax.Ident):
            raise BadExpression(f"{tree.name}() variable name must be a simple identifier", tree.at)
        target, cost = self.make(tree.target)
        (slot,), ((body, body_cost),) = self._inside([tree.args[0].name], (tree.args[1],))
        flat = tree.name == "optFlatMap"

        def opt_map(frame: Frame) -> Any:
            found = _need_optional(target(frame))
            if not found.there:
                return NONE
            frame[slot] = found.value
            value = body(frame)
            return _need_optional(value) if flat else Optional(value, True)

        return opt_map, cost + body_cost + 1


# --- members ------------------------------------------------------------------------------------------------------------------


def _need_optional(value: Any) -> Optional:
    if not isinstance(value, Optional):
        raise EvaluationError(f"no such overload: {name_of(value)} is not optional")
    return value


def _optional_field(value: Any, name: str, other: str) -> Optional:
    if isinstance(value, Optional):
        if not value.there:
            return NONE
        value = value.value
    if not isinstance(value, dict):
        raise EvaluationError(f"no such overload: {name_of(value)}.{name}")
    if name in value:
        return Optional(value[name], True)
    return Optional(value[other], True) if other in value else NONE


def _at(value: Any, key: Any) -> Any:
    if isinstance(value, Optional):
        return _optional_index(value, key)
    if isinstance(value, list):
        if isinstance(key, bool) or not isinstance(key, int | float) or key != int(key):
            raise EvaluationError(f"unsupported index type '{name_of(key)}' in list")
        if not 0 <= key < len(value):
            raise EvaluationError(f"index out of bounds: {key}")
        return value[int(key)]
    if isinstance(value, dict):
        if not has_key(value, key):
            raise EvaluationError(f"no such key: {key}")
        return value[key]
    raise EvaluationError(f"no such overload: {name_of(value)}[{name_of(key)}]")


def _optional_index(value: Any, key: Any) -> Optional:
    if isinstance(value, Optional):
        if not value.there:
            return NONE
        value = value.value
    if isinstance(value, list):
        return Optional(value[key], True) if isinstance(key, int) and 0 <= key < len(value) else NONE
    if isinstance(value, dict):
        return Optional(value[key], True) if has_key(value, key) else NONE
    raise EvaluationError(f"no such overload: {name_of(value)}[{name_of(key)}]")


# --- logic: an error on one side does not matter when the other side decides --------------------------------------------------

Made = tuple[Code, int]


def _either(one: Code, other: Code, deciding: bool) -> Code:
    def logic(frame: Frame) -> bool:
        try:
            if truth(one(frame)) is deciding:
                return deciding
        except EvaluationError:
            if truth(other(frame)) is deciding:
                return deciding
            raise
        return truth(other(frame))

    return logic


def _or(one: Made, other: Made) -> Made:
    return _either(one[0], other[0], True), one[1] + other[1]


def _and(one: Made, other: Made) -> Made:
    return _either(one[0], other[0], False), one[1] + other[1]


def _not(one: Made) -> Made:
    code = one[0]
    return lambda frame: not truth(code(frame)), one[1] + 1


def _choice(test: Made, then: Made, otherwise: Made) -> Made:
    code, yes, no = test[0], then[0], otherwise[0]
    return lambda frame: yes(frame) if truth(code(frame)) else no(frame), test[1] + max(then[1], otherwise[1])


_LOGIC: dict[str, Callable[..., Made]] = {"||": _or, "&&": _and, "!": _not, "?:": _choice}
