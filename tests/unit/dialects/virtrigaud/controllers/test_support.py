"""What a Provider does not report is in a condition of the machine, or keeps it from being made (docs/spec/virtrigaud.md 3.5)."""

import asyncio
import json

import msgspec
import pytest

from paddock.contract import messages as m
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.rigaudharness import machine, network, rigaud, vmclass

GREEDY = {"guestToolsPolicy": "upgrade", "resourceLimits": {"cpuLimit": 2000}, "securityProfile": {"secureBoot": True}}
DISK = {"name": "data", "sizeGiB": 1, "storageClass": "gold", "scsi": {"controller": 1}}


@pytest.mark.spec("virtrigaud", 43, 104, 118, 119, 120, 121)
@pytest.mark.spec("virtrigaud", 117, "else a condition says so")
@timeless
async def test_what_upstreams_provider_cannot_say_is_named() -> None:
    async with rigaud(without=("class", "disks", "networks", "placement")) as life:
        await life.make(vmclass("greedy", **GREEDY), network("slow", qos={"egressLimit": 8000}))
        await life.make(machine(classRef={"name": "greedy"}, disks=[DISK], networks=[{"name": "lan", "networkRef": {"name": "slow"}}]))
        await life.ready()
        found = await life.condition("Unsupported")
        assert (found["status"], found["reason"]) == ("True", "UnsupportedByProvider")
        for name in (
            "storageClass of disk data",
            "scsi of disk data",
            "guestToolsPolicy",
            "resourceLimits.cpuLimit",
            "securityProfile",
            "qos of",
        ):
            assert name in found["message"], found["message"]
        (asked,) = life.driver.of("Create")
        assert json.loads(asked.networks_json)[0]["QoS"]["EgressLimit"] == 8000


@timeless
async def test_a_provider_with_the_features_has_nothing_to_name() -> None:
    async with rigaud() as life:
        await life.make(vmclass("greedy", **GREEDY), machine(classRef={"name": "greedy"}, disks=[DISK]))
        await life.ready()
        assert await life.condition("Unsupported") == {}
        (inside,) = life.driver.driver._inventory.machines.values()
        assert inside.disks[1].storage_class == "gold" and '"Controller":1' in inside.disks[1].scsi


@timeless
async def test_what_the_provider_says_it_could_not_do_is_repeated() -> None:
    async with rigaud() as life:

        async def script(rpc: str, request: m.WireMessage) -> m.WireMessage | None:
            if rpc != "Describe" or not isinstance(request, m.DescribeRequest):
                return None
            answer = await life.driver.driver.describe(request)
            words = {"limitations": json.dumps(["cpuShares: nobody weighs machines here"])}
            return msgspec.structs.replace(answer, provider_raw_json=json.dumps(words))

        life.driver.script = script
        await life.make(machine())
        await life.ready()
        assert "cpuShares: nobody weighs machines here" in (await life.condition("Unsupported"))["message"]


@pytest.mark.spec("virtrigaud", 104, 120)
@timeless
async def test_a_class_that_must_encrypt_is_refused_without_a_request() -> None:
    secure = {"securityProfile": {"encryptionPolicy": {"enabled": True, "requireEncryption": True}}}
    async with rigaud(without=("class.securityProfile",)) as life:
        await life.make(vmclass("secure", **secure), machine(classRef={"name": "secure"}), machine("gpu", resources={"gpu": {"count": 1}}))
        await asyncio.sleep(60)
        assert await life.said() == ("False", "UnsupportedByProvider") and (await life.status())["phase"] == "Failed"
        assert "encryptionPolicy" in (await life.condition())["message"]
        assert [each.name for each in life.driver.of("Create")] == ["gpu"]
