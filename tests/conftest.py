"""What every test shares: golden files, the property tests' profiles and the record of what proves which spec item."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.golden import Golden
from tools.conformance.plugin import ConformanceRecorder

ROOT = Path(__file__).resolve().parent.parent

# The ordinary run is repeatable: the same examples every time. `make soak` looks for new ones, many more.
settings.register_profile("test", derandomize=True, deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("soak", deadline=None, max_examples=3000, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("test")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("paddock")
    group.addoption("--golden-update", action="store_true", help="rewrite golden files instead of comparing with them")
    group.addoption("--conformance-results", metavar="FILE", help="write which spec items were tested, with outcomes")


def pytest_configure(config: pytest.Config) -> None:
    results = config.getoption("--conformance-results")
    config.pluginmanager.register(ConformanceRecorder(spec_folder=ROOT / "docs" / "spec", results=Path(results) if results else None))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(folder=request.path.parent, update=bool(request.config.getoption("--golden-update")))
