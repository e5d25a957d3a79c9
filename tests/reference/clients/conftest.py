"""Shared parts of the tests with real clients: the programs, a namespace of one's own, and a user's kind in the embedded server."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.reference import recipes
from tests.reference.build import Binaries, Recipe, built
from tests.reference.client import Api, Kubectl
from tests.reference.embedded import Embedded

HARNESS = Path(__file__).parents[1] / "harness"
_numbers = count(1)


@pytest.fixture(scope="session")
def program(pytestconfig: pytest.Config) -> Callable[[Recipe], Path]:
    """The directory with the programs of a recipe; the first run on a machine builds them, and says so."""
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    return lambda recipe: built(recipe, say=terminal.write_line if terminal else print)


@pytest.fixture(scope="session")
def api(embedded: Embedded) -> Iterator[Api]:
    """Quick requests to the embedded server."""
    api = Api(embedded.access)
    yield api
    api.close()


@pytest.fixture(scope="session")
def kubectl(binaries: Binaries, embedded: Embedded, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """The newest kubectl, pointed at the embedded server."""
    return Kubectl(binaries.kubectl, embedded.access, tmp_path_factory.mktemp("kubectl"))


@pytest.fixture(scope="session")
def crates(kubectl: Kubectl) -> None:
    """A user's own kind, served."""
    kubectl.ok("apply", "-f", str(HARNESS))
    kubectl.ok("wait", "--for=condition=Established", "crd/crates.reference.paddock.example", "--timeout=20s")


@pytest.fixture
def namespace(api: Api) -> Iterator[str]:
    """A namespace of the test's own."""
    name = f"test-{next(_numbers)}"
    assert api.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}}).ok
    yield name
    api.request("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="session", params=[*recipes.OLD_KUBECTLS, "newest"])
def any_kubectl(
    request: pytest.FixtureRequest, program: Callable[[Recipe], Path], kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory
) -> Kubectl:
    """One kubectl after the other."""
    release = request.param
    if release == "newest":
        return kubectl
    folder = program(recipes.OLD_KUBECTLS[release])
    return Kubectl(folder / "kubectl", kubectl.access, tmp_path_factory.mktemp(f"kubectl-{release}"))
