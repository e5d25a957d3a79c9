"""The documents' own examples, unchanged, applied by the real kubectl to a host that runs machines: a registry and a web server on
loopback stand for those of the internet, by a mirror and a proxy.
"""

import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from paddock.engine.machine.process import holders
from paddock.kubernetes import catalog
from tests.host.guests import registry, serving, tiny_disk_image, tiny_guest
from tests.host.machine import lacks
from tests.reference.build import Binaries
from tests.reference.client import Kubectl
from tests.reference.embedded import Embedded
from tests.reference.embedded import serving as server

# Fixtures that pytest finds here.
__all__ = ["registry", "tiny_disk_image", "tiny_guest"]
FEDORA = str(catalog.folder("kubevirt") / "examples" / "fedora.yaml")
MACHINE = str(catalog.folder("kubermatic") / "examples" / "virtualmachine.yaml")
POOL = str(catalog.folder("kubermatic") / "examples" / "pool.yaml")
RUNNING_SECONDS = 150.0


class Proxy(SimpleHTTPRequestHandler):
    """Every address is one file. `asked` counts downloads."""

    asked: list[str] = []

    def __init__(self, *words: Any, disk: Path, **more: Any) -> None:
        self._disk = disk
        super().__init__(*words, **more)

    def translate_path(self, path: str) -> str:
        """The file, whatever is asked for."""
        if self.command == "GET":
            self.asked.append(path)
        return str(self._disk)

    def log_message(self, format: str, *words: object) -> None:
        """Nothing."""


@pytest.fixture
def host(registry: Any, tiny_guest: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Embedded]:
    """A host for which the internet is loopback."""
    if reason := lacks("qemu"):
        pytest.skip(f"needs qemu: {reason}")
    root = Path(tempfile.mkdtemp(prefix="pdks-", dir="/tmp"))
    registry.push("containerdisks/fedora:38", {"disk/disk.qcow2": tiny_guest.disk})
    Proxy.asked.clear()
    try:
        with serving(partial(Proxy, disk=tiny_guest.disk)) as proxy:
            monkeypatch.setenv("http_proxy", f"http://{proxy}")
            monkeypatch.setenv("no_proxy", "127.0.0.1")
            mirrors = ("--registry-mirror", f"quay.io={registry.address}", "--insecure-registry", registry.address)
            with server(root / "server", "--network", "user", "--image-from", "127.0.0.1", *mirrors, command="up") as running:
                yield running
    finally:
        for lock in root.rglob("machines/*/lock"):
            for pid in holders(lock):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def kubectl(host: Embedded, binaries: Binaries, tmp_path: Path) -> Kubectl:
    """The real kubectl, pointed at it."""
    return Kubectl(binaries.kubectl, host.access, tmp_path)


def until_running(kubectl: Kubectl, *names: str) -> None:
    """Look until these machines run, and no others are there."""
    deadline = time.monotonic() + RUNNING_SECONDS
    while statuses(kubectl) != dict.fromkeys(names, "Running"):
        if time.monotonic() > deadline:
            pytest.fail(f"{statuses(kubectl)}\n{kubectl.ok('get', 'events')}\n{kubectl.ok('get', 'dv,vmi', '-o', 'yaml')}")
        time.sleep(0.2)


def found(kubectl: Kubectl, *what: str) -> list[dict[str, Any]]:
    """The objects of a list."""
    items: list[dict[str, Any]] = json.loads(kubectl.ok("get", *what, "-o", "json"))["items"]
    return items


def statuses(kubectl: Kubectl) -> dict[str, str]:
    """The machines and their states in one word."""
    machines = found(kubectl, "virtualmachines.kubevirt.io")
    return {each["metadata"]["name"]: each.get("status", {}).get("printableStatus", "") for each in machines}


