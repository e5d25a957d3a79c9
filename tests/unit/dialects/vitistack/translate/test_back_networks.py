"""Cards of KubeVirt machines become a Machine's, and their definitions NetworkConfigurations."""

import msgspec
import pytest

from paddock.kubernetes.meta.wire import to_data
from tests.unit.dialects.vitistack.translate.making import Json, definition, network
from tests.unit.dialects.vitistack.translate.vms import BRIDGE, INSTANCE, POD, POD_CARD, back, claim, losses, spec_of, vm


def wired(*cards: Json, names: tuple[str, ...] = ("lan",)) -> Json:
    networks = [{"name": card["name"], "multus": {"networkName": name}} for card, name in zip(cards, names, strict=True)]
    return vm(devices={"interfaces": list(cards)}, instance={"networks": networks})


def test_networks_come_with_their_configuration() -> None:
    made = back(
        wired({"name": "eth0", "model": "e1000", "bridge": {}, "macAddress": "52-54-00-00-00-AA"}), claim(), definition("lan", BRIDGE)
    )
    assert made.losses == ()
    lan, machine_ = (to_data(each) for each in made.value)
    assert (lan["kind"], lan["metadata"]) == ("NetworkConfiguration", {"name": "lan", "namespace": "prod"})
    assert lan["spec"] == {"bridge": "br7", "vlan": 7, "mtu": 1400}
    expected = {"name": "eth0", "networkName": "lan", "model": "e1000", "macAddress": "52:54:00:00:00:aa"}
    assert machine_["spec"]["networks"] == [expected]


@pytest.mark.parametrize(
    "config",
    [
        "",
        "no json",
        BRIDGE.replace(":7,", ":4095,"),
        "{}",
        BRIDGE.replace("bridge", "ovs", 1),
        BRIDGE.replace('"ipam":{}', '"ipam":{"type":"dhcp"}'),
    ],
)
def test_a_definition_of_another_kind_stays_in_use(config: str) -> None:
    made = back(wired({"name": "eth0", "bridge": {}}), claim(), definition("lan", config))
    (loss,) = made.losses
    assert (loss.of, loss.field) == ("NetworkAttachmentDefinition/lan", "spec.config")
    assert loss.instead == "the definition stays in use as it is"
    assert to_data(made.value[0])["spec"] == {}


def test_a_definition_that_is_not_in_the_input() -> None:
    raw = wired({"name": "eth0", "bridge": {}}, {"name": "eth1", "bridge": {}}, names=("lan", "other/wan"))
    made = back(raw, claim())
    assert [each.metadata.name for each in made.value] == ["lan", "wan", "web"]
    places = ("[0].multus", "[1].multus", "[1].multus.networkName")
    assert losses(raw, claim()) == [f"{INSTANCE}.networks{place}" for place in places]


@pytest.mark.parametrize(
    ("cards", "lost"),
    [
        ([{"name": "eth0", "model": "e1000e", "bridge": {}}], ["model"]),
        ([{"name": "eth0", "sriov": {}}], ["sriov"]),
        ([{"name": "eth0", "bridge": {}, "macAddress": "53:54:00:00:00:01"}], ["macAddress"]),
        ([{"name": "eth0", "bridge": {}, "macAddress": "00:00:00:00:00:00"}], ["macAddress"]),
        ([{"name": "eth0", "bridge": {}, "pciAddress": "0000:81:01.0"}], ["pciAddress"]),
    ],
)
def test_what_a_card_loses(cards: list[Json], lost: list[str]) -> None:
    assert losses(wired(*cards), claim(), definition("lan", BRIDGE)) == [f"{INSTANCE}.domain.devices.interfaces[0].{name}" for name in lost]


def test_a_definition_without_a_configuration() -> None:
    bare = msgspec.structs.replace(definition("lan", ""), spec=None)
    (loss,) = back(wired({"name": "eth0", "bridge": {}}), claim(), bare).losses
    assert (loss.of, loss.value) == ("NetworkAttachmentDefinition/lan", None)


def test_cards_that_share_a_network_share_its_configuration() -> None:
    raw = wired({"name": "a", "bridge": {}}, {"name": "b", "bridge": {}}, names=("lan", "lan"))
    made = back(raw, claim(), definition("lan", BRIDGE))
    assert [each.kind for each in made.value] == ["NetworkConfiguration", "Machine"]
    assert losses(raw, claim()) == [f"{INSTANCE}.networks[0].multus"]
    there = network("lan", bridge="br7", vlan=7, mtu=1400)
    assert [each.kind for each in back(raw, claim(), definition("lan", BRIDGE), there).value] == ["Machine"]


def test_an_address_that_stands_twice_is_given_once() -> None:
    same = "52:54:00:00:00:01"
    cards = [{"name": name, "bridge": {}, "macAddress": address} for name, address in (("a", same), ("b", same.replace(":", "-")))]
    raw = wired(*cards, names=("lan", "lan"))
    found = spec_of(raw, claim(), definition("lan", BRIDGE))["networks"]
    assert [each.get("macAddress") for each in found] == [same, None]
    assert losses(raw, claim(), definition("lan", BRIDGE)) == [f"{INSTANCE}.domain.devices.interfaces[1].macAddress"]


def test_more_cards_than_a_machine_has() -> None:
    cards = [{"name": f"e{index}", "bridge": {}} for index in range(38)] + [{"name": "x" * 64, "bridge": {}}]
    raw = wired(*reversed(cards), names=("lan",) * 39)
    assert len(spec_of(raw, claim(), definition("lan", BRIDGE))["networks"]) == 36
    lost = losses(raw, claim(), definition("lan", BRIDGE))
    assert lost == [f"{INSTANCE}.{place}[{index}]" for place in ("domain.devices.interfaces", "networks") for index in (0, 37, 38)]


@pytest.mark.parametrize(
    ("name", "labels", "stays"),
    [
        ("lan", {}, True),
        ("lan", {"vitistack.io/managed-by": "kubevirt-operator"}, False),
        ("other/lan", {}, False),
    ],
)
def test_which_definitions_stay_in_use(name: str, labels: dict[str, str], *, stays: bool) -> None:
    found = definition("lan", "{}", **labels)
    if "/" in name:
        found = msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, namespace="other"))
    (loss,) = [loss for loss in back(wired({"name": "eth0", "bridge": {}}, names=(name,)), claim(), found).losses if loss.of[0] == "N"]
    assert ("stays in use" in loss.instead) is stays
    assert ("has bridge br0; check it" in loss.instead) is not stays


def test_the_pod_network_beside_others_is_lost() -> None:
    card = {"name": "eth0", "bridge": {}}
    raw = vm(devices={"interfaces": [POD_CARD, card]}, instance={"networks": [POD, {"name": "eth0", "multus": {"networkName": "lan"}}]})
    assert [each["name"] for each in spec_of(raw, claim(), definition("lan", BRIDGE))["networks"]] == ["eth0"]
    assert losses(raw, claim(), definition("lan", BRIDGE)) == [f"{INSTANCE}.domain.devices.interfaces[0]", f"{INSTANCE}.networks[0]"]


def test_an_address_on_the_pod_network_cannot_be_given() -> None:
    raw = vm(devices={"interfaces": [POD_CARD | {"macAddress": "52:54:00:00:00:01"}]})
    assert losses(raw) == [f"{INSTANCE}.domain.devices.interfaces[0].macAddress"]
