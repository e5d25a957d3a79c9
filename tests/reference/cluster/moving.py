"""A `paddock up` beside the reference cluster, and `paddock move` between the two."""

import asyncio
import contextlib
import hashlib
import os
import re
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from paddock.base.clock import SystemClock
from paddock.kubernetes.client import kubeconfig
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.http.https import Https
from tests.host.guests import Registry
from tests.host.moves.conftest import MoveCommand, answering
from tests.host.runs.conftest import Host, Talk
from tests.reference.client import Json
from tests.reference.cluster import control, namespace
from tests.reference.cluster.conftest import BOOT_SECONDS, Cluster
from tests.reference.virtctl.conftest import INSTANCES, MACHINES

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
DISKS = "/apis/cdi.kubevirt.io/v1beta1/namespaces/default/datavolumes"
EXPORTS = "/apis/export.kubevirt.io/v1/namespaces/default/virtualmachineexports"
OF_MOVES = (MACHINES, INSTANCES, CLAIMS, DISKS, EXPORTS, "/api/v1/namespaces/default/pods")


class ClusterSide:
    """The cluster as one side of a move, with the shape of a host."""

    def __init__(self, cluster: Cluster) -> None:
        self.root = cluster.machine.directory

    @contextlib.asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """A client of it."""
        access = kubeconfig.find({}, SystemClock(), explicit=self.root / "kubeconfig")
        async with Client(Https(access)) as client:
            yield client


class ClusterMove(MoveCommand):
    """The command where one side is the cluster, whose guests are slower."""

    seconds = int(BOOT_SECONDS)


class Between:
    """Both servers, and the command each way."""

    def __init__(self, host: Host, cluster: Cluster) -> None:
        self.host, self.cluster = host, cluster
        self.lines: list[str] = []
        files = host.root / "kubeconfig", control.access(cluster.machine).kubeconfig
        self.there, self.back = (ClusterMove(*each, self.lines) for each in (files, files[::-1]))

    def on_host(self, command: str) -> str:
        """Return what the guest on the host answers to a command."""
        return asyncio.run(_asked(self.host, command))

    def on_cluster(self, command: str) -> str:
        """Return what the guest on the cluster answers to a command."""
        return asyncio.run(_asked(ClusterSide(self.cluster), command))

    def do(self, script: Callable[[Talk], Awaitable[object]]) -> None:
        """Run a script with the host."""

        async def inside() -> None:
            async with self.host.client() as client:
                await script(Talk(self.host, client))

        asyncio.run(inside())

    def guests(self, name: str = "web") -> tuple[list[int], list[int]]:
        """Return the QEMUs of a machine, on the host and on the cluster."""
        here = [pid for pids in self.host.qemus().values() for pid in pids]
        return here, self.processes("qemu-system", f"guest=default_{name},")

    def processes(self, *words: str) -> list[int]:
        """Return the processes of the node whose command lines have these words."""
        found = []
        for pid in namespace.processes(self.cluster.machine.directory):
            with contextlib.suppress(OSError):
                line = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
                if all(word in line for word in words):
                    found.append(pid)
        return found

    def lengths(self) -> set[tuple[str, str]]:
        """Return the disks that the command has carried, with every length that it says of them."""
        return {found for line in self.lines for found in re.findall(r"disk (\S+) is there: (\d+) bytes", line)}

    def file(self, claim: str) -> Path:
        """Return the disk of a claim of the cluster."""
        volume: str = self.cluster.get(f"{CLAIMS}/{claim}")["spec"]["volumeName"]
        return self.cluster.machine.directory / "volumes" / volume / "disk.img"

    def clean(self) -> None:
        """Delete every machine and disk of the cluster's namespace."""
        # A machine that is being deleted makes a disk of its templates anew.
        for kinds in ("virtualmachines.kubevirt.io", "vmexport,dv,pvc"):
            self.cluster.kubectl.ok("delete", kinds, "--all", "--timeout=100s")
        until(lambda: not any(map(self.cluster.names, OF_MOVES)))

    @contextlib.contextmanager
    def one_at_a_time(self, name: str = "web") -> Iterator[None]:
        """A block in which a machine never runs at both sides."""
        end, twice, looks = threading.Event(), list[str](), 0

        def look() -> None:
            nonlocal looks
            while not end.wait(0.1):
                running = self.guests(name)
                looks += 1
                if all(running):
                    twice.append(str(running))

        thread = threading.Thread(target=look)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()
        assert looks > 10 and twice == []


@pytest.fixture
def between(cluster: Cluster, work: Path, registry: Registry) -> Iterator[Between]:
    """A host that is up beside the cluster, which is empty before and after."""
    host = Host(work, registry.address)
    made = Between(host, cluster)
    try:
        host.start()
        yield made
    finally:
        made.clean()
        host.end()
        if os.environ.get("PADDOCK_SHOW_MOVES"):
            print("\n".join(made.lines))


async def _asked(side: Any, command: str) -> str:
    async with answering(side, BOOT_SECONDS) as console:
        return (await console.shell(command, BOOT_SECONDS)).strip()


def until(true: Callable[[], object], seconds: float = BOOT_SECONDS) -> None:
    """Wait for something."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def digest(file: Path) -> str:
    """Return the SHA-256 of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def fill(file: Path, size: int) -> str:
    """Overwrite the beginning of a disk with data that does not compress, and return the SHA-256 of the whole."""
    with file.open("r+b") as opened:
        opened.write(os.urandom(size))
    return digest(file)


def machine(name: str, *disks: str, size: str = "256Mi") -> Json:
    """A machine that is off, with blank disks of its own."""
    storage = {"resources": {"requests": {"storage": size}}}
    templates = [{"metadata": {"name": each}, "spec": {"source": {"blank": {}}, "storage": storage}} for each in disks]
    guest = {
        "domain": {"memory": {"guest": "64Mi"}, "devices": {"disks": [{"name": each, "disk": {"bus": "virtio"}} for each in disks]}},
        "volumes": [{"name": each, "dataVolume": {"name": each}} for each in disks],
    }
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {"runStrategy": "Halted", "dataVolumeTemplates": templates, "template": {"spec": guest}},
    }
