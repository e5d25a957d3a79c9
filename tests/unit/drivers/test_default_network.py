"""A network card that names no network: where each driver puts it (docs/dialects/virtrigaud.md). vSphere has tests of its own."""

from pathlib import Path

import pytest

from paddock.contract.description import MachineDescription
from paddock.contract.errors import ProviderError
from paddock.contract.payloads import ClassPayload, DiskDefaultsPayload, ImagePayload, NetworkPayload
from paddock.dialects.virtrigaud.translate.described import translate
from paddock_drivers.firecracker import machinespecs
from paddock_drivers.firecracker.settings import FirecrackerSettings
from paddock_drivers.kubevirt import booting, documents
from paddock_drivers.kubevirt.settings import KubeVirtDriverSettings
from paddock_drivers.libvirt import interfaces
from paddock_drivers.proxmox import networking
from paddock_drivers.proxmox.config import ProxmoxConfiguredNic

pytestmark = pytest.mark.spec("virtrigaud", 15)
BARE = NetworkPayload(name="lan")


def described(*networks: NetworkPayload) -> MachineDescription:
    hardware = ClassPayload(cpu=1, memory_mib=256, disk_defaults=DiskDefaultsPayload(size_gib=1))
    return MachineDescription(name="web", hardware=hardware, image=ImagePayload(url="https://images.example/a.qcow2"), networks=networks)


def test_libvirt_has_a_network_of_its_own_settings() -> None:
    source = interfaces.element(BARE, "52:54:00:00:00:01", "default").find("source")
    assert source is not None and source.attrib == {"network": "default"}


def test_proxmox_keeps_the_bridge_of_the_template() -> None:
    nic = ProxmoxConfiguredNic("net0", "virtio", "BC:24:11:00:00:01", {"bridge": "vmbr7"})
    assert "bridge=vmbr7" in networking.interface(BARE, nic, "vmbr0", "BC:24:11:00:00:02")
    assert "bridge=vmbr0" in networking.interface(BARE, None, "vmbr0", "BC:24:11:00:00:02")


def test_the_own_engine_has_the_pod_network_once() -> None:
    given = described(BARE, NetworkPayload(name="wan"))
    made = documents.build(given, booting.fetched(given.image), KubeVirtDriverSettings(translation=translate))
    networks = made.machine.spec.template.spec.networks or []
    assert [(each.name, each.pod is not None) for each in networks] == [("lan", True)]
    (left,) = made.limitations
    assert "wan" in left or "networks[1]" in left
    assert "a machine is on the pod network only once; the machine is made without the card" in left


def test_firecracker_needs_a_default() -> None:
    with pytest.raises(ProviderError, match=r"set spec\.defaults\.network of the Provider"):
        machinespecs.asked(described(BARE), FirecrackerSettings(directory=Path("/d")), "t")
    found = machinespecs.asked(described(BARE), FirecrackerSettings(directory=Path("/d"), default_network="br0"), "t")
    assert [each.bridge for each in found.spec.nics] == ["br0"]
