"""What not every provider can do is named, or refused where the machine must not be made without it."""

import json
from typing import Any

import pytest

from paddock.contract import features
from paddock.contract.messages import DescribeResponse
from paddock.dialects.virtrigaud.kinds.provider import ReportedCapabilities
from paddock.dialects.virtrigaud.plan import requests, support
from paddock.dialects.virtrigaud.plan.references import MachineDependencies
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from tests.unit.dialects.virtrigaud.plan.made import found, machine, network, provider, vmclass

EVERYTHING = (*features.CALLS, *features.MEMBERS)
GREEDY = {
    "guestToolsPolicy": "skip",
    "resourceLimits": {"cpuLimit": 2000},
    "performanceProfile": {"latencySensitivity": "high", "cpuHotAddEnabled": False},
    "securityProfile": {"secureBoot": True},
}


@pytest.mark.parametrize(
    ("reported", "feature", "expected"),
    [
        (None, "exec", False),
        ((), "exec", False),
        (("exec",), "exec", True),
        (("class",), "class.gpu", True),
        (("class",), "classy", False),
        (("class.securityProfile",), "class.securityProfile.secureBoot", True),
        (("class.securityProfile.secureBoot",), "class.securityProfile", False),
    ],
)
def test_a_feature_stands_for_what_is_below_it(reported: Any, feature: str, expected: bool) -> None:
    assert features.has(reported, feature) is expected


@pytest.mark.spec("virtrigaud", 43, 118, 119, 120, 121)
@pytest.mark.spec("virtrigaud", 117, "else a condition says so")
def test_what_a_provider_does_not_report_is_named() -> None:
    disks = [{"name": "a", "sizeGiB": 1, "storageClass": "gold", "scsi": {}}]
    vm = machine(disks=disks, placement={"resourcePool": "pool"}, networks=[{"name": "lan", "networkRef": {"name": "lan"}}])
    guarded = network(qos={"egressLimit": 1000}, security={"firewall": {"enabled": True}})
    given = found(vm, vmclass(**GREEDY), guarded)
    assert support.unsupported(vm, given, None) == (
        "resourcePool pool",
        "storageClass of disk a",
        "scsi of disk a",
        "guestToolsPolicy skip of VMClass default/small",
        "resourceLimits.cpuLimit of VMClass default/small",
        "performanceProfile.latencySensitivity of VMClass default/small",
        "securityProfile.secureBoot of VMClass default/small",
        "qos of VMNetworkAttachment default/lan",
        "security of VMNetworkAttachment default/lan",
    )
    assert support.unsupported(vm, given, EVERYTHING) == ()
    assert "resourcePool pool" not in support.unsupported(vm, given, ("placement",))


def test_a_plain_machine_asks_for_nothing() -> None:
    vm = machine()
    assert support.unsupported(vm, found(vm), None) == ()
    assert support.message(vm, (), ()) == ""


@pytest.mark.spec("virtrigaud", 104, 120)
@pytest.mark.parametrize(
    ("own", "of_class", "feature", "named"),
    [
        ({"resources": {"gpu": {"count": 1}}}, {}, "class.gpu", "spec.resources.gpu"),
        (
            {},
            {"securityProfile": {"encryptionPolicy": {"enabled": True, "requireEncryption": True}}},
            "class.securityProfile.encryptionPolicy",
            "securityProfile.encryptionPolicy",
        ),
    ],
)
def test_what_a_machine_must_not_be_made_without_is_refused(own: Any, of_class: Any, feature: str, named: str) -> None:
    vm = machine(**own)
    given = found(vm, vmclass(**of_class))
    for reported in (None, ReportedCapabilities(), ReportedCapabilities(features=["exec"])):
        with pytest.raises(Refusal, match=named) as caught:
            support.refuse(vm, given, reported)
        assert caught.value.reason == "UnsupportedByProvider"
    support.refuse(vm, given, ReportedCapabilities(features=[feature]))
    with pytest.raises(Refusal):
        requests.create(vm, given, None)


def test_encryption_that_is_only_wanted_is_no_reason_to_refuse() -> None:
    vm = machine()
    given = found(vm, vmclass(securityProfile={"encryptionPolicy": {"enabled": True}}))
    support.refuse(vm, given, None)
    assert support.unsupported(vm, given, None) == ("securityProfile.encryptionPolicy of VMClass default/small",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps({"limitations": json.dumps(["a: b; c"])}), ("a: b; c",)),
        ("{}", ()),
        ("", ()),
        ("[", ()),
        (json.dumps({"limitations": "["}), ()),
        (json.dumps({"limitations": json.dumps({"a": 1})}), ()),
    ],
)
def test_what_a_provider_says_it_could_not_do(text: str, expected: tuple[str, ...]) -> None:
    assert support.limitations(DescribeResponse(provider_raw_json=text)) == expected


def test_the_message_names_the_provider_and_is_bounded() -> None:
    vm = machine()
    text = support.message(vm, ("a", "b"), ("c",))
    assert text == "Provider default/lab does not report that it can do a, b. Provider default/lab says: c"
    assert len(support.message(vm, (), ("x" * 10_000,))) == 4096
    assert provider().spec.type and isinstance(found(vm), MachineDependencies)


@pytest.mark.spec("virtrigaud", 130)
def test_the_block_of_a_network_behind_nat_is_named_on_type_qemu() -> None:
    vm = machine(networks=[{"name": "lan", "networkRef": {"name": "lan"}}])
    for kind, of_network, named in (("qemu", "nat", True), ("qemu", "bridged", False), ("libvirt", "nat", False)):
        given = found(vm, provider(kind), network({"type": of_network, "libvirt": {"networkName": "default"}}))
        (text,) = support.unsupported(vm, given, ()) or ("",)
        assert ("spec.network.libvirt of VMNetworkAttachment default/lan, whose type is nat" in text) == named
