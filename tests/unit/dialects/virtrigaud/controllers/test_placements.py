"""Machines find their places: policies, storage pods, and what is counted (docs/spec/virtrigaud.md 1.10, 2.9 and 2.10)."""

import asyncio
import json
from typing import Any

import pytest

from paddock.base.jsondata import Data
from paddock.contract import messages as m
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake.settings import FakeDatastore, FakeHost, RpcFault
from tests.coroutines import timeless
from tests.unit.kubevirt.controllers.rigaudharness import API, Rigaud, machine, provider, rigaud, vmclass

GIB = 1 << 30
ZONE = "topology.kubernetes.io/zone"
HOSTS = tuple(FakeHost(id=f"h{number}", labels={ZONE: f"z{number}"}, memory_mib=65536 - number) for number in (1, 2, 3))
STORES = (
    FakeDatastore(name="slow", pod="gold", free_bytes=500 * GIB),
    FakeDatastore(name="fast", pod="gold", free_bytes=400 * GIB),
    FakeDatastore(name="broken", pod="gold", free_bytes=900 * GIB, maintenance=True),
    FakeDatastore(name="lost", pod="gold", free_bytes=900 * GIB, accessible=False),
)
KIND = "VMPlacementPolicy"
APART: Data = {"antiAffinity": {"hostAntiAffinity": {"enabled": True, "maxVMsPerHost": 1, "scope": "strict"}}}


def policy(name: str = "spread", **spec: Any) -> Data:
    return {"apiVersion": API, "kind": KIND, "metadata": {"name": name}, "spec": spec}


def placed(name: str = "web", **spec: Any) -> Data:
    return machine(name, placementRef={"name": "spread"}, **spec)


async def stats(life: Rigaud, name: str = "spread") -> Data:
    return dict((await life.status(name, KIND)).get("placementStats") or {})


async def hosts(life: Rigaud) -> dict[str, str]:
    return {each.name: each.provider_raw["host"] for each in await life.machines()}


@pytest.mark.spec("virtrigaud", 47, 95)
@timeless
async def test_machines_of_a_policy_are_spread_and_the_last_one_waits() -> None:
    async with rigaud(hosts=HOSTS) as life:
        await life.make(policy(**APART), *(placed(f"web-{number}") for number in range(4)))
        await asyncio.sleep(80)
        found = await hosts(life)
        assert sorted(found.values()) == ["h1", "h2", "h3"]
        (waiting,) = {f"web-{number}" for number in range(4)} - set(found)
        ready = await life.condition("Ready", waiting)
        assert (ready["status"], ready["reason"]) == ("False", "WaitingForDependencies")
        assert "VMPlacementPolicy default/spread" in ready["message"]
        assert "antiAffinity.hostAntiAffinity.maxVMsPerHost 1 rejects 3 of 3 hosts" in ready["message"]
        assert await life.said("Placement", waiting) == ("False", "ConstraintsViolated")
        assert (await life.status(waiting))["phase"] == "Pending"
        counted = await stats(life)
        assert (counted["totalPlacements"], counted["successfulPlacements"], counted["failedPlacements"]) == (4, 3, 1)
        assert counted["placementDistribution"] == {"h1": 1, "h2": 1, "h3": 1}
        assert counted["constraintViolations"] == 1
        status = await life.status("spread", KIND)
        assert status["usedByVMs"] == [{"name": f"web-{number}"} for number in range(4)]
        # A host becomes free: the machine that waited is made, and counted once.
        gone = next(name for name, host in found.items() if host == "h2")
        await life.delete(gone)
        await life.gone(gone)
        await life.ready(waiting)
        assert (await hosts(life))[waiting] == "h2"
        counted = await stats(life)
        assert (counted["successfulPlacements"], counted["failedPlacements"], counted["placementDistribution"]) == (
            4,
            1,
            {"h1": 1, "h2": 1, "h3": 1},
        )


@pytest.mark.spec("virtrigaud", 47, 45)
@timeless
async def test_a_decision_is_recorded_and_goes_to_the_provider() -> None:
    async with rigaud(hosts=HOSTS, datastores=STORES) as life:
        rules: Data = {"hard": {"zones": ["z2", "z3"], "datastores": ["fast"], "folders": ["/vms"], "resourcePools": ["tenants"]}}
        await life.make(policy(**rules, soft={"zones": ["z3"]}), placed())
        status = await life.ready()
        request = life.driver.of("Create")[0]
        assert request.target_host_id == "h3"
        sent = json.loads(request.placement_json)
        assert sent == {"Datastore": "fast", "StoragePod": "", "Cluster": "", "Folder": "/vms", "Host": "h3", "ResourcePool": "tenants"}
        kept = {name.removeprefix("paddock.io/placed-"): value for name, value in status["provider"].items() if "/placed-" in name}
        uid = (await life.get("spread", KIND))["metadata"]["uid"]
        assert kept == {
            "host": "h3",
            "target-host": "h3",
            "zone": "z3",
            "datastore": "fast",
            "folder": "/vms",
            "resource-pool": "tenants",
            "policy": "spread",
            "policy-uid": uid,
        }
        assert await life.said("Placement") == ("True", "Placed")
        # What is chosen stays: a change of sizes names the same place.
        await life.merge("web", {"spec": {"powerState": "Off", "resources": {"cpu": 4}}})
        await life.ready()
        desired = json.loads(life.driver.of("Reconfigure")[0].desired_json)
        assert desired["Placement"] == sent
        assert {each.target_host_id for each in life.driver.of("Power")} == {"h3"}


