"""The whole API over a store on disk, held against a small model: random requests, and after each of them everything agrees."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from paddock.server.store.sqlite import open_store
from tests.contract.apimodel import Model, Place, Thing, place_of, thing_of
from tests.kit.servers.apiharness import Clock, Harness, Reply

T = TypeVar("T")
ALL = "/api/v1/configmaps"
NAMESPACES = ("default", "other")
FINALIZER = "test/held"
places = st.tuples(st.sampled_from(NAMESPACES), st.sampled_from("abc"))
contents = st.dictionaries(st.sampled_from("xyz"), st.sampled_from("12"), min_size=1)
managers = st.sampled_from(("ann", "ben"))
dry = st.sampled_from((False, False, False, True))
versions = st.sampled_from(("right", "none", "stale"))


def folder(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def path(place: Place) -> str:
    return f"{folder(place[0])}/{place[1]}"


class ApiAndModel(RuleBasedStateMachine):
    """Requests of all kinds."""

    root: Path
    runs = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).runs += 1
        self.file = self.root / f"{self.runs}.db"
        self.loop = asyncio.new_event_loop()
        self.clock = Clock()
        self.do(self._open())
        self.model = Model(self.api.store.revision)

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    async def _open(self) -> None:
        self.api = Harness(store=open_store(self.file))
        self.api.clock = self.clock
        await self.api.__aenter__()
        await self.api.namespace("other")

    def teardown(self) -> None:
        self.do(self.api.__aexit__())
        self.loop.close()

    @initialize(place=places, content=contents)
    def begin(self, place: Place, content: dict[str, str]) -> None:
        self.create(place, content, held=False, dry=False)

    # --- writing ----------------------------------------------------------------------------------------------------------

    def _judge(self, reply: Reply, code: int, place: Place, thing: Thing | None, *, dry: bool) -> None:
        """Hold the answer of a write against what the model makes of it."""
        assert reply.status == code, reply.data
        if thing is None or dry:
            return
        before = self.model.things.get(place)
        if before is not None and thing_of(reply.data) == before:
            assert thing == before, "a change was taken for none"
            return
        assert thing_of(reply.data) == self.model.put(place, thing)

    def _precondition(self, which: str, thing: Thing | None) -> dict[str, str]:
        if which == "none" or thing is None:
            return {}
        return {"resourceVersion": str(thing.revision - (which == "stale"))}

    @rule(place=places, content=contents, held=st.booleans(), dry=dry)
    def create(self, place: Place, content: dict[str, str], held: bool, dry: bool) -> None:
        finalizers = (FINALIZER,) if held else ()
        body = {"metadata": {"name": place[1], "finalizers": list(finalizers)}, "data": content}
        reply = self.do(self.api.post(f"{folder(place[0])}?fieldManager=maker{'&dryRun=All' * dry}", body))
        there = place in self.model.things
        thing = None if there else Thing(0, {}, finalizers=finalizers).written(content, ("maker", "Update"))
        self._judge(reply, 409 if there else 201, place, thing, dry=dry)

    @rule(place=places, content=contents, version=versions, dry=dry)
    def update(self, place: Place, content: dict[str, str], version: str, dry: bool) -> None:
        thing = self.model.things.get(place)
        finalizers = thing.finalizers if thing else ()
        meta = {"name": place[1], "finalizers": list(finalizers), **self._precondition(version, thing)}
        reply = self.do(self.api.put(f"{path(place)}?fieldManager=writer{'&dryRun=All' * dry}", {"metadata": meta, "data": content}))
        code = 404 if thing is None else 409 if version == "stale" else 200
        self._judge(reply, code, place, thing.written(content, ("writer", "Update")) if thing and code == 200 else None, dry=dry)

    @rule(place=places, changes=st.dictionaries(st.sampled_from("xyz"), st.sampled_from(("1", "2", None))), version=versions, dry=dry)
    def merge(self, place: Place, changes: dict[str, str | None], version: str, dry: bool) -> None:
        thing = self.model.things.get(place)
        body = {"metadata": self._precondition(version, thing), "data": changes}
        reply = self.do(self.api.merge(f"{path(place)}?fieldManager=writer{'&dryRun=All' * dry}", body))
        code = 404 if thing is None else 409 if version == "stale" else 200
        after = None
        if thing is not None and code == 200:
            data = {key: value for key, value in {**thing.data, **changes}.items() if value is not None}
            after = thing.written(data, ("writer", "Update"))
        self._judge(reply, code, place, after, dry=dry)

    @rule(place=places, key=st.sampled_from("xyz"), value=st.sampled_from("12"), expected=st.sampled_from("12"))
    def test_and_set(self, place: Place, key: str, value: str, expected: str) -> None:
        thing = self.model.things.get(place)
        operations = [{"op": "test", "path": f"/data/{key}", "value": expected}, {"op": "replace", "path": f"/data/{key}", "value": value}]
        kind = "application/json-patch+json"
        reply = self.do(self.api.call("PATCH", f"{path(place)}?fieldManager=writer", operations, content_type=kind))
        code = 404 if thing is None else 200 if thing.data.get(key) == expected else 422
        after = thing.written({**thing.data, key: value}, ("writer", "Update")) if thing and code == 200 else None
        self._judge(reply, code, place, after, dry=False)

    @rule(place=places, config=contents, manager=managers, force=st.booleans(), dry=dry)
    def apply(self, place: Place, config: dict[str, str], manager: str, force: bool, dry: bool) -> None:
        thing = self.model.things.get(place)
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": place[1]}, "data": config}
        reply = self.do(self.api.apply(f"{path(place)}{'?dryRun=All' * dry}", body, manager, force=force))
        old = thing or Thing(0, {})
        code = 201 if thing is None else 409 if old.conflicts(manager, config) and not force else 200
        self._judge(reply, code, place, old.applied(manager, config) if code < 300 else None, dry=dry)
        if code < 300 and not dry:
            again = self.do(self.api.apply(path(place), body, manager))
            assert again.data == reply.data, "applying the same again is not nothing"

    # --- deleting ---------------------------------------------------------------------------------------------------------

    @rule(place=places, version=versions, policy=st.sampled_from((None, "Background")), dry=dry)
    def delete(self, place: Place, version: str, policy: str | None, dry: bool) -> None:
        thing = self.model.things.get(place)
        wanted = self._precondition(version, thing)
        body = {**({"preconditions": wanted} if wanted else {}), **({"propagationPolicy": policy} if policy else {})}
        reply = self.do(self.api.delete(f"{path(place)}{'?dryRun=All' * dry}", body or None))
        code = 404 if thing is None else 409 if version == "stale" else 200
        assert reply.status == code, reply.data
        if code == 200 and not dry:
            self.model.delete(place)

    @rule(place=places)
    def release(self, place: Place) -> None:
        thing = self.model.things.get(place)
        reply = self.do(self.api.merge(path(place), {"metadata": {"finalizers": None}}))
        assert reply.status == (404 if thing is None else 200)
        if thing is not None and thing.finalizers:
            self.model.put(place, Thing(0, thing.data, thing.owners, (), thing.deleting))

    @rule(namespace=st.sampled_from(NAMESPACES), dry=dry)
    def delete_all(self, namespace: str, dry: bool) -> None:
        reply = self.do(self.api.delete(f"{folder(namespace)}{'?dryRun=All' * dry}"))
        assert reply.status == 200
        if not dry:
            for place in sorted(place for place in self.model.things if place[0] == namespace):
                self.model.delete(place)

    # --- reading ----------------------------------------------------------------------------------------------------------

    @rule(data=st.data(), exact=st.booleans())
    def list_at(self, data: st.DataObject, exact: bool) -> None:
        revision = data.draw(st.integers(self.model.begin, self.model.revision))
        reply = self.do(self.api.get(f"{ALL}?resourceVersion={revision}&resourceVersionMatch={'Exact' if exact else 'NotOlderThan'}"))
        if exact and revision < self.model.compacted:
            assert (reply.status, reply.reason) == (410, "Expired")
            return
        seen = revision if exact else self.model.revision
        assert reply.data["metadata"]["resourceVersion"] == str(seen)
        assert {place_of(item): thing_of(item) for item in reply.data["items"]} == self.model.at(seen)

    @rule(place=places, content=contents, limit=st.integers(1, 3), compact=st.booleans())
    def pages_with_a_write_between(self, place: Place, content: dict[str, str], limit: int, compact: bool) -> None:
        begun, items = self.model.revision, []
        reply = self.do(self.api.get(f"{ALL}?limit={limit}"))
        expected = self.model.at(begun)
        for turn in range(10):
            assert reply.data["metadata"]["resourceVersion"] == str(begun)
            items += reply.data["items"]
            token = reply.data["metadata"].get("continue")
            assert bool(token) == (len(items) < len(expected))
            if not token:
                break
            if turn == 0:
                self.update(place, content, "none", dry=False)
                self.apply(place, content, "ann", force=True, dry=False)
                if compact:
                    self._compact(self.model.revision)
            reply = self.do(self.api.get(f"{ALL}?limit={limit}&continue={token}"))
            if begun < self.model.compacted:
                assert (reply.status, reply.reason) == (410, "Expired")
                return
        found = [place_of(item) for item in items]
        assert found == sorted(expected)
        assert {place_of(item): thing_of(item) for item in items} == expected

    @rule(data=st.data(), namespace=st.sampled_from(("", *NAMESPACES)))
    def watch(self, data: st.DataObject, namespace: str) -> None:
        revision = data.draw(st.integers(self.model.begin, self.model.revision))
        target = f"{folder(namespace) if namespace else ALL}?watch=1&resourceVersion={revision}"

        async def see() -> None:
            async with self.api.watch(target) as events:
                if revision < self.model.compacted:
                    error = await events.next()
                    assert (error["type"], error["object"]["code"]) == ("ERROR", 410)
                    return
                for happened in self.model.after(revision, namespace):
                    event = await events.next()
                    assert (event["type"], place_of(event["object"])) == (happened.kind, happened.place)
                    assert thing_of(event["object"]).revision == happened.revision
                    assert thing_of(event["object"]).data == happened.thing.data
                assert await events.quiet()

        self.do(see())

    # --- what happens to the server ---------------------------------------------------------------------------------------

    def _compact(self, revision: int) -> None:
        self.do(self.api.store.compact(revision))
        self.api.parts.following.trim()
        # The newest change is always kept.
        self.model.compacted = max(self.model.compacted, min(revision, self.model.revision - 1))

    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        self._compact(data.draw(st.integers(self.model.begin, self.model.revision)))

    @rule()
    def restart(self) -> None:
        self.do(self.api.__aexit__())
        self.do(self._open())

    @invariant()
    def agrees(self) -> None:
        assert self.api.store.revision == self.model.revision
        assert max(self.model.begin, self.api.store.compacted) == self.model.compacted
        listed = self.do(self.api.get(ALL)).data
        assert {place_of(item): thing_of(item) for item in listed["items"]} == self.model.things


def play(tmp_path: Path, examples: int, steps: int) -> None:
    class Machine(ApiAndModel):
        root = tmp_path

    run_state_machine_as_test(Machine, settings=settings(max_examples=examples, stateful_step_count=steps))


def test_random_requests_agree_with_a_model(tmp_path: Path) -> None:
    play(tmp_path, 12, 30)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(4))
def test_many_random_requests_agree_with_a_model(tmp_path: Path, part: int) -> None:
    play(tmp_path, 250, 60)
