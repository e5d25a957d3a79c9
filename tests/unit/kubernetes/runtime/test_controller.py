"""The controller loop in virtual time."""

import asyncio
import itertools
import logging
from typing import Any

import pytest

from paddock.base.errors import Terminal, Transient
from paddock.kubernetes.client.target import Key, plain
from paddock.kubernetes.runtime import logs
from paddock.kubernetes.runtime.controller import DONE, Controller, ControllerSettings, Outcome, again, labelled, owners
from paddock.kubernetes.runtime.informers import Informers
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubernetes.runtime.reference import InvolvedObject
from tests.coroutines import played
from tests.unit.kubernetes.runtime.conftest import World

MAPS = plain("", "v1", "configmaps", "ConfigMap")
SECRETS = plain("", "v1", "secrets", "Secret")
PATH = "/api/v1/namespaces/default/configmaps"


class Heard:
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str, str]] = []

    def tell(self, about: InvolvedObject, kind: str, reason: str, note: str) -> None:
        self.told.append((about.name, kind, note))


class Running:
    """A controller that runs, with everything it did."""

    def __init__(self, world: World, settings: ControllerSettings = ControllerSettings()) -> None:  # noqa: B008 - frozen
        self.looks: list[tuple[float, str]] = []
        self.answers: dict[str, Any] = {}
        self.heard = Heard()
        self.informers = Informers(world.client, world.machinery)
        self.controller = Controller(
            "maps", self.informers.of(MAPS), self.reconcile, machinery=world.machinery, recorder=self.heard, settings=settings
        )
        self._task: asyncio.Task[None] | None = None

    async def reconcile(self, key: Key) -> Outcome:
        self.looks.append((asyncio.get_running_loop().time(), key.name))
        answer = self.answers.get(key.name, DONE)
        if callable(answer):
            answer = await answer()
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, Outcome)
        return answer

    async def __aenter__(self) -> "Running":
        self.informers.start()
        self._task = asyncio.create_task(self.controller.run())
        await self.informers.wait_synced()
        await asyncio.sleep(0.01)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.informers.stop()

    def times(self, name: str) -> list[float]:
        return [round(when, 1) for when, who in self.looks if who == name]


@played
async def test_what_was_never_heard_of_is_found_by_the_sweep(world: World, /) -> None:
    async with Running(world, ControllerSettings(sweep_seconds=60)) as running:
        deaf, running.controller.queue.add = running.controller.queue.add, lambda key: None  # type: ignore[method-assign]
        await world.api.post(PATH, {"metadata": {"name": "lost"}})
        await asyncio.sleep(30)
        running.controller.queue.add = deaf  # type: ignore[method-assign]
        assert running.times("lost") == []
        await asyncio.sleep(100)
        assert running.times("lost") == [60.0, 120.0]


@played
async def test_every_object_at_the_start_then_what_changes(world: World, /) -> None:
    await world.api.post(PATH, {"metadata": {"name": "old"}})
    async with Running(world) as running:
        await asyncio.sleep(10)
        await world.api.post(PATH, {"metadata": {"name": "new"}})
        await asyncio.sleep(10)
        await world.api.delete(f"{PATH}/old")
        await asyncio.sleep(10)
        assert (running.times("old"), running.times("new")) == ([0.0, 20.0], [10.0])


@played
async def test_look_again_after_a_while(world: World, /) -> None:
    await world.api.post(PATH, {"metadata": {"name": "a"}})
    async with Running(world) as running:
        running.answers["a"] = again(30)
        await world.api.merge(f"{PATH}/a", {"data": {"x": "1"}})
        await asyncio.sleep(100)
        assert running.times("a") == [0.0, 0.0, 30.0, 60.0, 90.0]


@played
async def test_failures_wait_longer_and_are_told(world: World, /) -> None:
    async with Running(world) as running:
        running.answers["a"] = Transient("cannot reach the store", fix="wait")
        await world.api.post(PATH, {"metadata": {"name": "a"}})
        await asyncio.sleep(60)
        times = running.times("a")
        pauses = [later - sooner for sooner, later in itertools.pairwise(times[3:])]
        assert 8 <= len(times) <= 14
        assert pauses == sorted(pauses)
        assert set(running.heard.told) == {("a", "Warning", "cannot reach the store; wait")}
        running.answers["a"] = DONE
        await asyncio.sleep(60)
        count = len(running.looks)
        await asyncio.sleep(1000)
        assert len(running.looks) == count


