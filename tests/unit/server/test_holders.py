"""The index of the objects that hold a value, beside a reading of all objects."""

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import orjson

from paddock.server.objects.holders import ValueHolders
from paddock.server.store.contract import Make, StoreKey, StoreUnavailable
from paddock.server.store.memory import MemoryStore
from tests.coroutines import run_by

KEYS = [StoreKey("things", namespace, name) for namespace in ("a", "b") for name in ("one", "two", "three")]
VALUES = ("red", "green", "blue")


def colours(thing: dict[str, Any]) -> Iterator[str]:
    return iter(thing["colours"])


def made_of(body: bytes) -> Make:
    return lambda _: body


def newest(store: MemoryStore, value: str) -> set[StoreKey]:
    """Return the holders of a value, by reading every object."""
    found = {key: store.decided(key) for key in KEYS}
    return {key for key, record in found.items() if record is not None and value in orjson.loads(record.value)["colours"]}


@run_by(asyncio.run)
async def test_it_says_what_reading_everything_says() -> None:
    """Among writes that are committed, on their way, taken back and deleted."""
    chance = random.Random(7)
    store = MemoryStore()
    await store.put(KEYS[0], 0, lambda _: b'{"colours": ["red"]}').committed()
    holders, other = ValueHolders(store, "things", colours), StoreKey("others", "a", "one")
    await store.put(other, 0, lambda _: b'{"colours": ["red"]}').committed()
    pending: list[Any] = []
    for _ in range(600):
        key = chance.choice(KEYS)
        before = store.decided(key)
        body = orjson.dumps({"colours": chance.sample(VALUES, chance.randrange(3))})
        if before is not None and chance.random() < 0.3:
            pending.append(store.delete(key, before.revision, made_of(body)))
        else:
            pending.append(store.put(key, before.revision if before else 0, made_of(body)))
        if chance.random() < 0.5:
            value = chance.choice(VALUES)
            assert set(holders.of(value)) == newest(store, value)
        if chance.random() < 0.3:
            await asyncio.gather(*(each.committed() for each in pending))
            pending.clear()
    await asyncio.gather(*(each.committed() for each in pending))
    for value in VALUES:
        assert set(holders.of(value)) == newest(store, value)


@run_by(asyncio.run)
async def test_a_write_that_fails_is_forgotten() -> None:
    store = MemoryStore()
    holders = ValueHolders(store, "things", colours)
    made = await store.put(KEYS[0], 0, lambda _: b'{"colours": ["red"]}').committed()

    async def fail(changes: object) -> None:
        raise StoreUnavailable("no room")

    store._writes._commit = fail
    pending = store.put(KEYS[0], made, lambda _: b'{"colours": ["blue"]}')
    assert (list(holders.of("red")), list(holders.of("blue"))) == ([], [KEYS[0]])
    await asyncio.gather(pending.committed(), return_exceptions=True)
    assert (list(holders.of("red")), list(holders.of("blue"))) == ([KEYS[0]], [])


@run_by(asyncio.run)
async def test_each_form_of_an_object_is_read_once() -> None:
    read: list[str] = []

    def seen(thing: dict[str, Any]) -> Iterator[str]:
        read.extend(thing["colours"])
        return iter(thing["colours"])

    store = MemoryStore()
    holders = ValueHolders(store, "things", seen)
    for key in KEYS:
        await store.put(key, 0, lambda _: b'{"colours": ["red"]}').committed()
    for _ in range(10):
        assert set(holders.of("red")) == set(KEYS)
    assert len(read) == len(KEYS)
    records = [record for key in KEYS if (record := store.decided(key)) is not None]
    pending = [store.put(record.key, record.revision, lambda _: b'{"colours": ["blue"]}') for record in records]
    for _ in range(10):
        assert set(holders.of("blue")) == set(KEYS)
    await asyncio.gather(*(each.committed() for each in pending))
    assert set(holders.of("blue")) == set(KEYS)
    assert len(read) == 2 * len(KEYS)
