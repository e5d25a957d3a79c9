"""A few of KubeVirt's functional tests still pass: of some groups one spec each, by the seed; `make test-kubevirt` runs all of them."""

import os
import random
from pathlib import Path

import pytest

from tests.reference.functional import installation, results, suite
from tests.reference.functional.suite import Spec

pytestmark = [pytest.mark.reference, pytest.mark.long]
SEED = int(os.environ.get("KUBEVIRT_SEED", "1"))
# Groups that give a spec, and how long, in seconds, one took at most when it was recorded.
GROUPS, SECONDS = 8, 10
# After this no further spec begins.
LIMIT = 900


def sample(known: tuple[Spec, ...], seed: int) -> list[Spec]:
    """Specs that passed when they ran last, each of another group."""
    chance = random.Random(seed)
    recorded = results.read().endings
    quick = {name for name, ending in recorded.items() if ending.state == "passed" and ending.seconds <= SECONDS}
    groups = [[spec for spec in suite.taken(known, group) if spec.name in quick] for group in suite.groups().values()]
    return [chance.choice(each) for each in chance.sample([each for each in groups if each], GROUPS)]


def test_a_sample_of_kubevirts_functional_tests_passes(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """KUBEVIRT_SEED=n takes others."""
    if reason := suite.missing():
        pytest.skip(f"needs functests: {reason}")
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    programs = suite.programs(say=terminal.write_line if terminal else print)
    specs = sample(suite.specs(programs.tests), SEED)
    with installation.installed() as one:
        endings = list(suite.run(programs, one, specs, tmp_path, LIMIT))
    assert {ending.name: (ending.state, ending.where, ending.message) for ending in endings} == {
        spec.name: ("passed", "", "") for spec in specs
    }
