"""Start, stop, restart, pause and reset on a whole host in virtual time, on machines of three dialects."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from paddock.fleet.machines import finding
from paddock.fleet.machines.running import VERBS, MachineRunner, RunOptions, WrongState
from paddock.fleet.machines.waiting import NotReached
from tests import virtualtime
from tests.coroutines import played_by
from tests.kit.engine.fakehost import Data, FakeHost, machine
from tests.scenario.fronts.stakater.stage import Stage, front

VITISTACK: Data = {
    "apiVersion": "vitistack.io/v1alpha1",
    "kind": "Machine",
    "metadata": {"name": "node"},
    "spec": {"template": "small"},
}
VITISTACK_PATH = "/apis/vitistack.io/v1alpha1/namespaces/default/machines"


class Person:
    """Somebody at a terminal."""

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.lines: list[str] = []

    async def says(self, verb: str, name: str = "web", **options: object) -> str:
        """Return the answer of a command."""
        async with self.host.api.client() as client:
            wish = RunOptions(**{"seconds": 60.0, **options})  # type: ignore[arg-type]
            runner = MachineRunner(client, virtualtime.Clock(), wish, self.lines.append)
            return await VERBS[verb](runner, await finding.find(client, name, "default"))


@asynccontextmanager
async def at_a_host(root: Path, document: Data | str) -> AsyncIterator[Person]:
    async with FakeHost(root) as host:
        await host.make(document)
        yield Person(host)


def play(script: Callable[[], Coroutine[None, None, None]]) -> None:
    virtualtime.run(script())


@pytest.mark.parametrize("was_so_before", [False, True])
@played_by(play)
async def test_a_start_ends_when_somebody_has_to_mend_something(tmp_path: Path, was_so_before: bool) -> None:
    """Long before its time is over, with the cause; also when the machine was in that state when the start began."""
    lost = {**VITISTACK, "spec": {"template": "small", "networks": [{"name": "eth0", "networkName": "none"}]}}
    async with FakeHost(tmp_path) as host:
        person = Person(host)
        assert (await host.api.post(VITISTACK_PATH, lost)).status == 201
        if was_so_before:
            await asyncio.sleep(60)
        begun = asyncio.get_running_loop().time()
        with pytest.raises(NotReached, match="NetworkConfiguration none does not exist"):
            await person.says("start", "node", seconds=300.0)
        assert asyncio.get_running_loop().time() - begun < 40


@played_by(play)
async def test_a_start_waits_for_what_comes_by_itself(tmp_path: Path) -> None:
    async with at_a_host(tmp_path, machine(strategy="Halted", nodeSelector={"disk": "fast"})) as person:
        starting = asyncio.create_task(person.says("start", seconds=300.0))
        await asyncio.sleep(10)
        assert (await person.host.api.merge("/api/v1/nodes/host", {"metadata": {"labels": {"disk": "fast"}}})).status == 200
        assert await starting == "started"


@played_by(play)
async def test_a_machine_of_kubevirt(tmp_path: Path) -> None:
    async with at_a_host(tmp_path, machine(strategy="Halted")) as person:
        host = person.host
        assert await person.says("start", dry_run=True) == "spec.runStrategy: Halted -> Always (dry run)"
        assert (await host.vm())["spec"]["runStrategy"] == "Halted"
        assert await person.says("start") == "started"
        assert await person.says("start") == "already runs"
        before = (await host.vmi())["metadata"]["uid"]
        assert await person.says("pause") == "paused"
        assert await person.says("pause") == "is already paused"
        assert await person.says("unpause") == "unpaused"
        assert await person.says("unpause") == "is not paused"
        assert await person.says("restart") == "restarted"
        after = (await host.vmi())["metadata"]["uid"]
        assert after != before
        assert await person.says("reset") == "reset"
        assert await person.says("stop") == "stopped"
        assert (await host.vm())["spec"]["runStrategy"] == "Halted"
        assert await host.vmi() == {}
        assert await person.says("stop") == "is already stopped"
        for verb in ("restart", "pause", "reset"):
            with pytest.raises(WrongState, match="it does not run"):
                await person.says(verb)


@played_by(play)
async def test_a_request_without_a_wait(tmp_path: Path) -> None:
    async with at_a_host(tmp_path, machine()) as person:
        await person.host.running()
        assert await person.says("stop", seconds=0.0) == "stopped: requested"


@played_by(play)
async def test_a_machine_that_cannot_run_is_explained(tmp_path: Path) -> None:
    async with at_a_host(tmp_path, machine(strategy="Halted", nodeSelector={"kubernetes.io/hostname": "elsewhere"})) as person:
        with pytest.raises(NotReached, match="vm/web is not running: it is ErrorUnschedulable") as caught:
            await person.says("start", seconds=300.0)
        assert caught.value.why
        assert "paddock why vm/web -n default" in caught.value.fix


@played_by(play)
async def test_a_guest_that_refuses_to_stop_is_cut_off_by_force(tmp_path: Path) -> None:
    async with at_a_host(tmp_path, machine(terminationGracePeriodSeconds=3600)) as person:
        (await person.host.running()).deaf = True
        assert await person.says("stop", force=True) == "stopped"


@played_by(play)
async def test_a_machine_of_stakater(tmp_path: Path) -> None:
    async with FakeHost(tmp_path) as host:
        stage, person = await Stage(host).open(), Person(host)
        await stage.make(front(runStrategy="Halted"))
        assert await person.says("start", seconds=600.0) == "started"
        assert (await stage.front())["spec"]["parameters"]["runStrategy"] == "RerunOnFailure"
        before = (await host.vmi())["metadata"]["uid"]
        assert await person.says("restart", "stakater/web") == "restarted"
        assert (await host.vmi())["metadata"]["uid"] != before
        assert await person.says("pause", "vm/web") == "paused"
        assert await person.says("unpause") == "unpaused"
        assert await person.says("stop") == "stopped"
        assert (await stage.front())["spec"]["parameters"]["runStrategy"] == "Halted"
        # It stays stopped: the object that the user wrote says so.
        await asyncio.sleep(300)
        assert await host.vmi() == {}


@played_by(play)
async def test_a_machine_of_vitistack(tmp_path: Path) -> None:
    async with FakeHost(tmp_path) as host:
        person = Person(host)
        reply = await host.api.post(VITISTACK_PATH, VITISTACK)
        assert reply.status == 201, reply.data
        await asyncio.sleep(60)
        (await host.running("node")).deaf = True
        assert await person.says("stop", "node", force=True) == "stopped"
        await asyncio.sleep(300)
        assert await host.vmi("node") == {}
        assert await person.says("start", "node") == "started"
        assert await person.says("restart", "node") == "restarted"
        found = (await host.api.get(f"{VITISTACK_PATH}/node")).data
        assert found["metadata"]["annotations"]["vitistack.io/power-state"] == "running"