@pytest.mark.spec("kubevirt", 1, 2)
def test_the_machine_of_the_schema(kubectl: Kubectl) -> None:
    said = kubectl.run("apply", "-f", FEDORA, "--validate=strict")
    assert (said.code, said.errors) == (0, "")
    until_running(kubectl, "fedora-vm")
    kubectl.ok("wait", "--for=condition=Ready", "--timeout=60s", "virtualmachines.kubevirt.io/fedora-vm")
    header, row = kubectl.ok("get", "vm", "fedora-vm").strip().splitlines()
    assert header.split() == ["NAME", "AGE", "STATUS", "READY"]
    assert (row.split()[0], row.split()[2:]) == ("fedora-vm", ["Running", "True"])
    (volume,) = found(kubectl, "datavolumes")
    assert (volume["metadata"]["name"], volume["status"]["phase"], volume["status"]["progress"]) == ("fedora-dv", "Succeeded", "100.0%")
    assert volume["spec"]["source"]["registry"]["url"] == "docker://quay.io/containerdisks/fedora:38"
    (instance,) = found(kubectl, "virtualmachineinstances")
    assert instance["status"]["volumeStatus"][0]["size"] == 20 << 30


@pytest.mark.spec("kubevirt", 3)
@pytest.mark.parametrize("order", [1, -1], ids=["machine first", "source first"])
def test_the_machine_on_a_data_source(kubectl: Kubectl, order: int, tmp_path: Path) -> None:
    documents = [each for each in Path(MACHINE).read_text().split("\n---\n") if "kind:" in each]
    assert len(documents) == 2
    for number, document in enumerate(documents[::order]):
        (tmp_path / f"{number}.yaml").write_text(document)
        said = kubectl.run("apply", "-f", str(tmp_path / f"{number}.yaml"), "--validate=strict")
        assert (said.code, said.errors) == (0, "")
    until_running(kubectl, "my-vm-with-http-data-volume")
    (machine,) = found(kubectl, "virtualmachines")
    (template,) = machine["spec"]["dataVolumeTemplates"]
    assert template["spec"]["sourceRef"]["apiGroup"] == "cdi.kubevirt.io"
    # The address is fixed in the DataVolume, which says where it comes from.
    (volume,) = found(kubectl, "datavolumes")
    assert "http" in volume["spec"]["source"] and "sourceRef" not in volume["spec"]
    name = template["spec"]["sourceRef"]["name"]
    assert volume["metadata"]["annotations"]["virtualization.k8c.io/data-source"] == f"default/{name}"
    assert volume["status"]["phase"] == "Succeeded"


@pytest.mark.spec("kubevirt", 4, 5)
def test_the_pool(kubectl: Kubectl) -> None:
    said = kubectl.run("apply", "-f", POOL, "--validate=strict")
    assert (said.code, said.errors) == (0, "")
    until_running(kubectl, *(f"my-vm-http-pool-{number}" for number in range(3)))
    volumes = {each["metadata"]["name"]: each["status"]["phase"] for each in found(kubectl, "datavolumes")}
    assert volumes == {f"my-pool-vm-data-volume-{number}": "Succeeded" for number in range(3)}
    assert len(Proxy.asked) == 1
    uids = set()
    for version in ("v1beta1", "v1alpha1"):
        (pool,) = found(kubectl, f"virtualmachinepools.{version}.pool.kubevirt.io")
        assert pool["spec"]["virtualMachineTemplate"]["spec"]["template"]["spec"]["domain"]
        uids.add(pool["metadata"]["uid"])
    (flat,) = found(kubectl, "virtualmachinepools.v1alpha1.kubevirt.io")
    assert flat["spec"]["virtualMachineTemplate"]["spec"]["domain"]
    assert uids == {flat["metadata"]["uid"]}
    assert "unchanged" in kubectl.ok("apply", "-f", POOL)
    nested = Path(POOL).read_text().replace("apiVersion: kubevirt.io/v1alpha1", "apiVersion: pool.kubevirt.io/v1beta1")
    kubectl.ok("apply", "-f", "-", stdin=nested)
    (again,) = found(kubectl, "virtualmachinepools.v1beta1.pool.kubevirt.io")
    assert again["metadata"]["generation"] == flat["metadata"]["generation"]
