"""A translator may import its own dialect, KubeVirt as the hub, the core kinds and what holds no dialect: nothing else.

import-linter can keep translators apart from each other, but not ``translate/alpha`` from the dialect beta.
"""

from pathlib import Path

import pytest

from tools.gate.imports import imported_modules

ROOT = Path(__file__).parents[2]
TRANSLATE = ROOT / "src" / "paddock" / "translate"

DIALECTS = "paddock.dialects."
# The hub, the core kinds, and the modules beside the dialects.
FOR_ALL = frozenset({"kubevirt", "core", "catalog", "settings"})


def foreign_dialects(path: Path, source: str) -> list[str]:
    """The dialects that the module below ``translate`` imports although it may not."""
    own = path.relative_to(TRANSLATE).parts[0].removesuffix(".py")
    imported = (name for name in imported_modules(source) if name.startswith(DIALECTS))
    dialects = {name.removeprefix(DIALECTS).partition(".")[0] for name in imported}
    return sorted(dialects - FOR_ALL - {own})


def test_translators_import_no_foreign_dialect() -> None:
    found = {path: foreign_dialects(path, path.read_text(encoding="utf-8")) for path in TRANSLATE.rglob("*.py")}
    assert {str(path): dialects for path, dialects in found.items() if dialects} == {}


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        ("alpha.py", "from paddock.dialects.alpha.machine import Machine", []),
        ("alpha/disks.py", "from paddock.dialects import alpha; from paddock import kubevirt; from paddock.kubernetes import core", []),
        ("alpha/disks.py", "import paddock.dialects.beta.machine", ["beta"]),
        ("alpha/disks.py", "from paddock.dialects import beta", ["beta"]),
        ("alpha.py", "def late():\n    from paddock.dialects.beta import machine", ["beta"]),
        ("alpha.py", "from paddock import kubevirt; from paddock.dialects import beta, gamma", ["beta", "gamma"]),
    ],
)
def test_the_rule_bites(path: str, source: str, expected: list[str]) -> None:
    assert foreign_dialects(TRANSLATE / path, source) == expected
