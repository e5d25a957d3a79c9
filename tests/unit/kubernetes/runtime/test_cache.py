"""The cache and its indexes."""

from typing import Any

import orjson

from paddock.kubernetes.client.target import Key, plain
from paddock.kubernetes.runtime.cache import Cache, CachedObject, by_label

MAPS = plain("", "v1", "configmaps", "ConfigMap")


def seen(name: str, revision: int = 1, namespace: str = "default", owner: str = "", **labels: str) -> CachedObject:
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "resourceVersion": str(revision), "labels": labels}
    if owner:
        metadata["ownerReferences"] = [{"apiVersion": "example.com/v1", "kind": "Machine", "name": owner, "uid": owner, "controller": True}]
    return CachedObject.of(orjson.dumps({"kind": "ConfigMap", "metadata": metadata}))


def names(found: list[CachedObject]) -> list[str]:
    return [each.meta.name for each in found]


def test_indexes_follow_the_objects() -> None:
    cache = Cache()
    cache.put(seen("a", app="x", owner="m1"))
    cache.index("app", by_label("app"))
    cache.put(seen("b", app="x", namespace="other"))
    assert names(cache.by("app", "x")) == ["a", "b"]
    assert names(cache.by("namespace", "other")) == ["b"]
    assert names(cache.by("owner", "m1")) == ["a"]
    old = cache.put(seen("a", 2, app="y"))
    assert old is not None and old.meta.resourceVersion == "1"
    assert (names(cache.by("app", "x")), names(cache.by("app", "y")), cache.by("owner", "m1")) == (["b"], ["a"], [])
    cache.remove(Key("other", "b"))
    assert (cache.by("app", "x"), cache.by("namespace", "other"), len(cache)) == ([], [], 1)
    assert cache.remove(Key("other", "b")) is None


def test_an_own_index_may_look_into_the_object() -> None:
    cache = Cache()
    cache.index("first", lambda each: [each.read(MAPS)["metadata"]["name"][0]])
    for name in ("ab", "ac", "b"):
        cache.put(seen(name))
    assert names(cache.by("first", "a")) == ["ab", "ac"]


def test_what_is_read_is_the_readers_own() -> None:
    one = seen("a")
    one.read(MAPS)["metadata"]["name"] = "spoiled"
    value = one.read(MAPS)
    assert value["metadata"]["name"] == "a"
    owner = seen("b", owner="m").meta.owner
    assert owner is not None
    assert (owner.group, owner.kind) == ("example.com", "Machine")
