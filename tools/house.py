"""Measures how easily the house is carried in one's head: ``python -m tools.house`` prints each number beside its limit and its goal.

The drivers are a package of their own, whose lines are counted apart. All of it is VirtRigaud's, so naming a dialect is no fault there.

``tools/house.toml`` has the limits, the goals, and what stands in the way of a goal that is not met. ``tests/arch/test_house.py`` fails for
a number past its limit. ``--write`` tightens limits and never loosens one.
"""

import argparse
import ast
import re
import statistics
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "paddock"
LIMITS = ROOT / "tools" / "house.toml"
DIALECTS = ("stakater", "virtrigaud", "vitistack", "kubermatic")
# Words of the code that stand for many types, and words that the glossary has better ones for.
_WIDE = ("place", "given", "found", "wanted", "look")
_BANNED = frozenset(("teller", "sight", "look", "means", "card", "world", "told", "came", "going", "eyes", "acts"))
_SHORT_TEXT = 4
_SHORT_MODULE = 50
_LIST = 3
_Function = ast.FunctionDef | ast.AsyncFunctionDef
# The modules of a package: path below the source folder -> tree
Trees = Mapping[Path, ast.Module]


@dataclass(frozen=True, slots=True)
class Module:
    """A module with all its nodes."""

    path: Path
    tree: ast.Module
    lines: int
    nodes: tuple[ast.AST, ...]

    @property
    def name(self) -> str:
        parts = self.path.with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def is_of_package(self) -> bool:
        """Whether it is of `paddock`, and not of the drivers."""
        return self.path.parts[0] == PACKAGE

    @property
    def room(self) -> str:
        """The folder right below the package."""
        return self.path.parts[1]

    def functions(self) -> Iterator[_Function]:
        yield from (node for node in self.nodes if isinstance(node, _Function))


