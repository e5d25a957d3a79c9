"""The example manifests of all dialects and of the built-in kinds."""

from pathlib import Path

from paddock.kubernetes import catalog


def examples() -> list[Path]:
    """Return the files, a dialect after the other."""
    return [path for name in (catalog.CORE, *catalog.DIALECTS) for path in sorted((catalog.folder(name) / "examples").glob("*.yaml"))]