@pytest.mark.spec("virtrigaud", 47)
@timeless
async def test_a_policy_that_is_missing_or_changes_is_waited_for() -> None:
    async with rigaud(hosts=HOSTS) as life:
        await life.make(placed())
        await asyncio.sleep(3)
        assert "there is no VMPlacementPolicy default/spread" in (await life.condition())["message"]
        await life.make(policy(hard={"zones": ["z9"]}))
        await asyncio.sleep(3)
        assert "hard.zones [z9] rejects 3 of 3 hosts" in (await life.condition())["message"]
        assert life.driver.count("Create") == 0
        await life.merge("spread", {"spec": {"hard": {"zones": ["z1"]}}}, KIND)
        await life.ready()
        assert await hosts(life) == {"web": "h1"}


@pytest.mark.spec("virtrigaud", 47, 104)
@timeless
async def test_what_a_provider_cannot_check_holds_or_is_reported() -> None:
    async with rigaud(without=("datastores",)) as life:
        await life.make(policy(hard={"zones": ["z1"], "datastores": ["d"]}), placed())
        await asyncio.sleep(60)
        found = await life.condition()
        assert found["reason"] == "WaitingForDependencies"
        assert "hard.zones [z1] cannot be checked because the Provider lists no hosts" in found["message"]
        assert "hard.datastores [d] cannot be checked because the Provider lists no datastores" in found["message"]
        assert life.driver.count("Create") == 0
        result = (await life.status("spread", KIND))["validationResults"]["default/lab"]
        assert result["valid"] is False and any("hard.zones" in each for each in result["errors"])
        assert await life.said("Supported", "spread", KIND) == ("False", "Unsupported")
        await life.merge("spread", {"spec": {"hard": None, "soft": {"zones": ["z1"]}}}, KIND)
        await life.ready()
        assert "cannot check: soft.zones [z1]" in (await life.condition("Placement"))["message"]
        assert await life.said("Ready", "spread", KIND) == ("True", "Valid")


@pytest.mark.spec("virtrigaud", 46)
@timeless
async def test_the_pods_member_with_most_free_space_is_taken() -> None:
    async with rigaud(datastores=STORES) as life:
        await life.make(vmclass("large", diskDefaults={"size": "150Gi"}), provider("pods", defaults={"storagePod": "gold"}))
        ref = {"providerRef": {"name": "pods"}, "classRef": {"name": "large"}}
        for number, expected in enumerate(("slow", "fast", "slow", "fast")):
            await life.make(machine(f"web-{number}", **ref))
            status = await life.ready(f"web-{number}")
            assert (status["provider"]["paddock.io/placed-datastore"], status["provider"]["paddock.io/placed-storage-pod"]) == (
                expected,
                "gold",
            )
        sent = json.loads(life.driver.of("Create")[0].placement_json)
        assert (sent["Datastore"], sent["StoragePod"]) == ("slow", "")
        await life.make(machine("web-4", **ref), machine("web-5", **ref))
        await asyncio.sleep(60)
        (held,) = [name for name in ("web-4", "web-5") if not (await life.status(name)).get("id")]
        text = (await life.condition("Ready", held))["message"]
        assert "storagePod gold has no datastore" in text and "broken is in maintenance" in text and "lost is not accessible" in text
        # A machine that goes makes room, and nobody else moves.
        await life.delete("web-0")
        await life.gone("web-0")
        assert (await life.ready(held))["provider"]["paddock.io/placed-datastore"] == "slow"


@pytest.mark.spec("virtrigaud", 46)
@timeless
async def test_a_provider_without_datastores_chooses_itself() -> None:
    async with rigaud(without=("datastores",)) as life:
        await life.make(machine(placement={"storagePod": "gold"}))
        status = await life.ready()
        assert json.loads(life.driver.of("Create")[0].placement_json)["StoragePod"] == "gold"
        assert life.driver.count("ListDatastores") == 0
        assert not any("placed-datastore" in name for name in status["provider"])


