"""What the tests share that bring VirtRigaud's own programs."""

from pathlib import Path

import pytest

from tests.kit.providers import providertls
from tests.reference.build import built
from tests.reference.recipes import VIRTRIGAUD
from tests.reference.virtrigaud.objects import SERVER_NAME


@pytest.fixture(scope="session")
def upstream(pytestconfig: pytest.Config) -> Path:
    """The folder of the programs; the first run on a machine builds them, in four minutes."""
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    return built(VIRTRIGAUD, terminal.write_line if terminal else print)


@pytest.fixture
def authority() -> providertls.Authority:
    """Who signs the certificates of managers and providers."""
    return providertls.Authority()


@pytest.fixture
def material(authority: providertls.Authority, tmp_path: Path) -> Path:
    """The certificates of a Provider "lab" and its manager, as both sides have them."""
    return providertls.write(tmp_path / "tls", authority.issue(SERVER_NAME.format("lab"), "manager.example"))
