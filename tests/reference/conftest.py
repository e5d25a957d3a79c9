"""The two servers that the reference tests share, each started once per run: the real one, built once, with every generated CRD
installed on demand, and the embedded one."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.reference import crds
from tests.reference.answers import FOLDER, Answers
from tests.reference.build import Binaries, ensure
from tests.reference.client import Api, Kubectl
from tests.reference.embedded import Embedded, serving
from tests.reference.server import Access, running

_logs = pytest.StashKey[Path]()
_embedded_logs = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Gives these tests their mark."""
    config.addinivalue_line("markers", "reference: asks a real kube-apiserver; needs Go, or an earlier build in the cache")


@pytest.fixture(scope="session")
def binaries(pytestconfig: pytest.Config) -> Binaries:
    """The programs; the first run on a machine builds them, and says so past pytest's capturing."""
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    return ensure(say=terminal.write_line if terminal else print)


@pytest.fixture(scope="session")
def access(binaries: Binaries, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """A running server."""
    directory = tmp_path_factory.mktemp("oracle")
    pytestconfig.stash[_logs] = directory
    with running(binaries, directory) as access:
        yield access


@pytest.fixture(scope="session")
def api(access: Access) -> Iterator[Api]:
    """Quick requests to it."""
    api = Api(access)
    yield api
    api.close()


@pytest.fixture(scope="session")
def kubectl(binaries: Binaries, access: Access, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """The real kubectl, pointed at it."""
    return Kubectl(binaries.kubectl, access, tmp_path_factory.mktemp("kubectl"))


@pytest.fixture(scope="session")
def embedded(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """The embedded server that the tests with real clients share; who restarts it or fills it starts one of their own."""
    directory = tmp_path_factory.mktemp("embedded")
    pytestconfig.stash[_embedded_logs] = directory
    with serving(directory / "server") as server:
        yield server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Embedded]:
    """An embedded server of one test, which may kill it."""
    with serving(tmp_path / "server") as server:
        yield server


@pytest.fixture(scope="module")
def answers(request: pytest.FixtureRequest) -> Iterator[Answers]:
    """The answers of a real server to the questions of this module; one starts for those whose answers are not recorded."""

    def live() -> Api:
        request.getfixturevalue("installed")
        api: Api = request.getfixturevalue("api")
        return api

    yield from kept(request, live)


def kept(request: pytest.FixtureRequest, live: Callable[[], Api]) -> Iterator[Answers]:
    """The recorded answers of the module that asks for them; ANSWERS=write records those that it got."""
    known = Answers(FOLDER / f"{request.path.stem}.txt", live)
    yield known
    if os.environ.get("ANSWERS") == "write":
        known.write(whole=not request.session.testsfailed)
    elif known.anew:
        print(f"\n{request.path.name}: {known.anew} answers of kube-apiserver are not recorded; `make answers` records them")


@pytest.fixture(scope="session")
def installed(api: Api) -> list[crds.Crd]:
    """The generated CRDs, installed and served."""
    found = crds.load()
    crds.install(api, found)
    return found


@pytest.fixture(scope="session")
def crate(api: Api) -> crds.Crd:
    """A CRD made by hand, installed."""
    (crd,) = crds.load(Path(__file__).parent / "harness")
    crds.install(api, [crd])
    return crd


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says where the logs are when something failed."""
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        for what, where in (("etcd and kube-apiserver", _logs), ("the embedded server", _embedded_logs)):
            if where in config.stash:
                terminalreporter.write_line(f"logs of {what}: {config.stash[where]}")
