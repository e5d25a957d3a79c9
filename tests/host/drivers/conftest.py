"""The targets of drivers: a Paddock in a process of its own, and a libvirtd that a module's tests share."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.host.machine import lacks
from tests.host.runs.conftest import host, play

if TYPE_CHECKING:
    from tests.host.drivers.libvirtd import Libvirtd

__all__ = ["host", "libvirtd", "play"]


@pytest.fixture(scope="module")
def libvirtd() -> Iterator["Libvirtd"]:
    """A libvirtd with a pool and a network, both called default; its machines end with the module's tests."""
    if reason := lacks("libvirtd"):
        pytest.skip(f"needs libvirtd: {reason}")
    # After the check: a machine without the library skips.
    from tests.host.drivers.libvirtd import Libvirtd  # noqa: PLC0415

    name, work = f"pdklv{os.getpid()}", Path(tempfile.mkdtemp(prefix="pdk-", dir="/tmp"))
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        with Libvirtd(work, name) as daemon:
            yield daemon
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)
        shutil.rmtree(work, ignore_errors=True)
