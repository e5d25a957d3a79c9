"""A running guest goes from one real server to another: kubectl applies objects, and nothing else is done. Each server is killed once."""

import asyncio
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.host.guests import Registry
from tests.host.moves.conftest import Data, OneAtATime, Pair, answering, document
from tests.host.runs.conftest import Host

pytestmark = [pytest.mark.needs("qemu"), pytest.mark.needs("kubectl"), pytest.mark.long]

MAC, UUID = "02:00:00:00:38:01", "5d307ca9-b3ef-428c-8861-06e72d69f223"
# It keeps its number in memory, and writes each to the disk before it says it.
COUNTER = "(i=0; while :; do i=$((i+1)); echo $i > /dev/vdb; echo $i > /run/count; sleep 0.1; done &)"


SLOW = {
    "apiVersion": "migrations.kubevirt.io/v1alpha1",
    "kind": "MigrationPolicy",
    "metadata": {"name": "slow"},
    "spec": {"selectors": {"namespaceSelector": {"kubernetes.io/metadata.name": "default"}}, "bandwidthPerMigration": "1Mi"},
}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class Servers(Pair):
    """Two servers that trust each other."""

    def __init__(self, root: Path, registry: str) -> None:
        super().__init__(root, registry)
        self.ports = [free_port(), free_port()]
        for host, port in zip(self.hosts, self.ports, strict=True):
            host.options = (f"--migrations=127.0.0.1:{port}",)

    def kubectl(self, host: Host, *words: str, text: str = "") -> str:
        """Run kubectl; it must succeed."""
        command = ["kubectl", f"--kubeconfig={host.root / 'kubeconfig'}", *words]
        found = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stderr
        return found.stdout

    def apply(self, host: Host, *documents: Data) -> None:
        for each in documents:
            self.kubectl(host, "apply", "-f", "-", text=json.dumps(each))

    def get(self, host: Host, kind: str, name: str, namespace: str = "default") -> Data:
        found = self.kubectl(host, "get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found")
        return dict(json.loads(found)) if found else {}

    def until(self, host: Host, kind: str, name: str, holds: Callable[[Data], object], seconds: float = 60) -> Data:
        deadline, found = time.monotonic() + seconds, Data()
        while not holds(found := self.get(host, kind, name)):
            assert time.monotonic() < deadline, (kind, name, found.get("status"))
            time.sleep(0.2)
        return found

    def trust(self) -> None:
        """What a person does once: open the gate, and carry the authority of each to the other."""
        gates = {"spec": {"configuration": {"developerConfiguration": {"featureGates": ["DecentralizedLiveMigration"]}}}}
        for host in self.hosts:
            self.kubectl(host, "patch", "kubevirt", "kubevirt", "-n", "kubevirt", "--type=merge", "-p", json.dumps(gates))
        for host, other in (self.hosts, self.hosts[::-1]):
            bundle = self.until_map(other)
            self.kubectl(
                host,
                *("patch", "configmap", "kubevirt-external-ca", "-n", "kubevirt", "--type=merge", "-p"),
                json.dumps({"data": {"ca-bundle": bundle}}),
            )

    def until_map(self, host: Host) -> str:
        deadline = time.monotonic() + 60
        while not (found := self.get(host, "configmap", "kubevirt-ca", "kubevirt")) or not self.get(
            host, "configmap", "kubevirt-external-ca", "kubevirt"
        ):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        return str(found["data"]["ca-bundle"])

    def migrate(self, id: str = "m1") -> None:
        """Make both migrations, as a person does."""
        self.apply(self.b, migration("receive", id))
        made = self.until(self.b, "vmim", id, lambda found: (found.get("status") or {}).get("synchronizationAddresses"))
        (url,) = made["status"]["synchronizationAddresses"]
        assert url == f"127.0.0.1:{self.ports[1]}"
        self.apply(self.a, migration("sendTo", id, connectURL=url))

    def phase(self, host: Host, id: str = "m1") -> str:
        return str((self.get(host, "vmim", id).get("status") or {}).get("phase", ""))

    def why(self, host: Host, id: str = "m1") -> str:
        return str(((self.get(host, "vmim", id).get("status") or {}).get("migrationState") or {}).get("failureReason", ""))


