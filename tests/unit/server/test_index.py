"""The index of labels says the same as a look at every object."""

import asyncio
import random
from functools import partial

import orjson

from paddock.kubernetes.meta.matching import parse_labels
from paddock.server.objects.index import ObjectIndex
from paddock.server.store.contract import StoreKey
from paddock.server.store.memory import MemoryStore
from tests.coroutines import run_by

VALUES = ("one", "two", "three")


def _same(value: bytes, revision: int) -> bytes:
    return value


@run_by(asyncio.run)
async def test_labels_that_one_or_many_objects_have() -> None:
    store, chance = MemoryStore(), random.Random(1)
    index = ObjectIndex(store)
    labels: dict[StoreKey, dict[str, str]] = {}
    for step in range(600):
        key = StoreKey("things", "default", f"n{chance.randrange(6)}")
        known = store.get(key)
        revision = known.revision if known is not None else 0
        if known is not None and chance.random() < 0.3:
            await store.delete(key, revision, lambda _: b"{}").committed()
            del labels[key]
        else:
            labels[key] = {name: chance.choice(VALUES) for name in ("a", "b") if chance.random() < 0.8} | {"own": f"{key.name}-{step}"}
            value = orjson.dumps({"metadata": {"uid": key.name, "labels": labels[key]}})
            await store.put(key, revision, partial(_same, value)).committed()
        for wanted in ({"a": "one"}, {"a": "two", "b": "three"}, {"own": labels.get(key, {}).get("own", "none")}):
            query = parse_labels(",".join(f"{name}={value}" for name, value in wanted.items()))
            expected = sorted(each for each, said in labels.items() if wanted.items() <= said.items())
            assert list(index.candidates("things", query) or ()) == expected
