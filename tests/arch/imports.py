"""Reads the imports of a module from its text, for rules that import-linter cannot say."""

import ast
from collections.abc import Iterator


def imported_modules(source: str) -> Iterator[str]:
    """Everything that is imported, as far as it can be read: ``from a.b import c`` gives ``a.b.c``.

    Imports inside functions count; modules that are loaded by name at run time do not show.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # The house has no relative imports (ruff's TID would not let them pass unseen).
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
