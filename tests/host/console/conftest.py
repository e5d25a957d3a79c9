"""A browser, and a whole Paddock with its web console."""

import re
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
import yaml

from tests.host.console import browser as chromium
from tests.host.console.browser import Browser, Page
from tests.host.guests import Registry, Shelf, registry_in
from tests.host.machines import bootsector
from tests.host.runs.conftest import Host
from tests.host.runs.test_objects import installed

__all__ = ["console", "driven", "host"]
SignIn = Callable[..., Page]
# What a page would run if it made HTML of it.
HOSTILE = "<img src=x onerror=alert(1)>"
TOPICS = ("images", "volumes", "snapshots", "networks", "pools", "providers", "migrations", "events", "host", "settings")
TABS = ("Overview", "Usage", "Console", "Screen", "Snapshots", "YAML", "Events", "Cloud-init", "Related")
PICTURES = chromium.ROOT / "build" / "console"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that failed leaves what its pages showed, and says where."""
    report = yield
    fixtures: dict[str, object] = getattr(item, "funcargs", {})
    found = next((each for each in fixtures.values() if isinstance(each, Browser)), None)
    if report.when == "call" and report.failed and found is not None:
        folder = PICTURES / re.sub(r"\W+", "-", item.name)
        found.record(folder)
        report.sections.append(("browser", f"pictures and traces (`playwright show-trace`) are in {folder}"))
    return report


class ConsoleHost(Host):
    """It serves the console, too."""

    options = ("--ui=127.0.0.1:0",)

    def link(self) -> str:
        """Return the link that opens the session."""
        found = re.findall(r"http://\S+/login/\S+", (self.root / "said").read_text())
        assert found, (self.root / "said").read_text()[-2000:]
        return str(found[-1])


@pytest.fixture(scope="session")
def driven() -> tuple[Path, str]:
    """The interpreter that has Playwright, and the path of Chromium."""
    found = shutil.which("chromium")
    assert found is not None, 'a test with a browser needs "chromium"'
    return chromium.environment(), found


@pytest.fixture
def browser(driven: tuple[Path, str]) -> Iterator[Browser]:
    """A browser; a script that runs where it should not, and every error that a page logs, fails the test."""
    one = Browser(*driven)
    yield one
    one.end()


@pytest.fixture(scope="module")
def module_browser(driven: tuple[Path, str]) -> Iterator[Browser]:
    """A browser for all tests of a module."""
    one = Browser(*driven)
    yield one
    one.end()


@pytest.fixture(scope="module")
def module_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """A registry for all tests of a module."""
    with registry_in(tmp_path_factory.mktemp("registry")) as one:
        yield one


@pytest.fixture(scope="module")
def module_host(module_registry: Registry) -> Iterator[ConsoleHost]:
    """A host with the console, started, for all tests of a module."""
    # Names of UNIX sockets are short.
    root = Path(tempfile.mkdtemp(prefix="pdk-", dir="/tmp"))
    made = ConsoleHost(root, module_registry.address)
    try:
        made.start()
        yield made
    finally:
        made.end()
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="module")
def module_page(module_host: ConsoleHost, module_browser: Browser) -> Page:
    """A window of that console, signed in."""
    page = module_browser.open(module_host.link())
    page.see("#main")
    return page


@pytest.fixture
def host(work: Path, registry: Registry) -> Iterator[ConsoleHost]:
    """A host with the console that was not started yet."""
    made = ConsoleHost(work, registry.address)
    yield made
    made.end()


@pytest.fixture
def boot_image(work: Path, registry: Registry) -> str:
    """The guest of 512 bytes as a containerDisk."""
    return registry.push("disks/boot:1", {"disk/disk.img": bootsector.write(work / "disk.img")})


@pytest.fixture
def disk_machine(work: Path, web: Shelf) -> str:
    """The manifest of a machine `web` with a disk of its own."""
    return yaml.safe_dump(installed("web", web.put(bootsector.write(work / "guest.img"))))


def state(status: str) -> str:
    """The state of the machine whose page is open."""
    return f".machine-title .state:text-is('{status}')"


def tab(name: str) -> str:
    """A tab of a machine's page; it may count something."""
    return f"role=tab[name=/^{name}/]"


def button(name: str) -> str:
    """A button."""
    return f'role=button[name="{name}"]'


def item(name: str) -> str:
    """An entry of an open menu."""
    return f"role=menuitem[name=/^{name}/]"


@pytest.fixture
def console(host: ConsoleHost, browser: Browser) -> SignIn:
    """Starts the host and signs in by its link; options are those of a window."""

    def sign_in(**options: object) -> Page:
        host.start()
        page = browser.open(host.link(), **options)
        page.see("#main")
        return page

    return sign_in
