"""An S3 server of one test, and what its program is built from."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.conftest import work
from tests.host.guests import registry, tiny_guest, web
from tests.host.machine import lacks
from tests.host.runs.conftest import host, play
from tests.reference.build import built
from tests.reference.recipes import S3_GATEWAY
from tests.reference.s3.gateway import Gateway, serving

# Fixtures that pytest finds here.
__all__ = ["host", "play", "registry", "tiny_guest", "web", "work"]
# An address of benchmarks, and of this process alone: migrations refuse storage on a loopback address.
ELSEWHERE = f"198.18.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"


@pytest.fixture(scope="session")
def versitygw(pytestconfig: pytest.Config) -> Path:
    """The program; the first run on a machine builds it, in two minutes of processor time."""
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    return built(S3_GATEWAY, terminal.write_line if terminal else print) / "versitygw"


@pytest.fixture
def gateway(versitygw: Path, tmp_path: Path) -> Iterator[Gateway]:
    """A server on loopback."""
    with serving(versitygw, tmp_path) as found:
        yield found


@pytest.fixture
def distant(versitygw: Path, tmp_path: Path) -> Iterator[Gateway]:
    """A server on the loopback device, under an address that is none of loopback's; it lasts as long as the test."""
    for name in ("qemu", "root"):
        if reason := lacks(name):
            pytest.skip(f"needs {name}: {reason}")
    subprocess.run(["ip", "address", "add", f"{ELSEWHERE}/32", "dev", "lo"], check=True)
    try:
        with serving(versitygw, tmp_path, ELSEWHERE) as found:
            yield found
    finally:
        subprocess.run(["ip", "address", "delete", f"{ELSEWHERE}/32", "dev", "lo"], check=True)
