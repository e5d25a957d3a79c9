"""Cases that a generated script, spoken to two servers, and a fuzzer found."""

from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

NCS = "/apis/vitistack.io/v1alpha1/namespaces/default/networkconfigurations"


@played
async def test_an_applier_that_gives_up_its_last_label_leaves_the_object_whole(api: Harness, /) -> None:
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    said = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "endpoints": []}
    await api.apply(f"{slices}/s", {**said, "metadata": {"name": "s", "labels": {"a": "b"}}})
    left = await api.apply(f"{slices}/s", {**said, "metadata": {"name": "s"}})
    assert left.status == 200, left.data
    assert left.data["metadata"]["name"] == "s"
    assert "labels" not in left.data["metadata"]


@pytest.mark.parametrize("metadata", [7, [1], "x", True])
@played
async def test_metadata_that_is_none_is_a_bad_request(api: Harness, /, metadata: Any) -> None:
    for place in ("/apis/coordination.k8s.io/v1/namespaces/default/leases/a", f"{NCS}/n"):
        assert (await api.put(place, {"metadata": metadata})).status == 400
        assert (await api.apply(place, {"metadata": metadata})).status == 400
        collection = place.rpartition("/")[0]
        assert (await api.post(collection, {"metadata": metadata})).status == 400
    owner = {"metadata": {"name": "x", "ownerReferences": [{"uid": metadata}]}}
    refused = 422 if isinstance(metadata, str) else 400
    assert (await api.post("/api/v1/namespaces/default/configmaps", owner)).status == refused


@played
async def test_true_is_not_one(api: Harness, /) -> None:
    crd = {"name": "things.x.io"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names_ = {"plural": "things", "kind": "Thing"}
    spec = {"group": "x.io", "scope": "Namespaced", "names": names_, "versions": [version]}
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": crd, "spec": spec}
    assert (await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)).status == 201
    things = "/apis/x.io/v1/namespaces/default/things"
    made = await api.post(things, {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"a": [True]}})
    changed = await api.merge(f"{things}/t", {"spec": {"a": [1]}})
    assert changed.raw != made.raw
    assert changed.data["spec"]["a"][0] is not True
    assert changed.data["metadata"]["generation"] == 2
