"""VirtRigaud's own manager on `paddock apiserver` drives Paddock's providers: the fake one, with and without TLS, qemu and libvirt."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from paddock.base.images.build import tiny
from tests.host.drivers.conftest import libvirtd
from tests.host.guests import Shelf, tiny_guest, web
from tests.host.machine import lacks
from tests.reference.client import MERGE_PATCH, Api, Json
from tests.reference.embedded import serving
from tests.reference.server import launched
from tests.reference.virtrigaud.objects import SERVER_NAME, Objects, has_phase, has_power, is_powered
from tests.reference.virtrigaud.programs import Provider, ours, with_files

if TYPE_CHECKING:
    from tests.host.drivers.libvirtd import Libvirtd

# Fixtures that pytest finds here.
__all__ = ["libvirtd", "tiny_guest", "web"]
pytestmark = [
    pytest.mark.reference,
    pytest.mark.long,
    pytest.mark.spec("virtrigaud", 96),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: names of the manager's providers are laid over /etc/hosts"),
]
_DELETION_SECONDS = 10.0
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
REFS = {"providerRef": {"name": "lab"}, "classRef": {"name": "small"}, "imageRef": {"name": "image"}}
SCRIPT = 'tasks = "mixed"\n[[machines]]\nname = "elder"\n'


@contextmanager
def pods(api: Api) -> Iterator[None]:
    """Say of every Deployment that its Pod is ready, as a kubelet would: the test runs the program itself."""
    over = threading.Event()

    def work() -> None:
        mine = Api(api.access)
        while not over.wait(0.5):
            for each in mine.request("GET", DEPLOYMENTS).body.get("items", ()):
                if not each.get("status", {}).get("readyReplicas"):
                    status = {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1}
                    mine.request("PATCH", f"{DEPLOYMENTS}/{each['metadata']['name']}/status", {"status": status}, headers=MERGE_PATCH)
        mine.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.fixture
def objects(upstream: Path, tmp_path: Path) -> Iterator[Objects]:
    """An API server of Paddock's without controllers, and upstream's manager on it."""
    hosts = tmp_path / "hosts"
    hosts.write_text(f"127.0.0.1 localhost {SERVER_NAME.format('lab')}\n")
    with serving(tmp_path / "server") as server:
        options = ("--metrics-bind-address=0", "--health-probe-bind-address=0", f"--kubeconfig={server.kubeconfig}")
        with launched([*with_files({"/etc/hosts": hosts}), str(upstream / "manager"), *options], tmp_path / "manager.log"):
            api = Api(server.access)
            with pods(api):
                yield Objects(api)
            api.close()


def introduced(objects: Objects, provider: Provider, kind: str, tls: Path | None = None) -> None:
    """Make a Provider, and wait until the manager knows what it can do."""
    objects.secret("none")
    security: Json = {"enabled": False}
    if tls is not None:
        objects.secret("lab-tls", tls)
        security = {"enabled": True, "secretRef": {"name": "lab-tls"}}
    runtime = {"image": "none:1", "service": {"port": provider.port, "tls": security}}
    objects.make("Provider", "lab", type=kind, endpoint="qemu:///system", credentialSecretRef={"name": "none"}, runtime=runtime)
    objects.until("Provider", "lab", lambda status: status.get("healthy") and status.get("reportedCapabilities"))


def lived(objects: Objects, url: str, graceful: bool = True) -> None:
    """The life of a machine, from an image that is prepared to nothing that is left."""
    objects.make("VMClass", "small", cpu=1, memory="256Mi", diskDefaults={"size": "1Gi"})
    objects.make(
        "VMImage", "image", source={"libvirt": {"url": url, "format": "qcow2"}}, prepare={"onMissing": "Import", "validateChecksum": False}
    )
    document = {"cloudInit": {"inline": "#cloud-config\nhostname: web\n"}}
    objects.make("VirtualMachine", "web", **REFS, disks=[{"name": "data", "sizeGiB": 1}], userData=document, powerState="On")
    first = objects.until("VirtualMachine", "web", is_powered("On"))
    for state, seen in (*((("OffGraceful", "Off"), ("On", "On")) if graceful else ()), ("Off", "Off")):
        objects.change("VirtualMachine", "web", powerState=state)
        objects.until("VirtualMachine", "web", has_power(seen))
    objects.change("VMClass", "small", cpu=2)
    objects.until("VirtualMachine", "web", lambda status: status.get("currentResources", {}).get("cpu") == 2)
    objects.make("VMSnapshot", "s", vmRef={"name": "web"})
    assert objects.until("VMSnapshot", "s", has_phase("Ready"))["snapshotID"]
    objects.make("VMClone", "c", source={"vmRef": {"name": "web"}}, target={"name": "copy"}, options={"type": "FullClone"})
    objects.until("VMClone", "c", has_phase("Ready"))
    copy = objects.until("VirtualMachine", "copy", lambda status: status.get("id"))
    assert copy["id"] != first["id"]
    objects.delete("VMClone", "c")
    objects.delete("VMSnapshot", "s")
    for name in ("copy", "web"):
        objects.delete("VirtualMachine", name)


def adopted(objects: Objects) -> None:
    """The machine that was there before, taken over and deleted."""
    # The manager lets a machine go before its provider has deleted it, and would take it over again.
    time.sleep(_DELETION_SECONDS)
    objects.annotate("Provider", "lab", **{"virtrigaud.io_adopt-vms": "true"})
    end = time.monotonic() + 120
    while not (found := objects.list("VirtualMachine")):
        assert time.monotonic() < end, objects.status("Provider", "lab")
        time.sleep(0.5)
    names = [machine["metadata"]["name"] for machine in found]
    assert len(names) == 1 and "elder" in names[0], names
    (name,) = names
    objects.until("VirtualMachine", name, lambda status: status.get("id"))
    objects.annotate("Provider", "lab", **{"virtrigaud.io_adopt-vms": "false"})
    objects.delete("VirtualMachine", name)


def test_the_fake_driver_in_plain_text(objects: Objects, tmp_path: Path) -> None:
    script = tmp_path / "fake.toml"
    script.write_text(SCRIPT)
    with ours("fake", tmp_path, None, "--script", str(script)) as provider:
        introduced(objects, provider, "libvirt")
        lived(objects, "https://images.example/tiny.qcow2")
        adopted(objects)


@pytest.mark.spec("virtrigaud", 101)
def test_the_fake_driver_with_mutual_tls(objects: Objects, material: Path, tmp_path: Path) -> None:
    with ours("fake", tmp_path, material, "--allow", "manager.example") as provider:
        introduced(objects, provider, "libvirt", material)
        lived(objects, "https://images.example/tiny.qcow2")


@pytest.mark.needs("qemu")
def test_the_own_engine(objects: Objects, tmp_path: Path, web: Shelf, tiny_guest: tiny.TinyImage) -> None:
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    with serving(tmp_path / "engine", "--network", "user", "--image-from", "127.0.0.1", command="up") as engine:
        (credentials / "kubeconfig").write_bytes(engine.kubeconfig.read_bytes())
        with ours("qemu", tmp_path, None, "--credentials-dir", str(credentials), PROVIDER_ENDPOINT=engine.access.url) as provider:
            introduced(objects, provider, "qemu")
            lived(objects, web.put(tiny_guest.disk), graceful=False)


def test_a_libvirtd(objects: Objects, libvirtd: "Libvirtd", tmp_path: Path, web: Shelf, tiny_guest: tiny.TinyImage) -> None:
    if reason := lacks("qemu"):
        pytest.skip(f"needs qemu: {reason}")
    environment = {"PROVIDER_ENDPOINT": libvirtd.uri, "PROVIDER_IMAGE_HOSTS": "127.0.0.1"}
    with ours("libvirt", tmp_path, None, "--credentials-dir", str(tmp_path), **environment) as provider:
        introduced(objects, provider, "libvirt")
        lived(objects, web.put(tiny_guest.disk), graceful=False)
