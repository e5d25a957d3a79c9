"""Reads the imports of a module from its text."""

import ast
from collections.abc import Iterator


def imported_modules(source: str) -> Iterator[str]:
    """Yield every imported name: ``from a.b import c`` gives ``a.b.c``. Imports inside functions count."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
