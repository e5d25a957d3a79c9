"""The security of a network as a NetworkPolicy of the machine: what it allows, and which limitations name the rest."""

from typing import Any

import pytest

from paddock.contract import messages as m
from paddock.contract import payloads as p
from paddock.contract.description import MachineDescription
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.kubevirt.firewalls import firewall
from tests.coroutines import played
from tests.unit.drivers.kubevirt.conftest import HARDWARE, IMAGE, Target, creation

POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
EVERYWHERE = "0.0.0.0/0"


def rule(name: str, action: str = "ACCEPT", direction: str = "in", **more: Any) -> dict[str, Any]:
    return {"name": name, "action": action, "direction": direction, **more}


def card(rules: tuple[dict[str, Any], ...] = (), policy: str = "DROP", **more: Any) -> p.NetworkPayload:
    guard = {"enabled": True, "defaultPolicy": policy, "rules": list(rules)}
    return p.NetworkPayload(name="lan", security=p.NetworkSecurityPayload(**{"firewall": guard, **more}))


def of(*cards: p.NetworkPayload) -> tuple[Any, tuple[str, ...]]:
    found = firewall(MachineDescription(name="web", hardware=HARDWARE, image=IMAGE, networks=cards))
    return found.spec, found.limitations


def blocks(*networks: str) -> list[dict[str, Any]]:
    return [{"ipBlock": {"cidr": each}} for each in networks]


SSH = rule("ssh", protocol="tcp", sourceCIDR="10.0.0.0/8", ports={"start": 22})
WEB = rule("web", protocol="tcp", ports={"start": 8000, "end": 8010})


@pytest.mark.spec("virtrigaud", 121)
@pytest.mark.parametrize(
    ("given", "ingress", "egress"),
    [
        (card(), [], []),
        (card((SSH,)), [{"from": blocks("10.0.0.0/8"), "ports": [{"protocol": "TCP", "port": 22}]}], []),
        (card((WEB,)), [{"ports": [{"protocol": "TCP", "port": 8000, "endPort": 8010}]}], []),
        (card((rule("all", direction="inout"),)), [{}], [{}]),
        (card((rule("out", direction="out", destinationCIDR="10.1.0.0/16"),)), [], [{"to": blocks("10.1.0.0/16")}]),
        (
            card((rule("all", sourceCIDR="10.0.0.0/8"), rule("not", "DROP", sourceCIDR="10.9.0.0/16"))),
            [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.9.0.0/16"]}}]}],
            [],
        ),
        (
            card((rule("all", sourceCIDR="10.9.1.0/24"), rule("not", "DROP", sourceCIDR="10.9.0.0/16"))),
            [{"from": blocks("255.255.255.255/32")}],
            [],
        ),
        (
            card((rule("not", "DROP", sourceCIDR="10.9.0.0/16"),), "ACCEPT"),
            [{"from": [{"ipBlock": {"cidr": EVERYWHERE, "except": ["10.9.0.0/16"]}}]}],
            None,
        ),
        (card((rule("not", "DROP", "out"),), "ACCEPT"), None, [{"to": blocks("255.255.255.255/32")}]),
    ],
)
def test_a_firewall_becomes_a_policy(given: p.NetworkPayload, ingress: Any, egress: Any) -> None:
    spec, told = of(given)
    assert told == () and spec["podSelector"] == {"matchLabels": {"vm.kubevirt.io/name": "web"}}
    assert (spec.get("ingress"), spec.get("egress")) == (ingress, egress)
    assert spec["policyTypes"] == [kind for kind, rules in (("Ingress", ingress), ("Egress", egress)) if rules is not None]


@pytest.mark.spec("virtrigaud", 121)
@pytest.mark.parametrize(
    ("given", "named"),
    [
        (card((rule("ping", protocol="icmp"),)), "rule ping has no form"),
        (card((rule("x", destinationCIDR="10.0.0.0/8"),)), "rule x has no form"),
        (card((rule("y", "DROP", protocol="tcp", ports={"start": 22}),)), "rule y denies more narrowly"),
        (card((), "REJECT"), "dropped, without an answer"),
        (card(isolation={"mode": "strict"}), "Isolation: it cannot be kept beside a firewall"),
        (card(firewall=None, isolation={"mode": "custom", "allowedNetworks": ["lan"]}), "lan is no address block"),
        (card(encryption={"enabled": True}), "Encryption"),
    ],
)
def test_what_has_no_form_is_told_and_opens_nothing(given: p.NetworkPayload, named: str) -> None:
    spec, told = of(given)
    assert any(named in each for each in told), told
    assert not spec or all(each != {} for each in (*spec.get("ingress", ()), *spec.get("egress", ())))


@pytest.mark.spec("virtrigaud", 121)
def test_isolation() -> None:
    strict = card(firewall=None, isolation={"mode": "strict", "allowedNetworks": ["10.0.0.0/8"], "deniedNetworks": ["10.9.0.0/16"]})
    spec, told = of(strict)
    inside = [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.9.0.0/16"]}}]
    assert (spec["ingress"], spec["egress"], told) == ([{"from": inside}], [{"to": inside}], ())
    spec, _ = of(card(firewall=None, isolation={"mode": "strict"}))
    assert (spec["ingress"], spec["egress"]) == ([], [])
    spec, _ = of(card(firewall=None, isolation={"mode": "custom", "deniedNetworks": ["10.9.0.0/16"]}))
    assert spec["ingress"] == [{"from": [{"ipBlock": {"cidr": EVERYWHERE, "except": ["10.9.0.0/16"]}}]}]
    assert of(card(firewall=None, isolation={"mode": "none"})) == (None, ())
    assert of(p.NetworkPayload(name="lan")) == (None, ())


def test_a_card_on_a_bridge_is_told() -> None:
    bridged = p.NetworkPayload(name="lan", bridge="br7", security=p.NetworkSecurityPayload(firewall={"enabled": True}))
    spec, told = of(bridged)
    assert spec is None and "on a bridge" in told[0]


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(ProviderError) as caught:
        of(card(firewall={"enabled": "perhaps"}))
    assert caught.value.kind is ErrorKind.INVALID_SPEC


@pytest.mark.spec("virtrigaud", 121)
@played
async def test_the_policy_is_there_before_the_machine_runs_and_goes_with_it(target: Target, /) -> None:
    answer = await target.driver.create(creation(networks=(card((SSH,)),)))
    found = (await target.host.api.get(f"{POLICIES}/web-firewall")).data
    assert found["spec"]["ingress"][0]["ports"] == [{"protocol": "TCP", "port": 22}]
    assert await target.ends(answer.task) == "" and await target.power(answer.id, m.PowerOp.ON) == ""
    (policy,) = target.host.engine.networks.policies
    (owner,) = {key[0] for key in target.host.engine.networks.cards}
    assert policy.owners == (owner,) and policy.egress == () and policy.ingress is not None
    for cards, wanted in (((card((SSH, WEB)),), 2), ((p.NetworkPayload(name="lan"),), None), ((card((WEB,)),), 1)):
        desired = p.encode(p.DesiredPayload(name="web", machine_class=HARDWARE, image=IMAGE, networks=cards))
        changed = await target.driver.reconfigure(m.ReconfigureRequest(id=answer.id, desired_json=desired))
        assert await target.ends(changed.task) == ""
        found = (await target.host.api.get(f"{POLICIES}/web-firewall")).data
        assert len(found["spec"]["ingress"]) == wanted if wanted else found["code"] == 404
    assert await target.ends((await target.driver.delete(m.DeleteRequest(id=answer.id))).task) == ""
    assert (await target.host.api.get(POLICIES)).data["items"] == []
