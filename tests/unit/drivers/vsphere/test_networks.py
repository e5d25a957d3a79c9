"""Network cards: which are added, changed and taken away."""

from typing import Any

import pytest
from pyVmomi import vim

from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.payloads import NetworkPayload
from paddock_drivers.vsphere import networks


def backing(network: NetworkPayload) -> Any:
    if not network.network_name:
        return None
    return vim.vm.device.VirtualEthernetCard.NetworkBackingInfo(deviceName=network.network_name)


def card(key: int, network: str, mac: str = "00:50:56:00:00:01") -> Any:
    return vim.vm.device.VirtualVmxnet3(key=key, backing=backing(NetworkPayload(network_name=network)), macAddress=mac)


def operations(found: networks.CardChanges) -> list[tuple[str, int]]:
    return [(str(each.operation), each.device.key) for each in found.changes]


def test_the_cards_of_a_template_give_way_to_those_of_the_machine() -> None:
    lan = NetworkPayload(name="lan", network_name="PG", model="e1000e", mac_address="00-50-56-AA-00-01", pci_slot_number=192)
    found = networks.changes([card(4000, "old"), card(4001, "old")], {}, (lan,), backing, fresh=True)
    assert operations(found) == [("remove", 4000), ("remove", 4001), ("add", -200)]
    made = found.changes[-1].device
    assert isinstance(made, vim.vm.device.VirtualE1000e)
    assert (made.addressType, made.macAddress, made.slotInfo.pciSlotNumber) == ("manual", "00:50:56:aa:00:01", 192)
    assert found.keys == {"lan": 0}


def test_a_template_keeps_its_cards_when_the_machine_names_none() -> None:
    assert networks.changes([card(4000, "old")], {}, (), backing, fresh=True) == networks.CardChanges()


@pytest.mark.spec("virtrigaud", 15)
def test_a_card_on_no_network_keeps_that_of_the_template() -> None:
    template = [card(4000, "old"), card(4001, "second"), card(4002, "third")]
    given = (NetworkPayload(name="a", network_name="PG"), NetworkPayload(name="b", mac_address="00:50:56:aa:00:02"))
    found = networks.changes(template, {}, given, backing, fresh=True)
    assert operations(found) == [("remove", 4001), ("remove", 4002), ("add", -200), ("edit", 4000)]
    kept = found.changes[-1].device
    assert (kept.backing.deviceName, kept.macAddress) == ("old", "00:50:56:aa:00:02")
    assert found.keys == {"a": 0, "b": 4000}
    later = networks.changes([kept, card(4003, "PG")], {"a": 4003, "b": 4000}, given, backing, fresh=False)
    assert later.changes == ()


@pytest.mark.spec("virtrigaud", 15)
def test_a_card_on_no_network_without_one_of_the_template_is_refused() -> None:
    with pytest.raises(ProviderError, match=r'network "b" names no portgroup') as caught:
        networks.changes([card(4000, "old")], {}, (NetworkPayload(name="a"), NetworkPayload(name="b")), backing, fresh=True)
    assert "spec.defaults.network of the Provider" in str(caught.value)


def test_named_cards_follow_and_others_stay() -> None:
    devices = [card(4000, "foreign"), card(4001, "PG-A"), card(4002, "PG-B")]
    given = (NetworkPayload(name="a", network_name="PG-A"), NetworkPayload(name="b", network_name="PG-C"))
    found = networks.changes(devices, {"a": 4001, "b": 4002}, given, backing, fresh=False)
    assert operations(found) == [("edit", 4002)]
    assert found.changes[0].device.backing.deviceName == "PG-C"
    gone = networks.changes([card(4000, "foreign"), card(4001, "PG-A")], {"a": 4001}, (), backing, fresh=False)
    assert operations(gone) == [("remove", 4001)]


def test_a_card_that_was_just_added_is_the_one_without_a_name() -> None:
    devices = [card(4000, "PG-A"), card(4001, "PG-B"), card(4002, "PG-C")]
    found = networks.named(devices, {"a": 4000, "b": 0, "c": 0})
    assert {name: each.key for name, each in found.items()} == {"a": 4000, "b": 4001, "c": 4002}


def test_what_a_portgroup_decides_is_a_limitation_and_a_strange_model_is_refused() -> None:
    found = networks.changes([], {}, (NetworkPayload(name="a", network_name="PG", vlan=7, bridge="br0"),), backing, fresh=False)
    assert [each.split(":")[0] for each in found.limitations] == ["networks.a.vlan", "networks.a.bridge"]
    with pytest.raises(ProviderError) as caught:
        networks.changes([], {}, (NetworkPayload(name="a", network_name="PG", model="ne2k_pci"),), backing, fresh=False)
    assert caught.value.kind is ErrorKind.NOT_SUPPORTED
