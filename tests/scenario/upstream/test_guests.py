"""What agents and the memory of guests say, as `tests/compute/guest_agent.go` and `tests/storage/memorydump.go` of KubeVirt want it."""

import asyncio

import pytest

from paddock.engine.machine import guest
from paddock.kubernetes.core.storageclass import PROVISIONER
from tests.coroutines import played
from tests.kit.engine.fakehost import FakeHost, machine
from tests.scenario.upstream.asking import asked, condition, phase
from tests.scenario.upstream.test_plugging import disk

pytestmark = pytest.mark.spec("kubevirt", 110)


@played
async def test_a_guest_is_ready_again_when_its_agent_is_back(host: FakeHost, /) -> None:
    await host.make(machine(readinessProbe={"guestAgentPing": {}, "periodSeconds": 5}))
    ran = await host.running()
    for there in (True, False, True):
        (ran.agent.connect if there else ran.agent.disconnect)()
        await asyncio.sleep(30)
        assert condition(await host.vmi(), "Ready") == str(there)


@played
async def test_a_command_that_fails_ends_a_guest_that_has_to_live(host: FakeHost, /) -> None:
    probe = {"exec": {"command": ["invalid"]}, "periodSeconds": 5, "initialDelaySeconds": 10}
    await host.make(machine(strategy="Once", livenessProbe=probe))
    ran = await host.running()
    ran.agent.connect()
    await asyncio.sleep(30)
    assert await phase(host) == "Running"
    ran.agent.run = lambda argv: guest.GuestExecResult(1, b"", b"")
    await asyncio.sleep(60)
    assert await phase(host) == "Failed"


@played
async def test_an_agent_that_goes_is_not_told_of_any_more(host: FakeHost, /) -> None:
    await host.make(machine())
    ran = await host.running()
    for there in (True, False):
        (ran.agent.connect if there else ran.agent.disconnect)()
        await asyncio.sleep(30)
        assert condition(await host.vmi(), "AgentConnected") in (("True",) if there else ("", "False"))


async def dumped(host: FakeHost, claim: str) -> None:
    await asked(host, "web", "memorydump", {"claimName": claim}, seconds=30)
    request = (await host.vm())["status"]["memoryDumpRequest"]
    assert (request["claimName"], request["phase"]) == (claim, "Completed"), request
    notes = (await host.get("PersistentVolumeClaim", "v1", claim))["metadata"]["annotations"]
    assert notes["kubevirt.io/memory-dump"] == request["fileName"]


async def forgotten(host: FakeHost) -> None:
    await asked(host, "web", "removememorydump", seconds=30)
    assert "memoryDumpRequest" not in (await host.vm())["status"]
    assert not (await host.vm())["spec"]["template"]["spec"].get("volumes")


@pytest.mark.spec("kubevirt", 150)
@played
async def test_memory_is_dumped_again_and_to_another_claim(host: FakeHost, /) -> None:
    await host.make(machine())
    await host.running()
    for claim in ("one", "two"):
        await disk(host, claim, "claim")
        await dumped(host, claim)
        first = (await host.vm())["status"]["memoryDumpRequest"]["endTimestamp"]
        await dumped(host, claim)
        assert (await host.vm())["status"]["memoryDumpRequest"]["endTimestamp"] > first
        await forgotten(host)


@pytest.mark.parametrize("then", ["remove", "start"])
@played
async def test_a_dump_outlives_the_run_it_is_of(host: FakeHost, /, then: str) -> None:
    await host.make(machine())
    await host.running()
    await disk(host, "one", "claim")
    await dumped(host, "one")
    await asked(host, "web", "stop", seconds=20)
    assert (await host.vm())["status"]["memoryDumpRequest"]["phase"] == "Completed"
    if then == "start":
        await asked(host, "web", "start", seconds=20)
        await host.running()
        assert (await host.vm())["status"]["memoryDumpRequest"]["claimName"] == "one"
    await forgotten(host)


@pytest.mark.spec("kubevirt", 151)
@played
async def test_a_dump_waits_for_a_claim_that_is_not_bound_until_it_is_removed(host: FakeHost, /) -> None:
    await host.make(machine())
    await host.running()
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "no-exist", "resources": resources}
    await host.make({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "stuck"}, "spec": spec})
    await asked(host, "web", "memorydump", {"claimName": "stuck"}, seconds=60)
    assert (await host.vm())["status"]["memoryDumpRequest"]["phase"] == "InProgress"
    await forgotten(host)
    claim = await host.get("PersistentVolumeClaim", "v1", "stuck")
    assert "kubevirt.io/memory-dump" not in (claim["metadata"].get("annotations") or {})
    await asked(host, "web", "memorydump", {"claimName": "stuck"})
    made = await host.api.post("/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "no-exist"}, "provisioner": PROVISIONER})
    assert made.status == 201, made.data
    await asyncio.sleep(60)
    assert (await host.vm())["status"]["memoryDumpRequest"]["phase"] == "Completed"
