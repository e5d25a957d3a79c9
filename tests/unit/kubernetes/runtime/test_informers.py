"""Kinds that a server may lack, and those that it must have."""

import asyncio
from typing import Any

from paddock.kubernetes.client.target import plain
from paddock.kubernetes.runtime.informer import Informer
from paddock.kubernetes.runtime.informers import Informers
from tests.coroutines import played
from tests.unit.kubernetes.runtime.conftest import World


def definition(plural: str = "gadgets", kind: str = "Gadget") -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


GADGETS = plain("example.com", "v1", "gadgets", "Gadget")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GADGET = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a"}}


def _is_absent(informer: Informer) -> bool:
    """Now: a type checker takes it for what it was before."""
    return informer.absent


def _is_synced(informer: Informer) -> bool:
    return informer.synced


@played
async def test_an_optional_kind_that_is_not_served_is_empty_until_it_is(world: World, /) -> None:
    informers = Informers(world.client, world.machinery)
    gadgets = informers.of(GADGETS, optional=True)
    heard: list[bool] = []
    gadgets.handle(lambda change: heard.append(change.new is not None))
    informers.start()
    await informers.wait_synced()
    assert _is_absent(gadgets) and informers.unready() == ""
    assert (await world.api.post(DEFINITIONS, definition())).status == 201
    await asyncio.sleep(1)
    assert (await world.api.post("/apis/example.com/v1/namespaces/default/gadgets", GADGET)).status == 201
    await asyncio.sleep(30)
    assert not _is_absent(gadgets) and [each.meta.name for each in gadgets.cache] == ["a"]
    await world.api.delete(f"{DEFINITIONS}/gadgets.example.com")
    await asyncio.sleep(60)
    assert _is_absent(gadgets) and len(gadgets.cache) == 0
    assert heard == [True, False]
    await informers.stop()


@played
async def test_a_kind_that_is_needed_is_named_while_it_is_missing(world: World, /) -> None:
    informers = Informers(world.client, world.machinery)
    gadgets = informers.of(GADGETS, optional=True)
    # one who can do without and one who cannot
    assert informers.of(GADGETS) is gadgets
    informers.start()
    await asyncio.sleep(300)
    assert not _is_synced(gadgets)
    assert informers.unready() == "waiting for gadgets.example.com (the server does not serve it)"
    await world.api.post(DEFINITIONS, definition())
    await asyncio.sleep(31)
    assert _is_synced(gadgets) and informers.unready() == ""
    await world.api.delete(f"{DEFINITIONS}/gadgets.example.com")
    await asyncio.sleep(60)
    assert informers.unready() == "waiting for gadgets.example.com (the server does not serve it)"
    await informers.stop()


@played
async def test_a_kind_is_followed_in_the_version_that_there_is(world: World, /) -> None:
    informers = Informers(world.client, world.machinery)
    newer = plain("example.com", "v2", "gadgets", "Gadget")
    gadgets, others = informers.of(newer), informers.of(plain("example.com", "v2", "others", "Other"), optional=True)
    informers.settle(newer, "v1")
    assert informers.needed() == (GADGETS,) and others.target.version == "v2"
    await world.api.post(DEFINITIONS, definition())
    await asyncio.sleep(1)
    await world.api.post("/apis/example.com/v1/namespaces/default/gadgets", GADGET)
    informers.start()
    await asyncio.sleep(5)
    assert [each.meta.name for each in gadgets.cache] == ["a"]
    await informers.stop()
