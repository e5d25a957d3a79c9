"""Leases: a PUT of one that is missing makes it, unless the writer means one that is gone."""

from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

LEASE = "/apis/coordination.k8s.io/v1/namespaces/default/leases/x"
PARENT = LEASE.rpartition("/")[0]


def lease(**metadata: str) -> dict[str, Any]:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {"holderIdentity": "a"}}


@played
async def test_a_put_of_a_missing_lease(api: Harness, /) -> None:
    assert (await api.put(LEASE, lease(name="x"))).status == 201
    await api.delete(LEASE)
    # kube-apiserver takes no notice of a revision where there is nothing.
    made = await api.put(LEASE, lease(name="x", resourceVersion="7"))
    assert made.status == 201
    await api.delete(LEASE)
    refused = await api.put(LEASE, made.data)
    assert (refused.status, refused.reason) == (409, "Conflict")
    assert "UID in precondition: " in refused.data["message"]
    assert (await api.get(LEASE)).status == 404


@pytest.mark.parametrize("metadata", [None, [], "x"])
@played
async def test_metadata_that_are_none(api: Harness, /, metadata: Any) -> None:
    assert (await api.put(LEASE, {**lease(), "metadata": metadata})).status in (400, 422)
