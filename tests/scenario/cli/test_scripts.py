"""Every command script says today what it said when it was recorded; `make golden` records it anew."""

from pathlib import Path

import pytest

from tests.golden import Golden
from tests.scenario.cli.script import replay

FOLDER = Path(__file__).parent
SCRIPTS = sorted(FOLDER.glob("*/script.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.parent.name)
def test_script(script: Path, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    golden(str(script.relative_to(FOLDER)), replay(script, monkeypatch))


def test_there_are_scripts() -> None:
    assert SCRIPTS
