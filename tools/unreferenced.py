"""Finds what nothing refers to: modules, functions, classes, constants and methods of the package that neither it nor a tool uses.

A test is no user: what only tests call is found, too. A name counts as used when it is imported, read from its module or named in a text
(`module:name`), and a method when any attribute of its name is read; so a method that shares its name with a used one is not found.
``python -m tools.unreferenced`` prints what it finds; ``tests/arch/test_references.py`` holds the package to it.
"""

import ast
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A member that an object of the package has because a library, a protocol or a table calls it by name.
_CALLED_BY_LIBRARIES = frozenset(
    [
        *("buffer_updated", "datagram_received", "error_received", "get_buffer", "pause_writing", "resume_writing"),  # asyncio
        *("on_body", "on_header", "on_headers_complete", "on_message_begin", "on_message_complete", "on_status", "on_url"),  # httptools
        *("_fill_text", "print_help"),  # argparse
        "emit",  # logging
        "ignore_aliases",  # PyYAML
        "get_host_info",  # the rows of paddock.contract.methods, as every call of a driver
    ]
)
_PATH = re.compile(r"paddock(?:_drivers)?(\.\w+)+(:\w+)?")
_PREFIX = re.compile(r"(paddock(?:_drivers)?(?:\.\w+)+)\.")
_ANNOTATION = re.compile(r"[A-Z]\w*(\[.*\])?( \| .*)?|\w+(\.\w+)+|\w+\[.*\]")
_NAME = re.compile(r"[A-Za-z_]\w*")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Definition:
    """Something that a module defines; `name` is empty for the module itself, and `Class.method` for a method."""

    module: str
    name: str = ""
    # read elsewhere in its own module
    is_used_at_home: bool = False

    def __str__(self) -> str:
        return f"{self.module}:{self.name}" if self.name else self.module


@dataclass(slots=True)
class References:
    """All that a set of modules refers to."""

    modules: set[str] = field(default_factory=set)
    # modules that stand as values somewhere, or in a text: any attribute may be one of theirs
    values: set[str] = field(default_factory=set)
    # packages whose members are loaded by a name that is put together
    loaded: set[str] = field(default_factory=set)
    names: set[tuple[str, str]] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)

    def covers(self, definition: Definition) -> bool:
        """Return whether anything here refers to the definition."""
        module, name = definition.module, definition.name
        is_value = module in self.values or any(module.startswith(f"{each}.") for each in self.loaded)
        if definition.is_used_at_home:
            return True
        if not name:
            return module in self.modules or is_value
        if "." in name:
            return name.partition(".")[2] in self.attributes | _CALLED_BY_LIBRARIES
        return (module, name) in self.names or (is_value and name in self.attributes)


def module_name(path: Path, root: Path) -> str:
    """Return the dotted name of a module."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def definitions(module: str, tree: ast.Module) -> Iterator[Definition]:
    """Yield what a module defines: itself, its names, and the methods of its classes."""
    yield Definition(module)
    reads = [Counter(_reads(statement)) for statement in tree.body]
    total = sum(reads, Counter[str]())
    for statement, inside in zip(tree.body, reads, strict=True):
        for name in _bound(statement):
            if not name.startswith("__"):
                yield Definition(module, name, total[name] > inside[name])
        if isinstance(statement, ast.ClassDef):
            for each in statement.body:
                if isinstance(each, _Function) and not each.name.startswith("__"):
                    yield Definition(module, f"{statement.name}.{each.name}", each.name in inside)


def refer(references: References, tree: ast.Module, modules: Iterable[str]) -> None:
    """Add all that a module refers to."""
    known, nodes = frozenset(modules), list(ast.walk(tree))
    aliases = defaultdict[str, set[str]](set)
    for alias, module in _imports(references, nodes, known):
        aliases[alias].add(module)
    bases = set[int]()
    for node in nodes:
        if isinstance(node, ast.Attribute):
            if isinstance(node.ctx, ast.Load):
                references.attributes.add(node.attr)
            if (named := aliases.get(_dotted(node.value))) is not None:
                references.names |= {(module, node.attr) for module in named}
                bases.add(id(node.value))
        elif isinstance(node, ast.Name) and node.id in aliases and id(node) not in bases:
            references.values |= aliases[node.id]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            refer_to_text(references, node.value)


def refer_to_text(references: References, text: str) -> None:
    """A text may name a module, a member of one, the package of modules, or an attribute that is looked up by its name."""
    if _PATH.fullmatch(text):
        module, _, name = text.partition(":")
        references.values.add(module)
        references.names.add((module, name))
    elif prefix := _PREFIX.fullmatch(text):
        references.loaded.add(prefix[1])
    elif _NAME.fullmatch(text):
        references.attributes.add(text)


def unreferenced(package: Mapping[str, ast.Module], tools: Iterable[ast.Module], entries: Iterable[str]) -> list[Definition]:
    """Return the definitions of a package that neither it, nor the tools, nor its entry points refer to."""
    references = References()
    for tree in (*package.values(), *tools):
        refer(references, tree, package)
    for name, tree in package.items():
        references.values |= set(_kinds_of(name, tree))
    for entry in entries:
        refer_to_text(references, entry)
    outer = {name.rpartition(".")[0] for name in package}
    found = (each for name, tree in package.items() for each in definitions(name, tree) if not references.covers(each))
    return [each for each in found if each.name or not (each.module in outer or each.module.endswith(".__main__"))]


def _kinds_of(package: str, tree: ast.Module) -> Iterator[str]:
    """Yield the modules of kinds that the value of a dialect names; the catalog loads them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Dialect":
            tables = (each.value for each in node.keywords if each.arg == "kinds" and isinstance(each.value, ast.Dict))
            words = [
                word.value for table in tables for word in table.values if isinstance(word, ast.Constant) and isinstance(word.value, str)
            ]
            yield from (f"{package}{below}.{word}" for word in words for below in ("", ".kinds"))


def _imports(references: References, nodes: Iterable[ast.AST], known: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the names that stand for modules, each with its module."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            references.modules.add(node.module)
            for each in node.names:
                module = f"{node.module}.{each.name}"
                if module in known:
                    references.modules.add(module)
                    yield each.asname or each.name, module
                else:
                    references.names.add((node.module, each.name))
        elif isinstance(node, ast.Import):
            for each in node.names:
                references.modules.add(each.name)
                yield each.asname or each.name, each.name


def _reads(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement reads, in quoted annotations, too. What registers a function has read it."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _ANNOTATION.fullmatch(node.value):
            yield from _NAME.findall(node.value)


def _bound(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            if not any(isinstance(each, ast.Attribute) and each.attr == "register" for each in statement.decorator_list):
                yield statement.name
        case ast.Assign(targets=targets):
            yield from (each.id for each in targets if isinstance(each, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def _dotted(node: ast.expr) -> str:
    """Return `a.b.c` for such an expression, and nothing for any other."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (outer := _dotted(node.value)):
        return f"{outer}.{node.attr}"
    return ""


def entry_points(root: Path) -> list[str]:
    """Return what the commands of the project start."""
    return list(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"].values())


def parsed(path: Path) -> ast.Module:
    """Return the tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


def main() -> int:
    """Print what nothing refers to."""
    package = {module_name(path, ROOT / "src"): parsed(path) for path in sorted((ROOT / "src").rglob("*.py"))}
    found = unreferenced(package, map(parsed, sorted((ROOT / "tools").rglob("*.py"))), entry_points(ROOT))
    for each in found:
        print(each)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
