"""A cluster with KubeVirt for all tests that ask for it, and the tiny guest as a container disk of its node.

With PADDOCK_CLUSTER=DIR, the tests use the cluster that runs in a directory, and leave it running.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from paddock.base.images.build import tiny
from tests.host.guests import tiny_guest, tiny_signed
from tests.reference.build import built
from tests.reference.client import Api, Json, Kubectl
from tests.reference.clones import NoClone
from tests.reference.cluster import cdi, control, forward, images, kubevirt, namespace
from tests.reference.cluster.__main__ import Wanted, missing, up
from tests.reference.cluster.namespace import Machine
from tests.reference.recipes import VIRTCTLS
from tests.reference.virtctl.conftest import Virtctl

# Fixtures that pytest finds here.
__all__ = ["tiny_guest", "tiny_signed"]
TINY = f"{images.REGISTRY}/tiny:1"
# A guest boots in seconds, and in minutes where others keep the machine busy.
BOOT_SECONDS = 600.0


@dataclass(frozen=True)
class Cluster:
    """A cluster that runs, as its administrator sees it from the host."""

    machine: Machine
    api: Api
    kubectl: Kubectl
    virtctl: Virtctl
    # itself, whose importer is a Pod; its stand-in is a program of the host
    has_cdi: bool

    def reached(self, url: str) -> str:
        """Return the address at which CDI reaches a server of the host's loopback."""
        if not self.has_cdi:
            return url
        address = urlsplit(url)
        return urlunsplit(address._replace(netloc=f"{namespace.ADDRESS}:{forward.open_host_port(self.machine, address.port or 80)}"))

    def get(self, path: str) -> Json:
        """An object or a list; empty when it is not there."""
        answer = self.api.request("GET", path)
        return answer.body if answer.ok else {}

    def names(self, path: str) -> list[str]:
        """Return the names in a list."""
        return [each["metadata"]["name"] for each in self.get(path).get("items", ())]

    def guests(self) -> list[str]:
        """Return the processes of machines on the node."""
        programs = [words.split()[0] for words in self.machine.run("ps", "-eo", "args").splitlines()]
        return [each for each in programs if Path(each).name.startswith(("qemu-system", "virt-launcher"))]


@contextmanager
def node(config: pytest.Config, directory: Path, wanted: Wanted) -> Iterator[Machine]:
    """A cluster for the length of a block, after which it has left nothing behind."""
    if reason := missing():
        pytest.skip(f"needs node: {reason}")
    try:
        yield up(directory, say(config), wanted)
    finally:
        namespace.end(directory)
    assert namespace.remains(directory) == []


def say(config: pytest.Config) -> Callable[[str], None]:
    """Return what prints past pytest's capturing."""
    terminal = config.pluginmanager.getplugin("terminalreporter")
    return terminal.write_line if terminal else print


def _has_cdi() -> bool:
    """Return whether CDI itself can be there; its stand-in takes its part where nobody has its source."""
    try:
        cdi.check()
    except NoClone:
        return False
    return True


@contextmanager
def _whole(config: pytest.Config, directory: Path) -> Iterator[Machine]:
    if folder := os.environ.get("PADDOCK_CLUSTER"):
        machine = namespace.found(Path(folder))
        assert machine is not None, f"no cluster runs in {folder}"
        yield machine
        return
    with node(config, directory, Wanted(kubevirt=True, cdi=_has_cdi())) as machine:
        yield machine


@pytest.fixture(scope="package")
def cluster(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory, tiny_guest: tiny.TinyImage) -> Iterator[Cluster]:
    """A cluster with KubeVirt, made from nothing."""
    virtctl = built(VIRTCTLS["1.9"], say(pytestconfig)) / "virtctl"
    with _whole(pytestconfig, tmp_path_factory.mktemp("cluster")) as machine:
        file = machine.directory / "files" / "tiny.tar"
        images.disk(file, TINY, tiny_guest.disk)
        kubevirt.load_archive(machine, file)
        access = control.access(machine)
        home = tmp_path_factory.mktemp("home")
        api = Api(access)
        try:
            kubectl = Kubectl(machine.directory / "programs" / "kubectl", access, home)
            yield Cluster(machine, api, kubectl, Virtctl(virtctl, "1.9", access.kubeconfig, home / "virtctl"), cdi.is_installed(machine))
        finally:
            api.close()
