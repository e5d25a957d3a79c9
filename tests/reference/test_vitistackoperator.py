"""Vitistack's own operator, unmodified, with `paddock up` as its KubeVirt: a Machine with addresses, disks and a guest that has booted.

No package registry has its source: `tests/reference/clones.py` says where a developer names clones of it. It is built from them once.
"""

import base64
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.base.images.build import tiny
from paddock.engine.machine.process import holders
from tests.host.fronts.life import Proxy
from tests.host.guests import serving as web
from tests.host.guests import tiny_guest
from tests.host.machine import lacks
from tests.reference import clones, recipes
from tests.reference.build import Binaries
from tests.reference.client import Json, Kubectl
from tests.reference.embedded import Embedded, serving
from tests.reference.server import launched, running

pytestmark = [pytest.mark.reference, pytest.mark.long]
__all__ = ["tiny_guest"]
SECONDS = 600.0
CONFIG = "kubevirt-provider"


def objects(kubeconfig: Path) -> list[Json]:
    """What the operator wants to find beside a Machine: its KubeVirt, itself, and a class."""
    group = "vitistack.io/v1alpha1"
    config = {"name": CONFIG, "secretNamespace": "default", "kubeconfigSecretRef": CONFIG}
    provider: Json = {
        "providerType": "kubevirt",
        "displayName": "Paddock",
        "region": "lab",
        "authentication": {"type": "credentials"},
    }
    size: Json = {"enabled": True, "default": True, "category": "Standard", "cpu": {"cores": 1}, "memory": {"quantity": "512Mi"}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": CONFIG, "namespace": "default"},
            "data": {"kubeconfig": base64.b64encode(kubeconfig.read_bytes()).decode()},
        },
        {"apiVersion": group, "kind": "KubevirtConfig", "metadata": {"name": CONFIG}, "spec": config},
        {"apiVersion": group, "kind": "MachineProvider", "metadata": {"name": CONFIG}, "spec": provider},
        {"apiVersion": group, "kind": "MachineClass", "metadata": {"name": "tiny"}, "spec": {**size, "machineProviders": ["kubevirt"]}},
    ]


MACHINE: Json = {
    "apiVersion": "vitistack.io/v1alpha1",
    "kind": "Machine",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "provider": "kubevirt",
        "machineClass": "tiny",
        "name": "web",
        "disks": [{"name": "root", "sizeGB": 1, "boot": True, "type": "virtio"}, {"name": "data", "sizeGB": 1, "type": "virtio"}],
    },
}


def image(url: str) -> Json:
    """The claim of the boot disk, which has the machine's name and which the operator takes as it is."""
    spec = {"source": {"http": {"url": url}}, "storage": {"volumeMode": "Block", "resources": {"requests": {"storage": "1Gi"}}}}
    return {
        "apiVersion": "cdi.kubevirt.io/v1beta1",
        "kind": "DataVolume",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": spec,
    }


@pytest.fixture
def host(tiny_guest: tiny.TinyImage, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Embedded, str]]:
    """A host with guests, and the address of an image."""
    for need in ("qemu", "ovmf"):
        if reason := lacks(need):
            pytest.skip(f"needs {need}: {reason}")
    root = Path(tempfile.mkdtemp(prefix="pdkv-", dir="/tmp"))
    try:
        with web(partial(Proxy, disk=tiny_guest.disk, sent=[])) as address:
            options = ("--network", "user", "--image-from", "127.0.0.1", "--memory-overcommit", "100")
            with serving(root / "server", *options, command="up") as server:
                yield server, f"http://{address}/tiny.qcow2"
    finally:
        for lock in root.rglob("machines/*/lock"):
            for pid in holders(lock):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def program(pytestconfig: pytest.Config) -> Path:
    """The operator's program; the first run on a machine builds it, and says so past pytest's capturing."""
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    try:
        return clones.built(recipes.VITISTACK, terminal.write_line if terminal else print) / "kubevirt-operator"
    except clones.NoClone as missing:
        pytest.skip(f"needs published: {missing}")


@pytest.fixture
def definitions() -> str:
    """The operator's own definitions."""
    try:
        return recipes.VITISTACK.beside[0].show("crds.yaml").decode()
    except clones.NoClone as missing:
        pytest.skip(f"needs published: {missing}")


def until(operator: "subprocess.Popen[bytes]", log: Path, what: str, holds: Callable[[], Any]) -> None:
    """Return as soon as it holds; fail when the operator ends, or when it takes too long."""
    deadline = time.monotonic() + SECONDS
    while not holds():
        assert operator.poll() is None and time.monotonic() < deadline, f"{what}: not yet; the operator says {log.read_text()[-4000:]}"
        time.sleep(0.5)


@pytest.mark.spec("vitistack", 94)
def test_its_machine_has_addresses_disks_and_a_guest(
    definitions: str, program: Path, binaries: Binaries, host: tuple[Embedded, str], tmp_path: Path
) -> None:
    server, url = host
    kubevirt = Kubectl(binaries.kubectl, server.access, tmp_path)
    kubevirt.ok("apply", "-f", "-", stdin=yaml.safe_dump(image(url)))
    kubevirt.ok("wait", "dv/web", "--for=jsonpath={.status.phase}=Succeeded", f"--timeout={SECONDS:.0f}s")
    supervisor = tmp_path / "supervisor"
    supervisor.mkdir()
    with running(binaries, supervisor) as access:
        theirs = Kubectl(binaries.kubectl, access, supervisor)
        theirs.ok("apply", "--server-side", "-f", "-", stdin=definitions)
        theirs.ok("wait", "--for=condition=Established", "crd", "--all", f"--timeout={SECONDS:.0f}s")
        theirs.ok("apply", "-f", "-", stdin=yaml.safe_dump_all(objects(server.kubeconfig)))
        theirs.ok("apply", "-f", "-", stdin=yaml.safe_dump(MACHINE))
        log = tmp_path / "operator.log"
        command = ["env", f"KUBECONFIG={access.kubeconfig}", str(program), "--health-probe-bind-address", "127.0.0.1:0"]

        def status() -> Json:
            found: Json = yaml.safe_load(theirs.ok("get", "machine.vitistack.io", "web", "-o", "yaml")).get("status") or {}
            return found

        with launched(command, log) as operator:
            wait = partial(until, operator, log)
            wait("its Machine has addresses", lambda: status().get("phase") == "Running" and status().get("ipAddresses"))
            told = status()
            vmi = yaml.safe_load(kubevirt.ok("get", "vmi", "web", "-o", "yaml"))
            assert told["state"] == "Running" and told["ipAddresses"][0] in vmi["status"]["interfaces"][0]["ipAddresses"]
            assert {each["pvcName"] for each in told["disks"]} == {"web", "web-data"}
            assert told["networkInterfaces"][0]["macAddress"] == vmi["status"]["interfaces"][0]["mac"]
            wait("its guest's agent answers", lambda: _answers(kubevirt))
            theirs.ok("delete", "machine.vitistack.io", "web", f"--timeout={SECONDS:.0f}s")
            # The boot disk is the user's own, as its labels say.
            wait("the machine is gone", lambda: kubevirt.ok("get", "vm,pvc", "-o", "name").split() == ["persistentvolumeclaim/web"])


def _answers(kubevirt: Kubectl) -> bool:
    words = "{.status.conditions[?(@.type=='AgentConnected')].status}"
    return kubevirt.ok("get", "vmi", "web", "-o", f"jsonpath={words}") == "True"
