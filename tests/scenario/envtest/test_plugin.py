"""The control plane for tests of others, as their pytest starts it."""

import sys
from pathlib import Path

import pytest

from paddock.app.envtest import ControlPlane, ControlPlaneFailed

EXAMPLE = Path(__file__).with_name("example.py")
VERSION = "/apis/subresources.kubevirt.io/v1/version"


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project whose tests use the fixture."""
    pytester.makeconftest('pytest_plugins = ["paddock.app.envtest"]')
    pytester.makepyfile(test_example=EXAMPLE.read_text())
    return pytester


def test_a_project_runs_its_tests_against_it(project: pytest.Pytester) -> None:
    ran = project.runpytest_subprocess("--kubevirt-release", "1.6", "--kubevirt-nodes", "2", "-p", "no:cacheprovider")
    ran.assert_outcomes(passed=2)


def test_an_end_leaves_nothing() -> None:
    with ControlPlane() as control_plane:
        folder = control_plane.kubeconfig.parent
        assert control_plane.address.startswith("https://127.0.0.1:") and folder.is_dir()
    assert not folder.exists() and not folder.parent.exists()
    with pytest.raises(RuntimeError, match="has not started"):
        _ = control_plane.kubeconfig


def test_a_start_that_fails_says_why() -> None:
    control_plane = ControlPlane(release="1.2")
    with pytest.raises(ControlPlaneFailed, match=r"no release of KubeVirt from 1\.3 to 1\.9"):
        control_plane.start()
    control_plane.stop()


def test_the_package_loads_nothing_of_the_server(pytester: pytest.Pytester) -> None:
    """Tests of others live with what they have: the plugin adds pytest and the standard library."""
    words = "import sys, paddock.app.envtest; print([name for name in sys.modules if name.startswith('paddock.')])"
    ran = pytester.run(sys.executable, "-c", words)
    ran.stdout.fnmatch_lines(["['paddock.app', 'paddock.app.envtest']"])
