"""The shared parts of all tests: golden files, the property tests' profiles and the record of proven spec items."""

import gc
import os
import shutil
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.golden import Golden
from tools.conformance.plugin import ConformanceRecorder, SpecChoice, SpecChoices
from tools.gate import plugin, verdict
from tools.gate.attempts import SecondAttempts
from tools.gate.cputimes import CpuTimes

ROOT = Path(__file__).resolve().parent.parent
# What is known of each long suite, by its target in the Makefile.
RECORDS = {
    "weather": "tests/scenario/fronts/passed.txt",
    "test-reference": "tests/reference/passed.txt",
    "test-host": "tests/host/passed.txt",
}

# The ordinary run is repeatable: the same examples every time. `make soak` looks for new ones, many more.
settings.register_profile("test", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", deadline=None, max_examples=3000, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("test")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("paddock")
    group.addoption("--golden-update", action="store_true", help="rewrite golden files instead of comparing with them")
    group.addoption("--limit", type=float, metavar="SECONDS", help="leave out the tests that would begin later than that, and say how many")
    group.addoption("--record", choices=list(RECORDS), help="the suite whose record of what passed orders and judges this run")
    group.addoption("--record-write", action="store_true", help="write into that record what passes")
    group.addoption("--record-part", choices=plugin.PARTS, help="run the tests that the record does not prove, or only the others")
    group.addoption("--again", action="store_true", help="try a failed test once more, and name what passes then")
    group.addoption("--cpu-times", type=int, metavar="N", help="list the N tests and modules that take most CPU time, children included")
    group.addoption("--conformance-results", metavar="FILE", help="write which spec items were tested, with outcomes")
    group.addoption(
        "--spec-item", action="append", metavar="ITEM", help='run what proves an item or a clause, such as "kube-api 27 labels"'
    )


def pytest_configure(config: pytest.Config) -> None:
    results = config.getoption("--conformance-results") or ""
    # Committed results outlive the code that they are of.
    noted = {"digests": partial(plugin.digests, ROOT)} if results.startswith("tests/") else {}
    config.pluginmanager.register(
        ConformanceRecorder(spec_folder=ROOT / "docs" / "spec", results=Path(results) if results else None, **noted)
    )
    if items := config.getoption("--spec-item"):
        config.pluginmanager.register(SpecChoices([SpecChoice.parse(item) for item in items]))
    if config.getoption("--again"):
        config.pluginmanager.register(SecondAttempts())
    if (shown := config.getoption("--cpu-times")) is not None:
        config.pluginmanager.register(CpuTimes(shown))
    if config.getoption("--limit") is not None:
        config.pluginmanager.register(plugin.TimeLimit(config.getoption("--limit")))
    if name := config.getoption("--record"):
        options = config.getoption("--record-write"), config.getoption("--record-part") or ""
        command = f"make {name} RECORD=1 WHICH=missing"
        policy = verdict.read_policy(ROOT / "tests" / "gate.toml")
        config.pluginmanager.register(plugin.SuiteRecorder(plugin.Settings(ROOT / RECORDS[name], ROOT, *options, command, policy)))


def pytest_sessionstart(session: pytest.Session) -> None:
    # Servers of tests are kept apart like any others, but not in this host's own record.
    os.environ["PADDOCK_HOST_DIR"] = tempfile.mkdtemp(prefix="paddock-claims-")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish(session: pytest.Session) -> None:
    # Modules and tests stay to the end, and every full collection of garbage would look at all of them for a third of a second.
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session) -> None:
    shutil.rmtree(os.environ["PADDOCK_HOST_DIR"], ignore_errors=True)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(folder=request.path.parent, update=bool(request.config.getoption("--golden-update")))
