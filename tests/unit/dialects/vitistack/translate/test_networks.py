"""Network cards, their addresses, and the definitions that connect them."""

import hashlib
import json
import re
from typing import Any

import pytest

from paddock.dialects.vitistack.translate import to_kubevirt
from paddock.dialects.vitistack.translate.errors import NetworkConfigurationNotFound
from paddock.kubernetes.meta.rendering import Rendering
from paddock.kubernetes.meta.world import ObjectSet
from tests.unit.dialects.vitistack.translate.making import (
    CARD,
    Json,
    definition,
    devices,
    instance,
    machine,
    network,
    objects,
    small,
    translated,
)

TWO = [CARD, {"name": "eth1", "networkName": "san", "model": "e1000"}]
WORLD = [network("lan"), network("san", bridge="br1")]


@pytest.mark.spec("vitistack", 28)
def test_without_networks_there_is_one_card_on_the_pod_network() -> None:
    found = instance(small())
    assert found["networks"] == [{"name": "default", "pod": {}}]
    (card,) = found["domain"]["devices"]["interfaces"]
    assert card == {"name": "default", "model": "virtio", "masquerade": {}, "macAddress": card["macAddress"]}


@pytest.mark.spec("vitistack", 29)
def test_networks_are_bridged_and_there_is_no_card_on_the_pod_network() -> None:
    found = instance(small(networks=TWO), WORLD)
    assert found["networks"] == [{"name": "eth0", "multus": {"networkName": "lan"}}, {"name": "eth1", "multus": {"networkName": "san"}}]
    assert [card | {"macAddress": ""} for card in found["domain"]["devices"]["interfaces"]] == [
        {"name": "eth0", "model": "virtio", "bridge": {}, "macAddress": ""},
        {"name": "eth1", "model": "e1000", "bridge": {}, "macAddress": ""},
    ]


@pytest.mark.parametrize("model", ["virtio", "e1000", "rtl8139"])
@pytest.mark.spec("vitistack", 35)
def test_models_pass(model: str) -> None:
    assert devices(small(networks=[CARD | {"model": model}]), WORLD)["interfaces"][0]["model"] == model


def test_virtio_has_several_queues() -> None:
    assert devices(small())["networkInterfaceMultiqueue"] is True


def addresses(spec: Json, rendering: Rendering = Rendering(), **metadata: str) -> list[str]:  # noqa: B008 - frozen
    return [card["macAddress"] for card in devices(spec, WORLD, rendering, **metadata)["interfaces"]]


@pytest.mark.spec("vitistack", 36)
def test_a_given_address_is_normalized() -> None:
    assert addresses(small(networks=[CARD | {"macAddress": "52-54-00-AB-CD-EF"}])) == ["52:54:00:ab:cd:ef"]


@pytest.mark.spec("vitistack", 37)
def test_addresses_are_derived_from_the_uid() -> None:
    first, second = addresses(small(networks=TWO))
    assert re.fullmatch("02:12(:[0-9a-f]{2}){3}:01", first)
    assert second == first[:-1] + "2"
    assert addresses(small(networks=TWO)) == [first, second]
    # The same machine after an edit, and another machine of the same name.
    assert addresses(small(networks=[CARD, TWO[1] | {"macAddress": "52:54:00:00:00:01"}], resources={"cpu": {"cores": 4}}))[0] == first
    assert addresses(small(networks=TWO), uid="u-2")[0] != first
    assert first[6:14].replace(":", "") == hashlib.sha256(b"u-1").hexdigest()[:6]


def test_without_a_uid_the_name_is_the_identity() -> None:
    (derived,) = addresses(small(), uid="")
    assert addresses(small(), uid="prod/web") == [derived]
    assert addresses(small(), uid="", namespace="test") != [derived]


@pytest.mark.parametrize("mac_set", ["ab", "AB"])
@pytest.mark.spec("vitistack", 38)
def test_the_set_is_the_second_octet(mac_set: str) -> None:
    (address,) = addresses(small(), Rendering(mac_set=mac_set))
    assert address.startswith("02:ab:")
    assert address[5:] == addresses(small())[0][5:]


