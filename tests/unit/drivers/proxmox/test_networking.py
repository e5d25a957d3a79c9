"""Interfaces, addresses and documents of guests."""

from typing import Any

import pytest

from paddock.contract.description import MachineDescription
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.payloads import ClassPayload, ImagePayload, NetworkPayload, QosPayload
from paddock_drivers.proxmox import guestdata, networking
from paddock_drivers.proxmox.config import ProxmoxConfiguredNic, ProxmoxMachineConfig

MAC = "BC:24:11:00:00:01"


def machine(**more: Any) -> MachineDescription:
    return MachineDescription(name="web", hardware=ClassPayload(cpu=1, memory_mib=1024), image=ImagePayload(), **more)


@pytest.mark.parametrize(
    ("card", "text"),
    [
        (NetworkPayload(name="lan"), f"virtio={MAC},bridge=vmbr0"),
        (NetworkPayload(name="lan", bridge="vmbr1", vlan=7), f"virtio={MAC},bridge=vmbr1,tag=7"),
        (NetworkPayload(name="lan", network_name="vnet1", model="e1000"), f"e1000={MAC},bridge=vnet1"),
        (NetworkPayload(name="lan", mac_address="aa-bb-cc-00-00-02"), "virtio=AA:BB:CC:00:00:02,bridge=vmbr0"),
        (NetworkPayload(name="lan", qos=QosPayload(ingress_limit=16 << 20, egress_limit=8 << 20)), f"virtio={MAC},bridge=vmbr0,rate=1"),
    ],
)
def test_a_card_becomes_an_interface(card: NetworkPayload, text: str) -> None:
    assert networking.interface(card, None, "vmbr0", MAC) == text


def test_what_the_machine_has_and_nobody_asks_about_stays() -> None:
    nic = ProxmoxConfiguredNic("net0", "e1000", "AA:BB:CC:00:00:03", {"bridge": "vmbr5", "firewall": "1", "tag": "9"})
    assert networking.interface(NetworkPayload(name="lan"), nic, "vmbr0", MAC) == "e1000=AA:BB:CC:00:00:03,bridge=vmbr5,firewall=1"


@pytest.mark.parametrize(
    "card",
    [
        NetworkPayload(name="lan", model="ne3k"),
        NetworkPayload(name="lan", bridge="vmbr0,firewall=0"),
        NetworkPayload(name="lan", mac_address="x"),
        NetworkPayload(name="lan", vlan=4095),
    ],
)
def test_a_card_that_makes_no_sense_is_refused(card: NetworkPayload) -> None:
    with pytest.raises(ProviderError) as caught:
        networking.interface(card, None, "vmbr0", MAC)
    assert caught.value.kind is ErrorKind.INVALID_SPEC


def test_interfaces_follow_the_request() -> None:
    config = ProxmoxMachineConfig(100, {"net0": f"virtio={MAC},bridge=vmbr0", "net1": "virtio=BC:24:11:00:00:02,bridge=vmbr0"})
    assert networking.change((), config, "vmbr0", "u") == ({}, ())
    assert networking.change((NetworkPayload(name="a"),), config, "vmbr0", "u") == ({}, ("net1",))
    form, gone = networking.change((NetworkPayload(name="a", vlan=3), NetworkPayload(name="b")), config, "vmbr0", "u")
    assert (form, gone) == ({"net0": f"virtio={MAC},bridge=vmbr0,tag=3"}, ())
    made, _ = networking.change(tuple(NetworkPayload(name=each) for each in "abc"), config, "vmbr0", "u")
    assert list(made) == ["net2"] and made["net2"].startswith("virtio=BC:24:11:")


def test_a_changed_case_or_rate_of_the_cluster_is_no_change() -> None:
    config = ProxmoxMachineConfig(100, {"net0": "virtio=bc:24:11:00:00:01,bridge=vmbr0,rate=1.0"})
    card = NetworkPayload(name="a", qos=QosPayload(ingress_limit=8 << 20, egress_limit=8 << 20))
    assert networking.change((card,), config, "vmbr0", "u") == ({}, ())


def test_addresses_go_on_the_clusters_own_drive() -> None:
    cards = (
        NetworkPayload(name="a", static_ip="10.0.0.5", prefix=16, gateway="10.0.0.1", dns="1.1.1.1, 9.9.9.9"),
        NetworkPayload(name="b"),
        NetworkPayload(name="c", static_ip="fd00::5", gateway="fd00::1"),
    )
    assert networking.addresses(cards) == {
        "ipconfig0": "ip=10.0.0.5/16,gw=10.0.0.1",
        "ipconfig1": "ip=dhcp",
        "ipconfig2": "ip6=fd00::5/64,gw6=fd00::1",
        "nameserver": "1.1.1.1 9.9.9.9",
    }


@pytest.mark.parametrize(
    ("document", "native"),
    [
        (b"", True),
        (b"#cloud-config\n# nothing\n", True),
        (b"#cloud-config\nuser: me\nssh_authorized_keys: [ssh-ed25519 AAAA me]\n", True),
        (b"#cloud-config\nruncmd: [reboot]\n", False),
        (b"#cloud-config\nhostname: other\n", False),
        (b"#cloud-config\nusers: [{name: me}]\n", False),
        (b"#!/bin/sh\necho\n", False),
        (b"#cloud-config\n{broken", False),
        (b'{"ignition": {"version": "3.4.0"}}', False),
    ],
)
def test_only_what_the_clusters_drive_can_say_goes_on_it(document: bytes, native: bool) -> None:
    assert guestdata.is_native(machine(user_data=document)) is native


def test_keys_are_encoded_as_the_cluster_wants_them() -> None:
    given = machine(
        user_data=b"#cloud-config\nuser: me\nssh_authorized_keys:\n- ssh-ed25519 AA+A me\n- ssh-rsa BB/B\npackage_upgrade: true\n"
    )
    assert guestdata.native(given, (8, 0)) == {"ciuser": "me", "sshkeys": "ssh-ed25519%20AA%2BA%20me%0Assh-rsa%20BB%2FB", "ciupgrade": True}
    assert "ciupgrade" not in guestdata.native(given, (7, 4))


def test_documents_that_it_cannot_say_are_on_a_disk_of_ours() -> None:
    given = machine(user_data=b"#cloud-config\nruncmd: [reboot]\n", networks=(NetworkPayload(name="a", static_ip="10.0.0.5"),))
    image = guestdata.disk(given, "uuid-1", (("a", MAC),))
    assert b"runcmd: [reboot]" in image and b"10.0.0.5/24" in image and b"uuid-1" in image
    assert guestdata.disk_name(100, image) != guestdata.disk_name(100, image + b"x")
    with pytest.raises(ProviderError):
        guestdata.disk(machine(user_data=b'{"ignition": {}}', networks=given.networks), "u", (("a", MAC),))
