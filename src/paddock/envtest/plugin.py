"""Fixtures of pytest: `pytest_plugins = ["paddock.envtest.plugin"]` in the topmost conftest.py."""

from collections.abc import Iterator

import pytest

from paddock.envtest import ControlPlane


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the control plane, on the command line and in the configuration of pytest."""
    group = parser.getgroup("paddock")
    group.addoption("--kubevirt-release", metavar="RELEASE", help="Release of KubeVirt to be, 1.3 to 1.9")
    group.addoption("--kubevirt-nodes", metavar="N", help="Nodes that simulated guests seem to run on")
    parser.addini("kubevirt_release", "Release of KubeVirt to be, 1.3 to 1.9 (default: Paddock itself)", default="")
    parser.addini("kubevirt_nodes", "Nodes that simulated guests seem to run on", default="1")


@pytest.fixture(scope="session")
def kubevirt(pytestconfig: pytest.Config) -> Iterator[ControlPlane]:
    """A living KubeVirt with simulated guests, one for all tests."""
    release = pytestconfig.getoption("--kubevirt-release") or pytestconfig.getini("kubevirt_release")
    nodes = pytestconfig.getoption("--kubevirt-nodes") or pytestconfig.getini("kubevirt_nodes")
    with ControlPlane(release=str(release), nodes=int(nodes)) as control_plane:
        yield control_plane
