"""Shared parts of the tests that follow pages: a `paddock up` that runs machines, and a reader with the programs of a page.

The pages name public images. A mirror on loopback answers for their registry, with the tiny guest of `tests/host` in place of each disk.
Machines outlive a server, so the fixture ends every QEMU that holds a lock below its directory.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from paddock.engine.machine.process import holders
from tests.host.guests import Registry, registry_in, tiny_guest
from tests.host.machine import lacks
from tests.kit.pages import ROOT, Reader
from tests.reference.build import Binaries, Recipe, built
from tests.reference.client import Api
from tests.reference.embedded import Embedded, serving

# A fixture that pytest finds here.
__all__ = ["tiny_guest"]
DOCS = ROOT / "docs"
# The directory of the command `paddock`.
OURS = Path(sys.executable).parent
# The container disks that the pages name.
DISKS = ("debian:12", "debian:13")
PUBLIC = "quay.io/containerdisks"


@pytest.fixture(scope="session")
def program(pytestconfig: pytest.Config) -> Callable[[Recipe], Path]:
    """The directory with the programs of a recipe; the first run on a machine builds them, and says so."""
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    return lambda recipe: built(recipe, say=terminal.write_line if terminal else print)


@pytest.fixture(scope="session")
def disks(tmp_path_factory: pytest.TempPathFactory, tiny_guest: Any) -> Iterator[Registry]:
    """The registry with the container disks."""
    with registry_in(tmp_path_factory.mktemp("registry")) as registry:
        for disk in DISKS:
            registry.push(disk, {"disk/tiny.qcow2": tiny_guest.disk})
        yield registry


@pytest.fixture(scope="session")
def host(disks: Registry) -> Iterator[Embedded]:
    """A server that runs machines; skipped where there is no QEMU."""
    if reason := lacks("qemu"):
        pytest.skip(f"needs qemu: {reason}")
    with machines(disks) as server:
        yield server


@contextmanager
def machines(disks: Registry) -> Iterator[Embedded]:
    """A server that runs machines, for the length of a `with` block."""
    root = Path(tempfile.mkdtemp(prefix="pdkc-", dir="/tmp"))
    # QEMU runs as a user of its own, below this directory.
    root.chmod(0o711)
    mirror = f"--registry-mirror={PUBLIC}=http://{disks.address}"
    options = ("--network=user", "--image-from=127.0.0.1", "--memory-overcommit=100", mirror)
    try:
        with serving(root / "server", *options, command="up") as server:
            yield server
    finally:
        for lock in root.rglob("machines/*/lock"):
            for pid in holders(lock):
                os.kill(pid, signal.SIGKILL)
        subprocess.run(["rm", "-rf", str(root)], check=True)


@pytest.fixture
def api(host: Embedded) -> Iterator[Api]:
    """Quick requests to it."""
    api = Api(host.access)
    yield api
    api.close()


@pytest.fixture
def reader(host: Embedded, binaries: Binaries, tmp_path: Path) -> Callable[..., Reader]:
    """A reader of a page who has kubectl, and programs in further directories."""

    def make(*programs: Path, **environment: str) -> Reader:
        return reading(host, binaries, tmp_path / "reader", *programs, **environment)

    return make


def reading(server: Embedded, binaries: Binaries, folder: Path, *programs: Path, **environment: str) -> Reader:
    """A reader in a new folder, who has the kubeconfig of a server, kubectl, and programs in further directories."""
    folder.mkdir()
    path = os.pathsep.join([*map(str, programs), str(binaries.kubectl.parent), os.defpath])
    return Reader(folder, {"PATH": path, "KUBECONFIG": str(server.kubeconfig), **environment})


def on_path(name: str) -> Path:
    """The directory of a program of this machine; the test is skipped without it."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name}: it is not on PATH")
    return Path(found).parent


@contextmanager
def ended(file: Path) -> Iterator[None]:
    """End the program whose number a page writes to a file, unless the page did."""
    try:
        yield
    finally:
        with suppress(FileNotFoundError, ValueError, ProcessLookupError):
            os.kill(int(file.read_text()), signal.SIGKILL)


def until(what: str, holds: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"waited for: {what}"
        time.sleep(0.2)
