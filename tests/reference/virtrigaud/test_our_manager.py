"""`paddock up` drives VirtRigaud's own providers: its mock, with and without TLS, and that for vSphere on VMware's simulator."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyVmomi import vim

from paddock_drivers.vsphere.inventory import VSphereInventory
from tests.kit.providers import providertls
from tests.reference.client import Api, Json
from tests.reference.embedded import serving
from tests.reference.virtrigaud.objects import SERVER_NAME, Objects, condition, has_phase, is_powered
from tests.reference.virtrigaud.programs import Provider, theirs
from tests.reference.vsphere.conftest import vcsim
from tests.reference.vsphere.vcenter import running

# A fixture that pytest finds here.
__all__ = ["vcsim"]
pytestmark = [pytest.mark.reference, pytest.mark.spec("virtrigaud", 96)]
PLAIN = {"image": "none:1", "service": {"tls": {"enabled": False}}}


def secure(secret: str) -> Json:
    """What runs a provider with the certificates of a Secret."""
    return {"image": "none:1", "service": {"tls": {"enabled": True, "secretRef": {"name": secret}}}}


LIBVIRT: Json = {"libvirt": {"path": "/images/ubuntu.qcow2"}}
REFS = {"providerRef": {"name": "lab"}, "classRef": {"name": "small"}, "imageRef": {"name": "ubuntu"}}


@pytest.fixture
def objects(tmp_path: Path) -> Iterator[Objects]:
    """A `paddock up` that may use providers of this host."""
    with serving(tmp_path / "server", "--network", "user", "--provider-from", "127.0.0.0/8", command="up") as server:
        api = Api(server.access)
        yield Objects(api)
        api.close()


def introduced(objects: Objects, provider: Provider, kind: str, runtime: object, **spec: object) -> None:
    """Make a Provider of a type at an address, and what machines of it refer to."""
    endpoint = {"libvirt": "qemu:///system", "vsphere": "https://vcenter.example/sdk"}[kind]
    checks = {"interval": "2s", "failureThreshold": 1}
    objects.secret("none")
    annotations = {"virtrigaud.io/provider-address": provider.address}
    given = {"type": kind, "endpoint": endpoint, "credentialSecretRef": {"name": "none"}, "runtime": runtime, "healthCheck": checks, **spec}
    objects.make("Provider", "lab", annotations, **given)
    objects.make("VMClass", "small", cpu=1, memory="1Gi")


def lived(objects: Objects, source: Json, clone: str, memory: bool) -> None:
    """A machine's life: power, sizes, a snapshot, a clone, and its end."""
    objects.make("VMImage", "ubuntu", source=source)
    objects.make("VirtualMachine", "web", **REFS, powerState="On")
    first = objects.until("VirtualMachine", "web", is_powered("On"))
    objects.change("VirtualMachine", "web", powerState="Off")
    objects.until("VirtualMachine", "web", is_powered("Off"))
    objects.change("VMClass", "small", cpu=2)
    objects.until("VirtualMachine", "web", lambda status: status.get("currentResources", {}).get("cpu") == 2)
    objects.change("VirtualMachine", "web", powerState="On")
    objects.until("VirtualMachine", "web", is_powered("On"))
    objects.make("VMSnapshot", "s", vmRef={"name": "web"}, snapshotConfig={"includeMemory": memory})
    assert objects.until("VMSnapshot", "s", has_phase("Ready"))["snapshotID"]
    objects.make("VMClone", "c", source={"vmRef": {"name": "web"}}, target={"name": "copy"}, options={"type": clone, "powerOn": True})
    objects.until("VMClone", "c", has_phase("Ready"))
    copy = objects.until("VirtualMachine", "copy", is_powered("On"))
    assert copy["id"] != first["id"] == objects.status("VirtualMachine", "web")["id"]
    objects.clear()


def test_the_mock_in_plain_text(upstream: Path, tmp_path: Path, objects: Objects) -> None:
    with theirs(upstream / "provider-mock", tmp_path) as mock:
        introduced(objects, mock, "libvirt", PLAIN)
        capable = objects.until("Provider", "lab", lambda status: status.get("healthy") and status.get("reportedCapabilities"))
        assert capable["reportedCapabilities"]["supportsMemorySnapshots"] and capable["reportedCapabilities"]["supportsLinkedClones"]
        lived(objects, LIBVIRT, "LinkedClone", memory=True)


@pytest.mark.spec("virtrigaud", 101)
def test_the_mock_with_mutual_tls_and_a_list_of_clients(
    upstream: Path, tmp_path: Path, objects: Objects, authority: providertls.Authority, material: Path
) -> None:
    server = providertls.write(tmp_path / "server-tls", authority.issue(SERVER_NAME.format("lab")))
    stranger = providertls.write(tmp_path / "stranger", authority.issue("stranger.example"))
    with theirs(upstream / "provider-mock", tmp_path, server, "manager.example") as mock:
        objects.secret("lab-tls", stranger)
        introduced(objects, mock, "libvirt", secure("lab-tls"))
        refused = objects.until("Provider", "lab", lambda status: condition(status, "ProviderAvailable").get("status") == "False")
        assert "stranger.example" in str(refused), refused
        objects.delete("Provider", "lab")
        objects.clear()
        objects.secret("manager-tls", material)
        introduced(objects, mock, "libvirt", secure("manager-tls"))
        lived(objects, LIBVIRT, "LinkedClone", memory=True)


@pytest.mark.spec("virtrigaud", 100)
def test_the_death_of_the_mock_opens_the_breaker(upstream: Path, tmp_path: Path, objects: Objects) -> None:
    with theirs(upstream / "provider-mock", tmp_path) as mock:
        introduced(objects, mock, "libvirt", PLAIN)
        objects.until("Provider", "lab", lambda status: status.get("healthy"))
        mock.kill()
        objects.until("Provider", "lab", lambda status: status.get("healthy") is False)
        dead = objects.until("Provider", "lab", lambda status: "breaker" in str(condition(status, "ProviderAvailable")))
        assert condition(dead, "ProviderAvailable")["status"] == "False"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the credentials are laid over /etc/virtrigaud")
def test_the_provider_for_vsphere_on_vmwares_simulator(upstream: Path, vcsim: Path, tmp_path: Path, objects: Objects) -> None:
    place = tmp_path / "vcsim"
    with running(vcsim, place, {"unaltered": True}) as simulator:
        simulator.connection()
        environment = {
            "PROVIDER_ENDPOINT": simulator.url,
            "TLS_INSECURE_SKIP_VERIFY": "true",
            "PROVIDER_DEFAULT_DATASTORE": "LocalDS_0",
            "PROVIDER_DEFAULT_CLUSTER": "DC0_C0",
        }
        with theirs(upstream / "provider-vsphere", place, environment=environment) as provider:
            introduced(objects, provider, "vsphere", PLAIN)
            lived(objects, {"vsphere": {"templateName": "DC0_C0_RP0_VM1"}}, "FullClone", memory=False)
        named = VSphereInventory(simulator.connection()).every(vim.VirtualMachine, ("name",))
        assert {"web", "copy"} & {each.name for each in named} == set()
