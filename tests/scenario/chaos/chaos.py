"""One server's directory, and a number of sudden ends."""

import asyncio
import contextlib
import random
from collections.abc import Callable
from pathlib import Path

from paddock.server.store.sqlite import open_store
from tests.scenario.chaos import life
from tests.scenario.chaos.client import Client, Data
from tests.scenario.chaos.ledger import Ledger, Watched
from tests.scenario.chaos.life import CRDS, FAMILY, MAPS, NAMESPACES, SECRETS, WIDGETS, Makers, Writer
from tests.scenario.chaos.server import Server

_WRITERS = 2
_WATCHERS = 2
_PATIENCE = 60.0


class Chaos:
    """Kills the server of a directory at seeded moments, and looks each time whether it keeps its word."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.seed = seed
        self._chance = random.Random(seed)
        self.server = Server(folder)
        self.ledgers = [Ledger(MAPS), Ledger(SECRETS), Ledger(WIDGETS)]
        self.makers = Makers(random.Random(seed + 1))
        self._writers = [
            (Writer(number, ledger, random.Random(seed * 100 + number)), ledger) for ledger in self.ledgers for number in range(_WRITERS)
        ]
        self._highest = 0
        # how many writes were answered, and how often the watcher that did so least began again
        self.answers = self.resumed = 0

    async def run(self, moments: int) -> None:
        """The whole story."""
        await self._begin()
        for number in range(moments):
            gently = self._chance.random() < 0.15
            await self._live(gently=gently)
            while self._chance.random() < 0.2:
                # It may also end before it is ready.
                self.server.spawn()
                await asyncio.sleep(self._chance.uniform(0, 0.8))
                self.server.kill()
            await self.server.start()
            async with self.server.client() as client:
                await self._look(client, exactly=gently)
                if number + 1 == moments:
                    await self._look_at_namespaces(client)
                    await self._look_at_definitions(client)
        await self._end()

    async def _begin(self) -> None:
        await self.server.start()
        async with self.server.client() as client:
            for path, body in ((CRDS, life.definition("widgets", "Widget", "")), (NAMESPACES, {"metadata": {"name": "family"}})):
                status, said = await client.ask("POST", path, body)
                assert status == 201, said
            for ledger in (*self.ledgers, self.makers.definitions):
                _, listed = await client.ask("GET", ledger.path)
                revision = int(listed["metadata"]["resourceVersion"])
                ledger.watchers = [Watched(revision, revision) for _ in range(_WATCHERS)]

    async def stop_gently(self) -> None:
        """One ordinary end."""
        await self._begin()
        for _ in range(2):
            await self._live(gently=True)
            await self.server.start()
            async with self.server.client() as client:
                await self._look(client, exactly=True)
        await self._end()

    async def _live(self, *, gently: bool) -> None:
        """Everything at once, until the server is ended."""
        async with contextlib.AsyncExitStack() as stack:
            lives = [writer.run(await stack.enter_async_context(self.server.client())) for writer, _ in self._writers]
            lives.append(self.makers.run(await stack.enter_async_context(self.server.client())))
            ends: list[bool] = []

            async def watch(ledger: Ledger, watched: Watched) -> None:
                ends.append(await life.watch(self.server, ledger, watched))

            lives += [watch(ledger, watched) for ledger in (*self.ledgers, self.makers.definitions) for watched in ledger.watchers]
            lives.append(self._end_server(gently=gently))
            await life.gathered(*lives)
            assert not gently or all(ends), "a watch was cut off instead of ended"

    async def _end_server(self, *, gently: bool) -> None:
        # Counted in answers, so that a slow host does the same; the moment itself is anywhere between and within writes.
        enough = self._answers() + self._chance.randint(5, 150)
        async with asyncio.timeout(_PATIENCE):
            while self._answers() < enough:
                await asyncio.sleep(0.002)
        await asyncio.sleep(self._chance.uniform(0, 0.02))
        if gently:
            assert await self.server.stop() == 0, self.server.said()
        else:
            self.server.kill()

    def _answers(self) -> int:
        return sum(writer.answers for writer, _ in self._writers)

    # --- looking ----------------------------------------------------------------------------------------------------------

    async def _look(self, client: Client, *, exactly: bool) -> None:
        for ledger in (*self.ledgers, self.makers.definitions):
            status, listed = await client.ask("GET", ledger.path)
            assert status == 200, listed
            revision = int(listed["metadata"]["resourceVersion"])
            self._highest = max(self._highest, *ledger.acknowledged, *(watched.last for watched in ledger.watchers))
            assert revision >= self._highest, f"{ledger.path} is at revision {revision}, after {self._highest} was given out"
            ledger.hold_against(listed["items"], exactly=exactly)
            self._highest = revision
        await self._until(client, FAMILY, self._families_are_settled)

    async def _until(self, client: Client, path: str, settled: Callable[[list[Data]], bool]) -> None:
        async with asyncio.timeout(_PATIENCE):
            while True:
                status, listed = await client.ask("GET", path)
                assert status == 200, listed
                if settled(listed["items"]):
                    return
                await asyncio.sleep(0.02)

    def _families_are_settled(self, items: list[Data]) -> bool:
        """Dependents of owners that are gone are collected; those of the others are all there."""
        there = {item["metadata"]["uid"] for item in items}
        children: dict[str, int] = {}
        for item in items:
            for owner in item["metadata"].get("ownerReferences", ()):
                children[owner["uid"]] = children.get(owner["uid"], 0) + 1
        for uid, name in self.makers.owners.items():
            assert uid in there, f"{name} was acknowledged and is not there"
            assert children.get(uid) == 3, f"{name} has lost dependents"
        return not (set(children) - there) and not (self.makers.gone & there)

    async def _look_at_namespaces(self, client: Client) -> None:
        _, listed = await client.ask("GET", NAMESPACES)
        names = {item["metadata"]["name"] for item in listed["items"]}
        assert names >= self.makers.namespaces
        for name in sorted(names):
            for path, wanted in (("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")):
                await self._until(client, f"{NAMESPACES}/{name}/{path}", lambda items, wanted=wanted: named(items, wanted))  # type: ignore[misc]

    async def _look_at_definitions(self, client: Client) -> None:
        for name, entry in self.makers.definitions.entries.items():
            if entry.known is None:
                continue
            _, found = await client.ask("GET", f"{CRDS}/{name}")
            conditions = {each["type"]: each["status"] for each in found["status"]["conditions"]}
            assert conditions["Established"] == "True"
            plural, kind = found["spec"]["names"]["plural"], found["spec"]["names"]["kind"]
            body = {"apiVersion": "chaos.test/v1", "kind": kind, "metadata": {"name": "one"}}
            status, said = await client.ask("POST", f"/apis/chaos.test/v1/namespaces/default/{plural}", body)
            assert status in (201, 409), said

    # --- the end ----------------------------------------------------------------------------------------------------------

    async def _end(self) -> None:
        """Let every watcher see the last change, compare, and look at the files."""
        ledgers = (*self.ledgers, self.makers.definitions)
        ends = []
        async with self.server.client() as client:
            for ledger in ledgers:
                _, listed = await client.ask("GET", ledger.path)
                ends.append(int(listed["metadata"]["resourceVersion"]))
            watches = [asyncio.create_task(life.watch(self.server, ledger, watched)) for ledger in ledgers for watched in ledger.watchers]
            # The end of the streams comes after everything that was committed: a definition is watched like all else.
            await asyncio.sleep(0)
            for ledger, end in zip(ledgers, ends, strict=True):
                await self._caught_up(client, ledger, end)
            assert await self.server.stop() == 0
            await asyncio.gather(*watches)
        for ledger in ledgers:
            ledger.hold_watchers()
        self.answers = self._answers()
        self.resumed = min(watched.resumed for ledger in self.ledgers for watched in ledger.watchers)
        store = open_store(self.server.places.store)
        assert store.revision >= self._highest
        await store.close()

    async def _caught_up(self, client: Client, ledger: Ledger, end: int) -> None:
        """Wait until each watcher has seen the newest object that is there."""
        _, listed = await client.ask("GET", ledger.path)
        newest = max((int(item["metadata"]["resourceVersion"]) for item in listed["items"]), default=0)
        async with asyncio.timeout(_PATIENCE):
            while any(watched.last < newest for watched in ledger.watchers if newest > watched.begin):
                await asyncio.sleep(0.01)


def named(items: list[Data], name: str) -> bool:
    """Return whether an object of this name is among them."""
    return any(item["metadata"]["name"] == name for item in items)