@pytest.mark.spec("virtrigaud", 47)
@timeless
async def test_policies_that_contradict_each_other_are_named() -> None:
    async with rigaud(hosts=HOSTS) as life:
        await life.make(policy("east", hard={"zones": ["z1"]}, priority=5), policy("west", hard={"zones": ["z2"]}), policy("any"))
        await asyncio.sleep(2)
        (found,) = (await life.status("east", KIND))["conflictingPolicies"]
        assert (found["policyName"], found["conflictType"], found["severity"]) == ("west", "hard", "low")
        assert "hard.zones [z1] and [z2]" in found["description"] and "VMPlacementPolicy east" in found["resolutionSuggestion"]
        assert await life.said("Conflicts", "west", KIND) == ("True", "Conflicts")
        assert await life.said("Conflicts", "any", KIND) == ("False", "NoConflicts")
        await life.merge("west", {"spec": {"hard": {"zones": ["z1", "z2"]}}}, KIND)
        await asyncio.sleep(2)
        assert "conflictingPolicies" not in await life.status("east", KIND)
        await life.merge("any", {"spec": {"hard": {"hosts": ["h1"], "excludedHosts": ["h1", "h2"]}}}, KIND)
        await asyncio.sleep(2)
        found = await life.condition("Validated", "any", KIND)
        assert (found["status"], found["reason"], found["observedGeneration"]) == ("False", "Invalid", 2)


@pytest.mark.spec("virtrigaud", 47)
@pytest.mark.parametrize("number", range(26))
@timeless
async def test_the_process_ends_before_each_write_and_everything_is_counted_once(number: int) -> None:
    async with rigaud(hosts=HOSTS[:2]) as life:
        await life.make(policy(**APART))
        await asyncio.sleep(1)
        life.wire.writes, life.wire.ends_at = 0, number
        await life.make(*(placed(f"web-{each}") for each in range(3)))
        await asyncio.sleep(40)
        life.wire.ends_at = -1
        await life.restart()
        await asyncio.sleep(120)
        counted = await stats(life)
        assert (counted["successfulPlacements"], counted["failedPlacements"]) == (2, 1)
        assert sorted((await hosts(life)).values()) == ["h1", "h2"]
        (waiting,) = {"web-0", "web-1", "web-2"} - set(await hosts(life))
        life.wire.writes, life.wire.ends_at = 0, number
        await life.delete(sorted(await hosts(life))[0])
        await asyncio.sleep(60)
        life.wire.ends_at = -1
        await life.restart()
        await life.ready(waiting)
        await asyncio.sleep(5)
        counted = await stats(life)
        assert (counted["successfulPlacements"], counted["failedPlacements"], counted["totalPlacements"]) == (3, 1, 4)
        assert counted["placementDistribution"] == {"h1": 1, "h2": 1}


@pytest.mark.spec("virtrigaud", 47, 26)
@pytest.mark.parametrize("effect", ["error", "lost-answer", "task-error"])
@pytest.mark.parametrize("rpc", ["ListHosts", "ListVMs", "ListDatastores", "Create"])
@timeless
async def test_a_fault_at_each_call(rpc: str, effect: Any) -> None:
    async with rigaud(hosts=HOSTS, datastores=STORES, faults=(RpcFault(rpc=rpc, effect=effect, count=2),)) as life:
        rules: Data = {"hard": {"datastores": ["slow", "fast"]}}
        await life.make(policy(**rules, **APART), placed("web-0"), placed("web-1"), placed("web-2"))
        for name in ("web-0", "web-1", "web-2"):
            await life.ready(name)
        found = await hosts(life)
        assert sorted(found.values()) == ["h1", "h2", "h3"]
        counted = await stats(life)
        # A machine that the provider did not make after all finds its place anew.
        anew = 2 if (rpc, effect) == ("Create", "task-error") else 0
        assert (counted["successfulPlacements"], counted.get("failedPlacements", 0)) == (3 + anew, 0)


@pytest.mark.spec("virtrigaud", 47)
@timeless
async def test_a_machine_that_goes_before_its_place_is_counted_is_counted() -> None:
    async with rigaud(hosts=HOSTS) as life:
        life.driver.down = None

        async def fails(rpc: str, request: m.WireMessage) -> None:
            if rpc == "Create":
                raise ProviderError(ErrorKind.UNAVAILABLE, "later")

        life.driver.script = fails
        await life.make(policy(**APART), placed())
        await asyncio.sleep(30)
        life.driver.script = None
        await life.delete()
        await life.gone()
        assert (await stats(life))["successfulPlacements"] == 1
        await life.make(placed())
        await life.ready()
        assert (await stats(life))["successfulPlacements"] == 2


@pytest.mark.spec("virtrigaud", 113, 114)
@timeless
async def test_nothing_is_asked_for_a_machine_that_has_its_place() -> None:
    async with rigaud(hosts=HOSTS) as life:
        await life.make(policy(**APART), placed())
        await life.ready()
        before = life.driver.count("ListVMs")
        await asyncio.sleep(3000)
        assert life.driver.count("ListVMs") == before == 1
        assert life.driver.count("ListHosts") <= 8
