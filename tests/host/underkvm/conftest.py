"""A directory for machines under KVM, with the bare guest in it."""

import shutil
from pathlib import Path

import pytest

from paddock.engine.machine.argv.view import EfiFiles
from paddock.engine.machine.machines import Machines
from tests.host.machines.conftest import Place, keep_open, place
from tests.host.underkvm import bareguest

__all__ = ["place"]


class Home:
    """The folder of the machines of a test."""

    def __init__(self, place: Place, rom: Path) -> None:
        self.root, self.machines = place.root, place.machines
        # Each file by itself: a user of a machine's own could not enter a folder with the mode of the test's.
        for file in rom.iterdir():
            shutil.copy(file, self.root)

    def open(self, efi: EfiFiles | None = None) -> Machines:
        """Paddock over the directory, as often as a test wants."""
        return keep_open(Machines(self.machines, bareguest.environment(self.root, efi)))


@pytest.fixture(scope="session")
def rom(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the bare guest's ROM."""
    folder = tmp_path_factory.mktemp("rom")
    bareguest.rom(folder)
    return folder


@pytest.fixture
def home(place: Place, rom: Path) -> Home:
    """A directory of its own."""
    return Home(place, rom)