def read(folder: Path) -> list[Module]:
    """Return the modules of a source folder, sorted by path."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        found.append(Module(path.relative_to(folder), tree, text.count("\n"), tuple(ast.walk(tree))))
    return found


# --- size -------------------------------------------------------------------------------------------------------------------


def _median(modules: Sequence[Module]) -> int:
    return round(statistics.median(each.lines for each in modules if each.path.name != "__init__.py"))


def _short(modules: Sequence[Module]) -> int:
    return sum(each.lines < _SHORT_MODULE for each in modules if each.path.name != "__init__.py")


# --- arrows -----------------------------------------------------------------------------------------------------------------


def importers(modules: Sequence[Module]) -> dict[str, set[str]]:
    """Return the modules that import each module."""
    known = {each.name for each in modules}
    found: dict[str, set[str]] = {name: set() for name in known}
    for each in modules:
        for node in each.nodes:
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    target = f"{node.module}.{alias.name}"
                    if (used := target if target in known else node.module) in known:
                        found[used].add(each.name)
    return found


def _one_importer(modules: Sequence[Module]) -> int:
    return sum(len(users) == 1 for users in importers(modules).values())


def _one_importer_elsewhere(modules: Sequence[Module]) -> int:
    pairs = ((name, user) for name, users in importers(modules).items() if len(users) == 1 for user in users)
    return sum(_room(name) != _room(user) for name, user in pairs)


def _room(name: str) -> list[str]:
    """The room of a module by its name; the drivers are one."""
    parts = name.split(".")
    return parts[1:2] if parts[0] == PACKAGE else parts[:1]


def _exceptions(modules: Sequence[Module]) -> int:
    return (ROOT / ".importlinter").read_text(encoding="utf-8").count(" -> ")


# --- dialects ---------------------------------------------------------------------------------------------------------------


def naming(modules: Sequence[Module], dialect: str) -> Iterator[Path]:
    """Yield the modules outside the folders of a dialect whose names or texts have its name; docstrings and comments do not count."""
    for each in modules:
        if not each.is_of_package or dialect in each.path.parts or each.path.stem == dialect:
            continue
        texts = {id(node.value) for node in each.nodes if isinstance(node, ast.Expr)}
        words = (
            node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts
            else node.id if isinstance(node, ast.Name)
            else node.attr if isinstance(node, ast.Attribute)
            else f"{node.module}.{'.'.join(alias.name for alias in node.names)}" if isinstance(node, ast.ImportFrom)
            else ""
            for node in each.nodes
        )  # fmt: skip
        if any(dialect in word.lower() for word in words):
            yield each.path


def _naming(modules: Sequence[Module], dialect: str) -> int:
    return len(list(naming(modules, dialect)))


def _lists_of_dialects(modules: Sequence[Module]) -> int:
    """Collections that name most of the dialects."""
    count = 0
    for each in modules:
        for node in each.nodes:
            members = node.keys if isinstance(node, ast.Dict) else node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else ()
            names = {member.value for member in members if isinstance(member, ast.Constant)}
            count += len(names & set(DIALECTS)) >= _LIST
    return count


# --- code -------------------------------------------------------------------------------------------------------------------


def _forwards(function: _Function) -> bool:
    """Return whether a function only calls another one with its own parameters."""
    body = [each for each in function.body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
    if len(body) != 1 or not isinstance(body[0], ast.Return | ast.Expr):
        return False
    value = body[0].value
    call = value.value if isinstance(value, ast.Await) else value
    if not isinstance(call, ast.Call) or not call.args:
        return False
    names = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)}
    given = (*call.args, *(each.value for each in call.keywords))
    return all(isinstance(each, ast.Name) and each.id in names for each in given)


def _forwarding(modules: Sequence[Module]) -> int:
    return sum(_forwards(each) for module in modules for each in module.functions())


def _classes(modules: Sequence[Module]) -> int:
    return sum(isinstance(node, ast.ClassDef) for each in modules for node in each.nodes)


def _asserts(modules: Sequence[Module]) -> int:
    tests = (node.test for each in modules for node in each.nodes if isinstance(node, ast.Assert))
    return sum(isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.IsNot) for test in tests)


def _late_imports(modules: Sequence[Module]) -> int:
    kinds = ast.Import | ast.ImportFrom
    return sum(isinstance(node, kinds) for each in modules for function in each.functions() for node in function.body)


def _data_types(modules: Sequence[Module]) -> int:
    return sum(isinstance(node, ast.Assign) and ast.unparse(node) == "Data = dict[str, Any]" for each in modules for node in each.tree.body)


def _targets(modules: Sequence[Module]) -> int:
    return sum(
        isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id in ("plain", "Target")
        for each in modules
        for node in each.tree.body
    )


def _frameless(modules: Sequence[Module]) -> int:
    """Reconcilers that read, remember and put on finalizers by themselves."""
    return sum(each.name == "reconcile" for module in modules if "controllers" in module.path.parts for each in module.functions())


def _owner(modules: Sequence[Module]) -> int:
    owner = next(node for each in modules for node in each.tree.body if isinstance(node, ast.ClassDef) and node.name == "MachineOwner")
    nodes = (node for node in ast.walk(owner) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))
    return len({node.attr for node in nodes if isinstance(node.value, ast.Name) and node.value.id == "self"})


# --- words ------------------------------------------------------------------------------------------------------------------


def types_of(modules: Sequence[Module], word: str) -> set[str]:
    """Return the annotations of the parameters of a name."""
    found = set()
    for module in modules:
        for each in module.functions():
            arguments = (*each.args.posonlyargs, *each.args.args, *each.args.kwonlyargs)
            found |= {ast.unparse(arg.annotation) for arg in arguments if arg.arg == word and arg.annotation is not None}
    return found


def _types(modules: Sequence[Module], word: str) -> int:
    return len(types_of(modules, word))


def banned(modules: Sequence[Module]) -> Iterator[tuple[Path, str]]:
    """Yield the identifiers for which the glossary has better words, with their modules."""
    for each in modules:
        yield from ((each.path, name) for node in each.nodes for name in _identifiers(node) if name.strip("_") in _BANNED)


def _identifiers(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)) | ast.alias(asname=str(name)):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name) | ast.alias(name=name):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name


def _short_texts(modules: Sequence[Module]) -> int:
    kinds = (ast.Module, ast.ClassDef, *_Function.__args__)
    texts = (ast.get_docstring(node) or "" for each in modules for node in each.nodes if isinstance(node, kinds))
    return sum(0 < len(re.findall(r"\S+", text)) <= _SHORT_TEXT for text in texts)


# --- tests ------------------------------------------------------------------------------------------------------------------


def nested_coroutines(tree: ast.Module) -> Iterator[str]:
    """Yield the tests that hold a coroutine and are none themselves."""
    tests = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))
    yield from (each.name for each in tests if any(isinstance(node, ast.AsyncFunctionDef) for node in ast.walk(each)))


def _nested_coroutines(folder: Path) -> int:
    texts = (path.read_text(encoding="utf-8") for path in folder.rglob("test_*.py"))
    return sum(len(list(nested_coroutines(ast.parse(text)))) for text in texts if " async def " in text)


def _loose_modules(folder: Path) -> int:
    return sum(path.name != "conftest.py" for path in folder.glob("*.py"))


# --- the table --------------------------------------------------------------------------------------------------------------

MEASURES: Mapping[str, Callable[[Sequence[Module]], int]] = {
    "lines of the package": lambda modules: sum(each.lines for each in modules if each.is_of_package),
    "lines of the drivers": lambda modules: sum(each.lines for each in modules if not each.is_of_package),
    "modules": lambda modules: sum(each.is_of_package for each in modules),
    "median lines of a module": _median,
    "modules below 50 lines": _short,
    "top rooms": lambda modules: len({each.room for each in modules if each.is_of_package and len(each.path.parts) > 2}),
    "exceptions of import contracts": _exceptions,
    **{f"modules outside that name {name}": partial(_naming, dialect=name) for name in DIALECTS},
    "lists of dialects": _lists_of_dialects,
    "modules with one importer": _one_importer,
    "modules that one module of another room imports": _one_importer_elsewhere,
    "functions that only forward": _forwarding,
    "classes": _classes,
    "assertions that something is not None": _asserts,
    "imports in functions": _late_imports,
    "declarations of Data": _data_types,
    "targets of kinds in modules": _targets,
    "reconcilers without the frame": _frameless,
    "attributes of MachineOwner": _owner,
    **{f"types of `{word}`": partial(_types, word=word) for word in _WIDE},
    "banned words as identifiers": lambda modules: sum(1 for _ in banned(modules)),
    "docstrings of four words or fewer": _short_texts,
}
TESTS: Mapping[str, Callable[[Path], int]] = {
    "nested coroutines in tests": _nested_coroutines,
    "loose modules at the top of tests": _loose_modules,
}
# More is better.
RISING = frozenset({"median lines of a module"})
# Features make it larger; it is shown, and has no limit.
FREE = frozenset({"lines of the package", "lines of the drivers", "modules", "classes"})
# What changes only by a decision. The others have room for features that are under way.
EXACT = frozenset(
    {
        "top rooms",
        "exceptions of import contracts",
        "lists of dialects",
        "reconcilers without the frame",
        "attributes of MachineOwner",
        "loose modules at the top of tests",
        "banned words as identifiers",
    }
)


@dataclass(frozen=True, slots=True)
class Limit:
    """What is allowed, what is wanted, and why it is not so."""

    limit: int
    goal: int
    why: str = ""


def limits() -> dict[str, Limit]:
    """Return the limits by measure."""
    return {name: Limit(**row) for name, row in tomllib.loads(LIMITS.read_text(encoding="utf-8")).items()}


def measured(modules: Sequence[Module], tests: Path) -> dict[str, int]:
    """Return every number."""
    return {name: measure(modules) for name, measure in MEASURES.items()} | {name: measure(tests) for name, measure in TESTS.items()}


def is_past(name: str, number: int, limit: int) -> bool:
    """Return whether a number is worse than a limit."""
    return number < limit if name in RISING else number > limit


def page(numbers: Mapping[str, int], known: Mapping[str, Limit]) -> Iterator[str]:
    """Yield the table in Markdown, and below it what stands in the way of goals."""
    yield from ("| | now | limit | goal |", "| --- | ---: | ---: | ---: |")
    yield from (
        f"| {name} | {number} | {'' if name in FREE else known[name].limit} | {known[name].goal} |" for name, number in numbers.items()
    )
    yield ""
    yield from (f"- {name}: {known[name].why}" for name, number in numbers.items() if is_past(name, number, known[name].goal))


def tightened(numbers: Mapping[str, int], known: Mapping[str, Limit]) -> Iterator[str]:
    """Yield the lines of the file with limits that follow the numbers, where these are better."""
    for name, number in numbers.items():
        old = known[name]
        room = 0 if name in EXACT else 1 + number // 50
        wanted = number - room if name in RISING else number + room
        limit = wanted if is_past(name, old.limit, wanted) else old.limit
        # A goal that is met has nothing in its way.
        why = old.why if name in FREE or is_past(name, limit, old.goal) else ""
        yield f"[{_quoted(name)}]\nlimit = {limit}\ngoal = {old.goal}\n" + (f"why = {_quoted(why)}\n" if why else "")


def _quoted(text: str) -> str:
    return f"'{text}'" if '"' in text else f'"{text}"'


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, or tighten the limits."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.house", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write better limits into tools/house.toml")
    options = parser.parse_args(arguments)
    numbers, known = measured(read(ROOT / "src"), ROOT / "tests"), limits()
    if options.write:
        heading = LIMITS.read_text(encoding="utf-8").split("[", 1)[0]
        LIMITS.write_text(heading + "\n".join(tightened(numbers, known)), encoding="utf-8")
    print("\n".join(page(numbers, known)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
