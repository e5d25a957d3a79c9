"""Documents for guests: what stands in NoCloud's files, and on the disk."""

from typing import Any

import pytest
import yaml

from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.payloads import NetworkPayload
from paddock_drivers.kit import cloudinit
from paddock_drivers.kit.cloudinit import GuestDocuments

MAC = "52:54:00:12:34:56"
STATIC = NetworkPayload(name="lan", mac_address=MAC, static_ip="192.0.2.10", prefix=25, gateway="192.0.2.1", dns="192.0.2.2, 192.0.2.3")


def documents(**more: object) -> GuestDocuments:
    return GuestDocuments(**{"instance": "id-1", "hostname": "web", **more})  # type: ignore[arg-type]


def test_a_guest_gets_its_name_its_documents_and_its_addresses() -> None:
    found = cloudinit.files(documents(user_data=b"#cloud-config\npackages: []\n", networks=(STATIC,)))
    assert yaml.safe_load(found["meta-data"]) == {"instance-id": "id-1", "local-hostname": "web"}
    assert found["user-data"] == b"#cloud-config\npackages: []\n"
    assert yaml.safe_load(found["network-config"]) == {
        "version": 2,
        "ethernets": {
            "lan": {
                "match": {"macaddress": MAC},
                "addresses": ["192.0.2.10/25"],
                "routes": [{"to": "0.0.0.0/0", "via": "192.0.2.1"}],
                "nameservers": {"addresses": ["192.0.2.2", "192.0.2.3"]},
            }
        },
    }


def test_cards_without_addresses_need_no_network_data() -> None:
    found = cloudinit.files(documents(networks=(NetworkPayload(name="lan", mac_address=MAC),)))
    assert "network-config" not in found
    assert not cloudinit.wanted(documents(networks=(NetworkPayload(name="lan"),)))


def test_beside_a_static_card_another_asks_dhcp() -> None:
    other = NetworkPayload(name="wan", mac_address="52-54-00-AA-BB-CC")
    ethernets = yaml.safe_load(cloudinit.network_config((STATIC, other)))["ethernets"]
    assert ethernets["wan"] == {"match": {"macaddress": "52:54:00:aa:bb:cc"}, "dhcp4": True}


def test_ipv6_has_routes_of_its_own() -> None:
    card = NetworkPayload(name="lan", mac_address=MAC, static_ip="2001:db8::5", gateway="2001:db8::1")
    entry = yaml.safe_load(cloudinit.network_config((card,)))["ethernets"]["lan"]
    assert (entry["addresses"], entry["routes"]) == (["2001:db8::5/64"], [{"to": "::/0", "via": "2001:db8::1"}])


@pytest.mark.parametrize("card", [{"static_ip": "nowhere", "mac_address": MAC}, {"static_ip": "192.0.2.1"}])
def test_an_address_that_no_card_can_get_is_refused(card: dict[str, str]) -> None:
    with pytest.raises(ProviderError) as refused:
        cloudinit.network_config((NetworkPayload(name="lan", **card),))  # type: ignore[arg-type]
    assert refused.value.kind is ErrorKind.INVALID_SPEC


def test_metadata_of_the_machine_joins_that_made_for_it() -> None:
    found = yaml.safe_load(cloudinit.files(documents(meta_data=b"hostname: other\nsite: east\n"))["meta-data"])
    assert found == {"instance-id": "id-1", "hostname": "other", "site": "east"}


@pytest.mark.parametrize("text", [b"- a list\n", b"{", b"a: [\n"])
def test_metadata_that_is_no_mapping_is_refused(text: bytes) -> None:
    with pytest.raises(ProviderError) as refused:
        cloudinit.files(documents(meta_data=text))
    assert refused.value.kind is ErrorKind.INVALID_SPEC


@pytest.mark.parametrize(
    ("user_data", "label"), [(b"#cloud-config\n{}\n", b"cidata"), (b'{"ignition": {"version": "3.4.0"}}', b"config-2")]
)
def test_the_disk_has_the_label_that_its_reader_looks_for(user_data: bytes, label: bytes) -> None:
    image = cloudinit.image(documents(user_data=user_data))
    assert image[32808 : 32808 + 32].rstrip() == label
    assert cloudinit.image(documents(user_data=user_data)) == image


def test_documents_are_in_no_representation() -> None:
    assert "secret" not in repr(documents(user_data=b"password: secret"))


# --- what a network says of a card -----------------------------------------------------------------------------------------------


def ethernet(**card: Any) -> Any:
    text = cloudinit.network_config((NetworkPayload(name="lan", mac_address=MAC, **card),))
    return yaml.safe_load(text)["ethernets"]["lan"] if text else None


@pytest.mark.spec("virtrigaud", 149)
def test_a_static_card_has_its_address_routes_and_resolution() -> None:
    routes = ({"destination": "10.1.0.0/16", "gateway": "10.0.0.2", "metric": 5},)
    found = ethernet(static_ip="10.0.0.5", prefix=16, gateway="10.0.0.1", dns="10.0.0.3", routes=routes, search_domains=("shop.example",))
    assert found["addresses"] == ["10.0.0.5/16"] and "dhcp4" not in found
    assert found["routes"] == [{"to": "0.0.0.0/0", "via": "10.0.0.1"}, {"to": "10.1.0.0/16", "via": "10.0.0.2", "metric": 5}]
    assert found["nameservers"] == {"addresses": ["10.0.0.3"], "search": ["shop.example"]}


@pytest.mark.spec("virtrigaud", 150)
def test_a_card_without_an_address_gets_none() -> None:
    found = ethernet(ip_policy="none")
    assert (found["dhcp4"], found["dhcp6"]) == (False, False) and "addresses" not in found


@pytest.mark.parametrize(("card", "said"), [({}, None), ({"ip_policy": "dhcp"}, None), ({"dns": "10.0.0.3"}, {"addresses": ["10.0.0.3"]})])
def test_dhcp_is_said_only_with_more(card: dict[str, Any], said: Any) -> None:
    found = ethernet(**card)
    assert (found and found["nameservers"]) == said
    assert found is None or found["dhcp4"] is True