@played
async def test_what_cannot_succeed_waits_for_a_change(world: World, /) -> None:
    async with Running(world) as running:
        running.answers["a"] = Terminal("the template is unknown", fix="use small")
        await world.api.post(PATH, {"metadata": {"name": "a"}})
        await asyncio.sleep(200)
        assert running.times("a") == [0.0]
        running.answers["a"] = DONE
        await world.api.merge(f"{PATH}/a", {"data": {"x": "1"}})
        await asyncio.sleep(10)
        assert running.times("a") == [0.0, 200.0]
    text = world.machinery.metrics.text()
    assert 'paddock_reconcile_total{controller="maps",result="refused"} 1\n' in text


@played
async def test_a_defect_is_caught_counted_told_and_tried_again(world: World, /) -> None:
    async with Running(world) as running:
        running.answers["a"] = KeyError("secret value")
        await world.api.post(PATH, {"metadata": {"name": "a"}})
        await world.api.post(PATH, {"metadata": {"name": "b"}})
        await asyncio.sleep(1)
        assert len(running.times("a")) > 1
        assert running.times("b") == [0.0]
        (_, kind, note) = running.heard.told[0]
        # The text of an unknown exception may hold anything, so it is for the log alone.
        assert (kind, "KeyError" in note, "secret value" in note) == ("Warning", True, False)
    assert world.machinery.metrics.counter("paddock_reconcile_total", "", ("controller", "result")).value("maps", "defect") > 1


@played
async def test_a_reconcile_that_hangs_is_ended(world: World, /) -> None:
    async with Running(world, ControllerSettings(seconds=5)) as running:
        running.answers["a"] = asyncio.Event().wait
        await world.api.post(PATH, {"metadata": {"name": "a"}})
        await asyncio.sleep(8)
        assert running.times("a") == [0.0, 5.1]
        assert "longer than 5 s" in running.heard.told[0][2]


@played
async def test_the_end_lets_a_reconcile_finish_and_the_next_run_goes_on(world: World, /) -> None:
    informers = Informers(world.client, world.machinery)
    finished: list[str] = []

    async def slow(key: Key) -> Outcome:
        await asyncio.sleep(2 if key.name == "quick" else 100)
        finished.append(key.name)
        return DONE

    controller = Controller("maps", informers.of(MAPS), slow, machinery=world.machinery)
    informers.start()
    await world.api.post(PATH, {"metadata": {"name": "quick"}})
    await world.api.post(PATH, {"metadata": {"name": "slow"}})
    for _ in range(2):
        task = asyncio.create_task(controller.run())
        await asyncio.sleep(1)
        task.cancel()
        began = asyncio.get_running_loop().time()
        await asyncio.gather(task, return_exceptions=True)
        assert asyncio.get_running_loop().time() - began <= 3
    # What was cut off is the first thing that the next run looks at.
    assert finished == ["quick"]
    task = asyncio.create_task(controller.run())
    await asyncio.sleep(110)
    assert finished == ["quick", "slow"]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await informers.stop()


@played
async def test_no_worker_outlives_a_controller_that_is_cancelled_twice(world: World, /) -> None:
    """The next program would be written over by it."""
    informers = Informers(world.client, world.machinery)
    finished: list[str] = []

    async def slow(key: Key) -> Outcome:
        await asyncio.sleep(2)
        finished.append(key.name)
        return DONE

    controller = Controller("maps", informers.of(MAPS), slow, machinery=world.machinery)
    informers.start()
    await world.api.post(PATH, {"metadata": {"name": "a"}})
    task = asyncio.create_task(controller.run())
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await asyncio.sleep(10)
    assert finished == []
    await informers.stop()


