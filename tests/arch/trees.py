"""The syntax trees of the packages' folders, each parsed once a run."""

import ast
import gc
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "paddock"
DRIVERS = PACKAGE.with_name("paddock_drivers")


@cache
def trees_of(folder: str, package: Path = PACKAGE) -> tuple[tuple[Path, ast.Module], ...]:
    """Return the modules below a folder of a package, sorted by path."""
    # While trees pile up, the collector would look at all of them again and again: that takes three times as long as to parse them.
    gc.disable()
    try:
        return tuple((path, ast.parse(path.read_text(encoding="utf-8"))) for path in sorted((package / folder).rglob("*.py")))
    finally:
        gc.freeze()
        gc.enable()


def every_tree() -> tuple[tuple[Path, ast.Module], ...]:
    """Return the modules of every package."""
    return (*trees_of("."), *trees_of(".", DRIVERS))


def controllers() -> tuple[tuple[Path, ast.Module], ...]:
    """Return the modules of all controllers: those of KubeVirt's kinds and those of each dialect."""
    folders = ("kubevirt/controllers", *(each.relative_to(PACKAGE).as_posix() for each in sorted(PACKAGE.glob("dialects/*/controllers"))))
    return tuple(module for folder in folders for module in trees_of(folder))
