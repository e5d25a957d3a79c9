"""Holds every Python file to the house's sizes: modules of 500 lines, functions of 50 lines and 6 parameters.

What is larger needs a line with its reason in ``tools/size-exceptions.toml``; a line that is no longer needed is an error,
too. ``python tools/sizes.py`` prints what is wrong and is part of ``make lint``.
"""

import ast
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "tests", "tools")

MODULE_LINES = 500
FUNCTION_LINES = 50
PARAMETERS = 6

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")


@dataclass(frozen=True, slots=True)
class Excess:
    """One thing over its limit. ``name`` is the path, for a function followed by ``::`` and its qualified name."""

    name: str
    what: str


def measure(source: str, path: str) -> Iterator[Excess]:
    lines = len(source.splitlines())
    if lines > MODULE_LINES:
        yield Excess(path, f"{lines} lines, limit {MODULE_LINES}")
    for name, function in _functions(ast.parse(source, path)):
        length = (function.end_lineno or function.lineno) - function.lineno + 1
        if length > FUNCTION_LINES:
            yield Excess(f"{path}::{name}", f"{length} lines, limit {FUNCTION_LINES}")
        if (count := _parameters(function)) > PARAMETERS:
            yield Excess(f"{path}::{name}", f"{count} parameters, limit {PARAMETERS}")


def judge(excesses: Iterable[Excess], reasons: Mapping[str, str]) -> list[str]:
    """The complaints: what is too large without a reason, and reasons without anything too large."""
    found = list(excesses)
    names = {excess.name for excess in found}
    complaints = [f"{excess.name}: {excess.what}" for excess in found if not reasons.get(excess.name, "").strip()]
    complaints += [f"{name}: is within the limits; take its exception out" for name in reasons if name not in names]
    return complaints


def measure_tree(root: Path) -> Iterator[Excess]:
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            yield from measure(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())


def read_reasons(root: Path) -> dict[str, str]:
    table = tomllib.loads((root / "tools" / "size-exceptions.toml").read_text(encoding="utf-8"))
    return {str(name): str(reason) for name, reason in table["reasons"].items()}


def _functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, _Function]]:
    """Yield the functions below a node. Only statements contain them, so expressions, most of a tree, are skipped."""
    for child in (each for block in _BLOCKS for each in getattr(node, block, ())):
        if isinstance(child, _Function):
            yield prefix + child.name, child
        if isinstance(child, _Function | ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        else:
            yield from _functions(child, prefix)


def _parameters(function: _Function) -> int:
    """All parameters that a caller gives; the object or class itself is none."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    if named and named[0].arg in ("self", "cls"):
        named = named[1:]
    return len(named)


def main() -> int:
    complaints = judge(measure_tree(ROOT), read_reasons(ROOT))
    for complaint in complaints:
        print(f"sizes: {complaint}")
    if complaints:
        print("sizes: split it, or give the reason in tools/size-exceptions.toml")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