def migration(side: str, id: str, **more: str) -> Data:
    spec = {"vmiName": "web", side: {"migrationID": id, **more}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration", "metadata": {"name": id}, "spec": spec}


def counting(image: str, *, receives: bool = False) -> Data:
    """The machine, and the one that waits for its guest: with empty disks of the same sizes."""
    made = document(image)
    hardware = made["spec"]["template"]["spec"]
    hardware["domain"]["firmware"] = {"uuid": UUID, "serial": UUID}
    hardware["domain"]["devices"]["interfaces"] = [{"name": "default", "masquerade": {}, "macAddress": MAC}]
    hardware["networks"] = [{"name": "default", "pod": {}}]
    if receives:
        made["metadata"]["annotations"] = {"kubevirt.io/restore-run-strategy": "Always"}
        made["spec"]["runStrategy"] = "WaitAsReceiver"
        for each in made["spec"]["dataVolumeTemplates"]:
            each["spec"]["source"] = {"blank": {}}
    return made


@pytest.fixture
def servers(work: Path, registry: Registry, tiny_disk_image: str) -> Iterator[Servers]:
    """Two servers; the guest of the first counts, and the second waits for it."""
    made = Servers(work, registry.address)
    try:
        for host in made.hosts:
            host.start()
        made.trust()
        made.apply(made.a, counting(tiny_disk_image))
        made.apply(made.b, counting(tiny_disk_image, receives=True))
        made.do(made.a, lambda _: begin(made.a))
        made.until(made.b, "vmi", "web", lambda found: (found.get("status") or {}).get("nodeName"))
        yield made
    finally:
        for host in made.hosts:
            host.end()
        if os.environ.get("PADDOCK_SHOW_MOVES"):
            for host in made.hosts:
                print((host.root / "said").read_text()[-4000:])


async def begin(host: Host) -> None:
    async with answering(host) as console:
        await console.shell(COUNTER, 60)


def count(servers: Servers, host: Host) -> tuple[int, int]:
    """Return the number in the guest's memory, and the one on its disk."""

    async def ask() -> tuple[int, int]:
        async with answering(host) as console:
            said = await console.shell("cat /run/count; head -n1 /dev/vdb", 60)
        memory, disk = said.split()
        return int(memory), int(disk)

    return asyncio.run(ask())


def is_there(servers: Servers, before: int) -> None:
    """The guest goes on at the second server, and nowhere else."""
    memory, disk = count(servers, servers.b)
    assert memory > before and abs(memory - disk) < 50, "it booted, or lost what it wrote"
    assert servers.get(servers.a, "vmi", "web") == {} and not servers.a.qemus()
    source = servers.get(servers.a, "vm", "web")
    assert source["spec"]["runStrategy"] == "Halted"
    assert f"127.0.0.1:{servers.ports[1]}" in source["metadata"]["annotations"]["paddock.dev/fence"]
    assert servers.get(servers.b, "vm", "web")["spec"]["runStrategy"] == "Always"


@pytest.mark.spec("kubevirt", 276, 281, 291)
def test_a_running_guest_goes_by_objects_alone(servers: Servers) -> None:
    before, _ = count(servers, servers.a)
    shown = servers.get(servers.b, "kubevirt", "kubevirt", "kubevirt")["status"]["synchronizationAddresses"]
    assert shown == [f"127.0.0.1:{servers.ports[1]}"]
    servers.migrate()
    for host in servers.hosts:
        servers.until(host, "vmim", "m1", lambda found: found["status"].get("phase") in ("Succeeded", "Failed"))
        assert servers.phase(host) == "Succeeded", servers.why(host, "m1")
    is_there(servers, before)
    first = count(servers, servers.b)
    time.sleep(1)
    assert count(servers, servers.b)[0] > first[0]
    for host in servers.hosts:
        for path in (host.root / "said", host.root / "engine"):
            files = [path] if path.is_file() else [each for each in path.rglob("*.log") if each.is_file()]
            assert not any(b"PRIVATE KEY" in each.read_bytes() for each in files)


@pytest.mark.spec("kubevirt", 285, 289)
@pytest.mark.parametrize("victim", ["source", "target", "stopped source"])
def test_a_server_ends_while_the_guest_is_on_its_way(servers: Servers, victim: str) -> None:
    before, _ = count(servers, servers.a)
    host = servers.b if victim == "target" else servers.a
    servers.apply(servers.a, SLOW)
    with OneAtATime(servers.hosts):
        servers.migrate()
        deadline = time.monotonic() + 60
        while servers.phase(servers.a) in ("", "Synchronizing") and time.monotonic() < deadline:
            time.sleep(0.02)
        host.stop() if victim.startswith("stopped") else host.kill()
        host.start()
        ends = {}
        for each in servers.hosts:
            servers.until(each, "vmim", "m1", lambda found: found["status"].get("phase") in ("Succeeded", "Failed"), 120)
            ends[each.root.name] = servers.phase(each)
    assert set(ends.values()) == {"Failed"}, ends
    memory, disk = count(servers, servers.a)
    assert memory > before and abs(memory - disk) < 50
    assert "paddock.dev/fence" not in servers.get(servers.a, "vm", "web")["metadata"].get("annotations", {})
    assert servers.get(servers.b, "vmi", "web")["status"]["phase"] == "WaitingForSync" and not servers.b.qemus()
    # The next one succeeds.
    servers.kubectl(servers.a, "delete", "migrationpolicy", "slow")
    servers.migrate("m2")
    for each in servers.hosts:
        servers.until(each, "vmim", "m2", lambda found: found["status"].get("phase") in ("Succeeded", "Failed"), 150)
        assert servers.phase(each, "m2") == "Succeeded", servers.why(each, "m2")
    is_there(servers, memory)
