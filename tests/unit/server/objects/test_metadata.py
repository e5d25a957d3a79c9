"""The rules of metadata for objects with long lists: a search of a list for each of its entries would take minutes."""

import json
from typing import Any

import pytest

from paddock.server.objects import metadata
from tests.kit.servers.apiharness import Harness

MANY = 120_000


def owner(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", **fields}


@pytest.mark.spec("kube-api", 25)
def test_a_terminating_object_keeps_many_finalizers_and_gets_no_new_one() -> None:
    resource = Harness().registry.find("", "v1", "configmaps")
    assert resource is not None
    held = [f"example.com/{each}" for each in range(MANY)]
    old = {"metadata": {"name": "a", "deletionTimestamp": "2001-01-01T00:00:00Z", "finalizers": held}}
    assert list(metadata.check(resource, {"metadata": {"name": "a", "finalizers": held[:0:-1]}}, old)) == []
    (more,) = metadata.check(resource, {"metadata": {"name": "a", "finalizers": [*held, "example.com/new"]}}, old)
    assert 'found new finalizers []string{"example.com/new"}' in more.message


def test_many_owners_are_kept_and_repeated_ones_dropped() -> None:
    owners = [owner(uid=str(each)) for each in range(MANY)]
    data: dict[str, Any] = {"metadata": {"ownerReferences": [*owners, owner(uid="7")]}}
    (warning,) = metadata.drop_repeated_owners(data)
    assert "duplicate UID(s): 7" in warning
    assert data["metadata"]["ownerReferences"] == owners


def test_owners_are_one_only_if_they_are_the_same_json() -> None:
    repeated = owner(uid="1")
    owners = [repeated, dict(reversed(owner().items())), repeated, owner(controller=True), owner(controller=False)]
    data: dict[str, Any] = {"metadata": {"ownerReferences": owners}}
    assert len(list(metadata.drop_repeated_owners(data))) == 2
    assert json.dumps(data["metadata"]["ownerReferences"]) == json.dumps([owners[0], owners[3], owners[4]])