@played
async def test_owned_and_labelled_objects_lead_to_their_keys(world: World, /) -> None:
    async with Running(world) as running:
        await world.api.post(PATH, {"metadata": {"name": "a"}})
        uid = (await world.api.get(f"{PATH}/a")).data["metadata"]["uid"]
        secrets = running.informers.of(SECRETS)
        running.controller.watch(secrets, owners("", "ConfigMap"))
        running.controller.watch(secrets, labelled("for"))
        await secrets.wait_synced()
        await asyncio.sleep(1)
        running.looks.clear()
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": uid}
        other = {**owner, "kind": "Secret", "name": "z"}
        meta = {"name": "s", "ownerReferences": [owner, other], "labels": {"for": "b"}}
        await world.api.post("/api/v1/namespaces/default/secrets", {"metadata": meta})
        await asyncio.sleep(1)
        assert sorted(name for _, name in running.looks) == ["a", "b"]
        running.looks.clear()
        # What it led to before is looked at, too.
        await world.api.merge("/api/v1/namespaces/default/secrets/s", {"metadata": {"labels": {"for": "c"}, "ownerReferences": None}})
        await asyncio.sleep(1)
        assert sorted(name for _, name in running.looks) == ["a", "b", "c"]


@played
async def test_log_records_say_what_they_are_about(world: World, /) -> None:
    seen: list[dict[str, Any]] = []

    async def reconcile(key: Key) -> Outcome:
        seen.append(logs.fields_of(logging.makeLogRecord({"msg": "hello", "step": "read"})))
        return DONE

    informers = Informers(world.client, world.machinery)
    controller = Controller("maps", informers.of(MAPS), reconcile, machinery=world.machinery)
    informers.start()
    await world.api.post(PATH, {"metadata": {"name": "a"}})
    task = asyncio.create_task(controller.run())
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await informers.stop()
    assert seen == [{"controller": "maps", "namespace": "default", "name": "a", "reconcile": "1", "step": "read"}]


@played
async def test_a_program_from_its_start_to_its_end(world: World, /) -> None:
    program = ControllerManager(world.client, component="maps", instance="host", machinery=world.machinery)
    looked: list[str] = []

    async def reconcile(key: Key) -> Outcome:
        looked.append(key.name)
        raise Terminal("the template is unknown", fix="use small")

    maps = program.informers.of(MAPS)
    program.add(Controller("maps", maps, reconcile, machinery=world.machinery, recorder=program.recorder))
    assert program.health.answer("/readyz") == (
        500,
        "text/plain; charset=utf-8",
        "[-]caches waiting for configmaps (not started)\n[-]program the program has not started\nfailed\n",
    )
    await world.api.post(PATH, {"metadata": {"name": "a"}})
    task = asyncio.create_task(program.run())
    await asyncio.sleep(5)
    assert program.health.answer("/readyz") == (200, "text/plain; charset=utf-8", "[+]caches ok\n[+]program ok\nok\n")
    assert program.leading
    (event,) = (await world.api.get("/api/v1/namespaces/default/events")).data["items"]
    assert (event["involvedObject"]["name"], event["reason"], event["message"]) == (
        "a",
        "ReconcileError",
        "the template is unknown; use small",
    )
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert world.api.parts.following.count == 0
    assert program.health.answer("/livez") == (200, "text/plain; charset=utf-8", "ok\n")


@played
async def test_controllers_that_come_before_the_caches_are_whole_run_once(world: World, /) -> None:
    program = ControllerManager(world.client, component="maps", instance="host", machinery=world.machinery)
    runs: list[str] = []

    class Counted(Controller):
        async def run(self) -> None:
            runs.append(self.name)
            await super().run()

    async def reconcile(key: Key) -> Outcome:
        return DONE

    def add(name: str) -> None:
        program.add(Counted(name, program.informers.of(MAPS), reconcile, machinery=world.machinery))

    add("early")
    tasks = [asyncio.create_task(program.run()), asyncio.create_task(program.run_later("dialect", lambda: add("late")))]
    await asyncio.sleep(5)
    assert sorted(runs) == ["early", "late"]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@played
async def test_a_program_ends_with_an_informer_that_broke(world: World, /, monkeypatch: pytest.MonkeyPatch) -> None:
    program = ControllerManager(world.client, component="maps", instance="host", machinery=world.machinery)
    maps = program.informers.of(MAPS)

    async def reconcile(key: Key) -> Outcome:
        return DONE

    async def broken() -> None:
        raise ValueError("a defect")

    program.add(Controller("maps", maps, reconcile, machinery=world.machinery))
    monkeypatch.setattr(maps, "_follow", broken)
    with pytest.raises(ValueError, match="a defect"):
        await program.run()
    assert world.api.parts.following.count == 0
    assert program.health.answer("/readyz")[0] == 500  # type: ignore[index]