# --- definitions --------------------------------------------------------------------------------------------------------------


def config(**spec: Any) -> str:
    made = objects(small(networks=[CARD]), [network("lan", **spec)])["NetworkAttachmentDefinition/lan"]
    text: str = made["spec"]["config"]
    return text


@pytest.mark.parametrize(
    ("spec", "plugin"),
    [
        ({}, {"bridge": "br0"}),
        ({"bridge": "br7"}, {"bridge": "br7"}),
        ({"vlan": 100}, {"bridge": "br0", "vlan": 100}),
        ({"vlan": 0}, {"bridge": "br0"}),
        ({"mtu": 9000}, {"bridge": "br0", "mtu": 9000}),
        ({"VLAN": 4094, "Bridge": "br7", "mtu": 576}, {"bridge": "br7", "vlan": 4094, "mtu": 576}),
    ],
)
@pytest.mark.spec("vitistack", 31)
def test_a_definition_says_how_the_network_is_wired(spec: Json, plugin: Json) -> None:
    assert json.loads(config(**spec)) == {
        "cniVersion": "1.0.0",
        "name": "lan",
        "plugins": [{"type": "bridge", **plugin, "ipam": {}}],
    }


def test_the_bytes_of_a_definition() -> None:
    expected = '{"cniVersion":"1.0.0","name":"lan","plugins":[{"type":"bridge","bridge":"br0","vlan":100,"mtu":1400,"ipam":{}}]}'
    assert config(vlan=100, mtu=1400) == expected


def test_a_definition_belongs_to_its_network() -> None:
    made = objects(small(networks=[CARD]), [network("lan")])["NetworkAttachmentDefinition/lan"]
    owner = {"apiVersion": "vitistack.io/v1alpha1", "kind": "NetworkConfiguration", "name": "lan", "uid": "uid-lan"}
    assert made["metadata"] == {
        "name": "lan",
        "namespace": "prod",
        "labels": {"vitistack.io/managed-by": "kubevirt-operator", "vitistack.io/network-configuration": "lan"},
        "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
    }


def test_two_cards_on_one_network_share_the_definition() -> None:
    made = objects(small(networks=[CARD, CARD | {"name": "eth1"}]), [network("lan")])
    assert sum(key.startswith("NetworkAttachmentDefinition/") for key in made) == 1


def test_a_definition_that_somebody_else_made_is_used_as_it_is() -> None:
    theirs = definition("lan", "{}")
    assert "NetworkAttachmentDefinition/lan" not in objects(small(networks=[CARD]), [network("lan"), theirs])
    ours = definition("lan", "{}", **{"vitistack.io/managed-by": "kubevirt-operator"})
    assert "NetworkAttachmentDefinition/lan" in objects(small(networks=[CARD]), [network("lan"), ours])


def test_a_network_that_is_missing() -> None:
    elsewhere = network("lan", namespace="default")
    with pytest.raises(NetworkConfigurationNotFound) as raised:
        to_kubevirt(machine(small(networks=[CARD])), ObjectSet([elsewhere], complete=True), Rendering())
    error = raised.value
    assert (error.name, error.path) == ("lan", ("spec", "networks", 0, "networkName"))
    assert (error.error_type, error.phase) == ("NetworkConfigurationNotFound", "Pending")
    assert "create it or correct spec.networks[0].networkName" in str(error)
    (loss,) = translated(small(networks=[CARD]), [elsewhere]).losses
    assert loss.field == "spec.networks[0].networkName"
    assert "has to be there" in loss.instead


@pytest.mark.parametrize("member", ["networkId", "ipam", "dhcp", "security"])
def test_what_a_definition_cannot_say_is_told_once(member: str) -> None:
    fields: Json = {member: "a" if member == "networkId" else {}}
    given = [network("lan", **fields)]
    losses = translated(small(networks=[CARD, CARD | {"name": "eth1"}]), given).losses
    assert [(loss.of, loss.field) for loss in losses] == [("NetworkConfiguration/lan", f"spec.{member}")]
