"""Running guests that go from one server to another, by objects alone, on two whole hosts in virtual time."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests import virtualtime
from tests.coroutines import played
from tests.kit.engine.enginefakes import FakeMachine
from tests.kit.engine.fakehost import Data, FakeHost, machine
from tests.kit.engine.migrationdoors import MemoryNetwork
from tests.scenario.why.faults import asked

API, KIND = "kubevirt.io/v1", "VirtualMachineInstanceMigration"
GATE = "DecentralizedLiveMigration"
FENCE = "paddock.dev/fence"
Script = Callable[["Pair"], Awaitable[None]]
Play = Callable[[Script], None]


class Pair:
    """Two servers, `a` with a machine whose guest runs, and `b`."""

    def __init__(self, root: Path) -> None:
        self.network = MemoryNetwork()
        self.a, self.b = (self._host(root / name, name) for name in ("a", "b"))

    def _host(self, root: Path, name: str) -> FakeHost:
        root.mkdir()
        host = FakeHost(root)
        host.network, host.name = self.network, name
        return host

    async def begin(self, **more: Any) -> FakeMachine:
        """The guest runs at the first, and the second waits for it."""
        for host in (self.a, self.b):
            await open_gate(host)
        made = machine(**more)
        made["spec"]["template"]["metadata"] = {"labels": {"tier": "x"}}
        await self.a.make(made)
        guest = await self.a.running()
        await self.waits()
        return guest

    async def waits(self, strategy: str = "Always") -> None:
        made = machine(strategy="WaitAsReceiver")
        made["metadata"]["annotations"] = {"kubevirt.io/restore-run-strategy": strategy}
        await self.b.make(made)
        await asyncio.sleep(5)

    async def migrate(self, id: str = "m1", seconds: float = 10) -> None:
        await self.b.make(migration("receive", id))
        await self.a.make(migration("sendTo", id))
        await asyncio.sleep(seconds)


def migration(side: str, id: str = "m1", name: str = "", url: str = "b:1") -> Data:
    end = {"migrationID": id, **({"connectURL": url} if side == "sendTo" else {})}
    return {"apiVersion": API, "kind": KIND, "metadata": {"name": name or id}, "spec": {"vmiName": "web", side: end}}


async def open_gate(host: FakeHost) -> None:
    spec = {"configuration": {"developerConfiguration": {"featureGates": [GATE]}}}
    reply = await host.api.merge("/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt", {"spec": spec})
    assert reply.status == 200, reply.data


async def status(host: FakeHost, name: str = "m1") -> Data:
    found = (await host.get(KIND, API, name)).get("status") or {}
    return dict(found)


async def phases(host: FakeHost, name: str = "m1") -> list[str]:
    return [each["phase"] for each in (await status(host, name)).get("phaseTransitionTimestamps") or ()]


async def fence(host: FakeHost) -> str:
    return str(((await host.vm())["metadata"].get("annotations") or {}).get(FENCE, ""))


async def machine_of(host: FakeHost) -> FakeMachine | None:
    found = await host.vmi()
    return host.engine.machines.get(found["metadata"]["uid"]) if found else None


@pytest.fixture
def play(tmp_path: Path) -> Play:
    """Runs a script with two fresh servers."""

    def run(script: Script) -> None:
        async def inside() -> None:
            made = Pair(tmp_path)
            async with made.a, made.b:
                await script(made)

        virtualtime.run(inside())

    return run


ON_THE_WAY = ["Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running"]


@pytest.mark.spec("kubevirt", 276, 277, 278, 279, 281)
@played
async def test_a_guest_goes_by_objects_alone(pair: Pair, /) -> None:
    guest = await pair.begin()
    assert (await pair.b.vmi())["status"]["phase"] == "WaitingForSync" and await pair.b.status() == "WaitingForReceiver"
    waiting = await machine_of(pair.b)
    assert waiting is not None and waiting.observed.phase == "defined"
    await pair.migrate()
    there, here = await status(pair.b), await status(pair.a)
    assert (there["phase"], here["phase"]) == ("Succeeded", "Succeeded"), (there, here)
    assert await phases(pair.b) == ["WaitingForSync", *ON_THE_WAY, "Succeeded"]
    assert await phases(pair.a) == ["Synchronizing", *ON_THE_WAY, "Succeeded"]
    assert (there["synchronizationAddresses"], here["synchronizationAddresses"]) == (["b:1"], ["a:1"]) and "conditions" not in there
    assert here["migrationState"]["sourceState"]["node"] == "host" and here["migrationState"]["completed"]
    arrived = await machine_of(pair.b)
    assert arrived is not None and arrived.observed.phase == "running" and len(guest.sent) == 1
    vmi, vm = await pair.b.vmi(), await pair.b.vm()
    assert "kubevirt.io/create-migration-target" not in vmi["metadata"]["annotations"]
    state = vmi["status"]["migrationState"]
    assert vmi["status"]["phase"] == "Running" and state["completed"] and not state.get("failed")
    assert state["sourceState"]["migrationUID"] == (await pair.a.get(KIND, API, "m1"))["metadata"]["uid"]
    assert vm["spec"]["runStrategy"] == "Always" and await pair.b.status() == "Running"
    source = await pair.a.vm()
    assert source["spec"]["runStrategy"] == "Halted" and "b:1" in await fence(pair.a)
    assert await pair.a.vmi() == {} and await pair.a.status() == "Stopped"
    assert (await pair.a.verb("web", "start")).status == 409
    await pair.a.change("web", {"spec": {"runStrategy": "Always"}})
    await asyncio.sleep(30)
    assert await pair.a.vmi() == {}, "it runs on the old disks"
    assert "SuccessfulMigration" in await pair.a.events("m1") and "SuccessfulMigration" in await pair.b.events("m1")
    for host in (pair.a, pair.b):
        await host.delete(KIND, API, "m1")
        assert await host.get(KIND, API, "m1") == {}


@pytest.mark.spec("kubevirt", 280, 282)
@played
async def test_the_fence_is_there_before_the_guest_leaves_and_goes_if_it_stays(pair: Pair, /) -> None:
    guest = await pair.begin()
    guest.goes.clear()
    await pair.migrate()
    assert "m1" in await fence(pair.a) and (await status(pair.a))["phase"] == (await status(pair.b))["phase"] == "Running"
    assert (await pair.a.vmi())["status"]["migrationState"]["migrationUid"] and await pair.a.status() == "Migrating"
    await pair.a.delete(KIND, API, "m1")
    await asyncio.sleep(5)
    assert await pair.a.get(KIND, API, "m1") == {} and not await fence(pair.a)
    assert guest.observed.phase == "running" and await pair.a.status() == "Running"
    there = await status(pair.b)
    assert there["phase"] == "Failed" and "deleted" in there["migrationState"]["failureReason"]
    assert (await pair.b.vmi())["status"]["phase"] == "WaitingForSync"
    again = await machine_of(pair.b)
    assert again is not None and again.observed.phase == "defined"
    guest.goes.set()
    await pair.migrate("m2")
    assert (await status(pair.a, "m2"))["phase"] == (await status(pair.b, "m2"))["phase"] == "Succeeded"


@pytest.mark.spec("kubevirt", 282)
@played
async def test_the_target_calls_it_off(pair: Pair, /) -> None:
    guest = await pair.begin()
    guest.goes.clear()
    await pair.migrate()
    await pair.b.delete(KIND, API, "m1")
    await asyncio.sleep(2)
    guest.goes.set()
    await asyncio.sleep(5)
    assert await pair.b.get(KIND, API, "m1") == {}
    here = await status(pair.a)
    assert here["phase"] == "Failed" and guest.observed.phase == "running" and not await fence(pair.a)
    assert "FailedMigration" in await pair.a.events("m1")


@pytest.mark.spec("kubevirt", 283)
@pytest.mark.parametrize("side", ["source", "target"])
@played
async def test_what_cannot_be_is_said_before_anything_happens(pair: Pair, /, side: str) -> None:
    guest = await pair.begin()
    why = "disk data has 1 bytes, and that of the target has 2"
    waiting = await machine_of(pair.b)
    assert waiting is not None
    if side == "target":
        waiting.lacking = why
    else:
        guest.rooted = why
    await pair.migrate()
    for host in (pair.a, pair.b):
        found = await status(host)
        assert found["phase"] == "Failed" and why in found["migrationState"]["failureReason"], found
        assert "Running" not in await phases(host)
        assert "FailedMigration" in await host.events("m1")
        assert any(why in each.cause for each in (await asked(host, "vmim/m1")).findings)
    assert not guest.sent and not await fence(pair.a) and await pair.a.status() == "Running"
    assert (await pair.b.vmi())["status"]["phase"] == "WaitingForSync"


@pytest.mark.spec("kubevirt", 284)
@played
async def test_what_may_still_come_blocks_both_and_is_asked_again(pair: Pair, /) -> None:
    await pair.begin()
    await pair.a.make(migration("sendTo"))
    await asyncio.sleep(10)
    here = await status(pair.a)
    (blocked,) = here["conditions"]
    assert here["phase"] == "Synchronizing" and blocked["type"] == "decentralizedMigrationBlocked"
    assert "waits for migration m1" in blocked["message"]
    of_instance = {each["type"]: each for each in (await pair.a.vmi())["status"]["conditions"]}
    assert of_instance["DecentralizedLiveMigrationFailure"]["message"] == blocked["message"]
    finding = (await asked(pair.a, "vm/web")).findings[0]
    assert finding.rule == "server-migration-waits" and "waits for migration m1" in finding.cause
    pair.network.cut = True
    await asyncio.sleep(10)
    assert "cannot reach the server at b" in (await status(pair.a))["conditions"][0]["message"]
    await pair.b.make(migration("receive"))
    await asyncio.sleep(5)
    assert (await status(pair.b))["conditions"][0]["message"] == "waiting for incoming synchronization, unable to proceed"
    pair.network.cut = False
    await asyncio.sleep(15)
    assert (await status(pair.a))["phase"] == (await status(pair.b))["phase"] == "Succeeded"
    assert "conditions" not in await status(pair.a)


@pytest.mark.spec("kubevirt", 285)
@played
async def test_the_source_begins_anew_before_the_offer(pair: Pair, /) -> None:
    guest = await pair.begin()
    guest.goes.clear()
    await pair.migrate()
    await pair.a.again()
    await asyncio.sleep(10)
    here, there = await status(pair.a), await status(pair.b)
    assert (here["phase"], there["phase"]) == ("Failed", "Failed") and not await fence(pair.a)
    assert guest.observed.phase == "running"


@pytest.mark.spec("kubevirt", 286)
@played
async def test_the_source_begins_anew_after_the_offer(pair: Pair, /) -> None:
    guest = await pair.begin()
    guest.goes.clear()
    await pair.migrate()
    take = FakeMachine.take

    async def cut(self: Any, migration: str) -> bool:
        pair.network.cut = True
        raise ConnectionResetError("cut")

    FakeMachine.take = cut  # type: ignore[method-assign]  # the line is cut at that moment
    guest.goes.set()
    await asyncio.sleep(5)
    FakeMachine.take = take  # type: ignore[method-assign]  # as before
    assert guest.observed.handed == "offered" and "m1" in await fence(pair.a)
    await pair.a.delete(KIND, API, "m1")
    await pair.a.again()
    await asyncio.sleep(5)
    assert (await status(pair.a))["phase"] == "Running", "nobody knows yet"
    pair.network.cut = False
    await asyncio.sleep(10)
    assert (await status(pair.b))["phase"] == "Succeeded" and await pair.a.get(KIND, API, "m1") == {}
    assert "b:1" in await fence(pair.a) and (await pair.a.vm())["spec"]["runStrategy"] == "Halted"


@pytest.mark.spec("kubevirt", 285)
@played
async def test_the_target_begins_anew_with_a_guest_that_waits(pair: Pair, /) -> None:
    guest = await pair.begin()
    guest.goes.clear()
    await pair.migrate()
    await pair.b.again()
    guest.goes.set()
    await asyncio.sleep(90)
    here, there = await status(pair.a), await status(pair.b)
    assert (here["phase"], there["phase"]) == ("Failed", "Failed") and guest.observed.phase == "running"
    assert (await pair.b.vmi())["status"]["phase"] == "WaitingForSync"


@pytest.mark.spec("kubevirt", 287)
@played
async def test_an_answer_outlives_the_machine(pair: Pair, /) -> None:
    guest = await pair.begin()
    guest.goes.clear()
    await pair.migrate()
    settle = guest.settle

    async def is_silent(_: Any) -> bool:
        raise ConnectionResetError("cut")

    guest.settle = is_silent  # type: ignore[method-assign,assignment]  # it is offered, and nobody hears the answer
    target = await machine_of(pair.b)
    assert target is not None
    guest.goes.set()
    await asyncio.sleep(3)
    assert guest.observed.handed == "offered"
    await target.take("m1")
    await asyncio.sleep(3)
    await pair.b.delete("VirtualMachine", API, "web")
    await asyncio.sleep(60)
    assert await pair.b.vmi() == {} and pair.b.engine.machines.get(target.id) is None
    guest.settle = settle  # type: ignore[method-assign]  # as before
    await asyncio.sleep(10)
    assert (await status(pair.a))["phase"] == "Succeeded"


REFUSED: tuple[tuple[str, dict[str, str], str], ...] = (
    ("sendTo", {"url": "nowhere"}, "is no address"),
    ("receive", {}, "has a guest of its own"),
)


@pytest.mark.spec("kubevirt", 288)
@pytest.mark.parametrize(("side", "more", "why"), REFUSED, ids=[each[0] for each in REFUSED])
@played
async def test_a_migration_that_cannot_begin_fails(pair: Pair, /, side: str, more: dict[str, str], why: str) -> None:
    await pair.begin()
    await pair.a.make(migration(side, **more))
    await asyncio.sleep(3)
    found = await status(pair.a)
    assert found["phase"] == "Failed" and why in found["migrationState"]["failureReason"]
    await pair.a.delete(KIND, API, "m1")
    assert await pair.a.get(KIND, API, "m1") == {}


@pytest.mark.spec("kubevirt", 288)
@played
async def test_an_id_is_used_once(pair: Pair, /) -> None:
    await pair.begin()
    await pair.migrate()
    await pair.b.change("web", {"spec": {"runStrategy": "Halted"}})
    await asyncio.sleep(10)
    await pair.b.delete("VirtualMachine", API, "web")
    await asyncio.sleep(5)
    await pair.waits()
    await pair.b.make(migration("receive", name="again"))
    await asyncio.sleep(3)
    found = await status(pair.b, "again")
    assert found["phase"] == "Failed" and "choose another migrationID" in found["migrationState"]["failureReason"]


@pytest.mark.spec("kubevirt", 289)
@played
async def test_a_policy_limits_it(pair: Pair, /) -> None:
    guest = await pair.begin()
    policy = {
        "apiVersion": "migrations.kubevirt.io/v1alpha1",
        "kind": "MigrationPolicy",
        "metadata": {"name": "slow"},
        "spec": {
            "selectors": {"virtualMachineInstanceSelector": {"tier": "x"}},
            "bandwidthPerMigration": "64Mi",
            "completionTimeoutPerGiB": 20,
            "allowAutoConverge": True,
        },
    }
    reply = await pair.a.api.post("/apis/migrations.kubevirt.io/v1alpha1/migrationpolicies", policy)
    assert reply.status == 201, reply.data
    await pair.migrate()
    (sent,) = guest.sent
    assert (sent.bandwidth, sent.seconds, sent.auto_converge) == (64 << 20, 20.0, True)
    state = (await status(pair.a))["migrationState"]
    assert state["migrationPolicyName"] == "slow" and state["migrationConfiguration"]["bandwidthPerMigration"] == str(64 << 20)


@pytest.mark.spec("kubevirt", 279)
@played
async def test_a_fenced_machine_may_receive_its_guest_back(pair: Pair, /) -> None:
    await pair.begin()
    await pair.migrate()
    notes = {"annotations": {"kubevirt.io/restore-run-strategy": "Always"}}
    await pair.a.change("web", {"metadata": notes, "spec": {"runStrategy": "WaitAsReceiver"}})
    await asyncio.sleep(5)
    assert (await pair.a.vmi())["status"]["phase"] == "WaitingForSync"
    await pair.a.make(migration("receive", "back"))
    await pair.b.make(migration("sendTo", "back", url="a:1"))
    await asyncio.sleep(10)
    assert (await status(pair.a, "back"))["phase"] == "Succeeded", await status(pair.a, "back")
    assert not await fence(pair.a) and "a:1" in await fence(pair.b)
    assert await pair.a.status() == "Running" and (await pair.a.vm())["spec"]["runStrategy"] == "Always"


@pytest.mark.spec("kubevirt", 278)
@played
async def test_a_machine_that_waits_runs_nothing_and_can_be_deleted(pair: Pair, /) -> None:
    await pair.begin()
    await pair.b.make(migration("receive"))
    await pair.b.again()
    await asyncio.sleep(60)
    waiting = await machine_of(pair.b)
    assert waiting is not None and waiting.observed.phase == "defined"
    await pair.b.delete("VirtualMachine", API, "web")
    await asyncio.sleep(10)
    assert await pair.b.vmi() == {} and list(pair.b.engine.machines) == []
    assert (await status(pair.b))["phase"] == "Failed"


@pytest.mark.spec("kubevirt", 269)
@pytest.mark.parametrize("side", ["sendTo", "receive"])
@played
async def test_without_a_port_it_fails_and_names_the_ways(pair: Pair, /, side: str) -> None:
    await pair.a.end()
    pair.a.name = ""
    await pair.a.begin()
    await open_gate(pair.a)
    await pair.a.make(machine())
    await pair.a.running()
    await pair.a.make(migration(side))
    await asyncio.sleep(5)
    why = (await status(pair.a))["migrationState"]["failureReason"]
    assert "start it with paddock up --migrations ADDRESS:PORT, or take the stopped machine with paddock move" in why
    assert "FailedMigration" in await pair.a.events("web", "VirtualMachineInstance")


@pytest.mark.spec("kubevirt", 291)
@played
async def test_the_kubevirt_object_shows_the_address_while_there_is_one(pair: Pair, /) -> None:
    path = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt"
    assert (await pair.b.api.get(path)).data["status"]["synchronizationAddresses"] == ["b:1"]
    await pair.b.end()
    pair.b.name = ""
    await pair.b.begin()
    assert "synchronizationAddresses" not in (await pair.b.api.get(path)).data["status"]


@pytest.mark.spec("kubevirt", 276)
@played
async def test_a_guest_goes_to_another_namespace_of_one_server(pair: Pair, /) -> None:
    host = pair.a
    guest = await pair.begin()
    await host.api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    there, receives = machine(strategy="WaitAsReceiver"), migration("receive")
    for each in (there, receives):
        each["metadata"]["namespace"] = "other"
    await host.make(there)
    await asyncio.sleep(5)
    await host.make(receives, migration("sendTo", name="m1", url="a:1"))
    await asyncio.sleep(10)
    assert (await status(host))["phase"] == "Succeeded", await status(host)
    moved = await host.get("VirtualMachineInstance", API, "web", "other")
    assert moved["status"]["phase"] == "Running" and await host.vmi() == {} and len(guest.sent) == 1
    (left,) = (each for each in host.engine.machines if each.observed.phase == "running")
    assert left.id == moved["metadata"]["uid"]
