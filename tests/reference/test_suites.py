"""Suites of controller-runtime's own tests pass with Paddock's assets of envtest."""

from pathlib import Path

import pytest

from tests.reference import suites
from tests.reference.build import Program, built
from tests.reference.recipes import RUNTIME_SUITES

pytestmark = [pytest.mark.reference, pytest.mark.long]


@pytest.fixture(scope="module")
def programs(pytestconfig: pytest.Config) -> Path:
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    return built(RUNTIME_SUITES, say=terminal.write_line if terminal else print)


@pytest.mark.spec("kube-api", 148, 150)
@pytest.mark.parametrize("program", RUNTIME_SUITES.programs, ids=lambda program: program.name)
def test_a_suite_passes(programs: Path, program: Program, tmp_path: Path) -> None:
    assets = suites.paddock_assets(tmp_path / "assets")
    ran = suites.run(programs, program, assets)
    if ran.lost_races:
        ran = suites.run(programs, program, assets, only=suites.RACES)
    assert (ran.code, ran.failed) == (0, 0), ran.text
    assert ran.passed, ran.text


def test_a_race_is_no_excuse_for_another_failure() -> None:
    lost, other = f"A [It] {suites.RACES}", "B [It] works"
    assert suites.Ran(3, 1, 2.4, 1, (lost,), "").lost_races
    for failed, wrong in ((0, ()), (1, (other,)), (2, (lost, other)), (2, (lost,))):
        assert not suites.Ran(3, failed, 2.4, 1, wrong, "").lost_races


def test_the_page_tells_how_each_suite_went() -> None:
    good = suites.Ran(3, 0, 2.4, 0, (), "")
    made = suites.page("v0.1.0", "v1.36.3", [("pkg/a", good, good), ("pkg/b", good, suites.Ran(2, 1, 1.0, 1, ("B works",), ""))])
    assert "| `pkg/b` | 3 | 3 | 2 | 2 | 1 |\n| all | 6 | 6 | 5 | 5 | 3 |" in made
    assert made.endswith("## Failed with Paddock\n\n- `pkg/b`: B works\n")
