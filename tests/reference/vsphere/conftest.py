"""A simulator of vCenter for the tests of the vSphere driver: one that a module shares, and one of a test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reference.build import built
from tests.reference.recipes import VCSIM
from tests.reference.vsphere.vcenter import Simulator, running, template


@pytest.fixture(scope="session")
def vcsim(pytestconfig: pytest.Config) -> Path:
    """The program; the first run on a machine builds it, in a minute."""
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    return built(VCSIM, terminal.write_line if terminal else print) / "vcsim"


@pytest.fixture(scope="module")
def shared(vcsim: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    """A simulator that the tests of a module share."""
    with running(vcsim, tmp_path_factory.mktemp("vcsim")) as simulator:
        yield simulator


@pytest.fixture
def simulator(vcsim: Path, tmp_path: Path) -> Iterator[Simulator]:
    """A simulator of one test, which may break it."""
    with running(vcsim, tmp_path / "vcsim") as simulator:
        yield simulator


@pytest.fixture(params=["unaltered", "carrying"])
def either(vcsim: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Simulator]:
    """A simulator with a template "tmpl": as govmomi has it, and one whose clones have their identity from their first moment."""
    with running(vcsim, tmp_path / "vcsim", {request.param: True}) as simulator:
        template(simulator, "DC0_H0_VM0", "tmpl")
        yield simulator


@pytest.fixture
def stocked(vcsim: Path, tmp_path: Path) -> Iterator[Simulator]:
    """A simulator with a template "tmpl", a storage pod and a resource pool."""
    with running(vcsim, tmp_path / "vcsim", {"pod": 1, "pool": 1}) as simulator:
        template(simulator, "DC0_C0_RP1_VM0", "tmpl")
        yield simulator
