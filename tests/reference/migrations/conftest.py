"""The real ends of migrations, which a module's tests share: a Paddock in a process of its own, a libvirtd, and a simulator of vCenter."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.drivers.conftest import libvirtd
from tests.host.machine import lacks
from tests.host.runs.conftest import Host
from tests.reference.vsphere.conftest import vcsim
from tests.reference.vsphere.vcenter import Simulator, running, template

# Fixtures that pytest finds here.
__all__ = ["libvirtd", "vcsim"]


@pytest.fixture(scope="module")
def paddock() -> Iterator[Host]:
    """A host that answers; no machine of it starts."""
    if reason := lacks("qemu"):
        pytest.skip(f"needs qemu: {reason}")
    root = Path(tempfile.mkdtemp(prefix="pdk-", dir="/tmp"))
    host = Host(root / "paddock", "127.0.0.1:1")
    host.root.mkdir()
    try:
        host.start()
        yield host
    finally:
        host.end()
        shutil.rmtree(root)


@pytest.fixture(scope="module")
def vcenter(vcsim: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    """A simulator with a template "tmpl"."""
    with running(vcsim, tmp_path_factory.mktemp("vcsim")) as simulator:
        template(simulator, "DC0_H0_VM0", "tmpl")
        yield simulator
