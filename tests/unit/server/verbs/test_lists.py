"""Lists: what stands in their items."""

import pytest

from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

MAPS = "/api/v1/namespaces/default/configmaps"
NCS = "/apis/vitistack.io/v1alpha1/namespaces/default/networkconfigurations"
NETWORK = {"apiVersion": "vitistack.io/v1alpha1", "kind": "NetworkConfiguration", "spec": {}}


@pytest.mark.spec("kube-api", 146)
@played
async def test_items_of_built_in_kinds_leave_version_and_kind_to_the_list(api: Harness, /) -> None:
    await api.post(MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}})
    await api.post(MAPS, {"metadata": {"name": "b"}})
    await api.post(NCS, {**NETWORK, "metadata": {"name": "n"}})
    (a, _), (n,) = (await api.get(MAPS)).data["items"], (await api.get(NCS)).data["items"]
    assert a == {key: value for key, value in (await api.get(f"{MAPS}/a")).data.items() if key not in ("apiVersion", "kind")}
    assert n == (await api.get(f"{NCS}/n")).data
    for form in ("PartialObjectMetadataList", "Table"):
        found = await api.get(f"{MAPS}?includeObject=Object", accept=f"application/json;as={form};g=meta.k8s.io;v=v1")
        items = found.data.get("items") or [row["object"] for row in found.data["rows"]]
        assert {item["kind"] for item in items} == {"PartialObjectMetadata" if form != "Table" else "ConfigMap"}
    gone = await api.delete(MAPS)
    assert [sorted(item) for item in gone.data["items"]] == [["data", "metadata"], ["metadata"]]
