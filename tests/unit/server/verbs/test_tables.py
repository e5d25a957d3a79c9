"""Objects as rows of a table, and their metadata alone (docs/spec/kube-api.md section 2.2)."""

from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

NCS = "/apis/vitistack.io/v1alpha1/namespaces/default/networkconfigurations"


def network(name: str = "n", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "vitistack.io/v1alpha1", "kind": "NetworkConfiguration", "metadata": {"name": name}, "spec": spec}


@played
async def test_a_table_shows_what_is_now(api: Harness, /) -> None:
    """Rows are kept between tables; what changed, what went and what came again is not shown as it was."""

    async def cells() -> list[list[Any]]:
        table = (await api.get(NCS, accept="application/json;as=Table;v=v1;g=meta.k8s.io")).data
        assert [row["object"]["metadata"]["name"] for row in table["rows"]] == [row["cells"][0] for row in table["rows"]]
        return [[row["cells"][1], row["cells"][4]] for row in table["rows"]]

    assert await cells() == []
    await api.post(NCS, network(vlan=7))
    assert await cells() == [[7, "0s"]]
    api.clock.time += 65
    assert await cells() == [[7, "65s"]]
    await api.merge(f"{NCS}/n", {"spec": {"vlan": 8}, "metadata": {"labels": {"long": "x" * 60}}})
    assert await cells() == [[8, "65s"]]
    await api.delete(f"{NCS}/n")
    assert await cells() == []
    await api.post(NCS, network(vlan=9))
    assert await cells() == [[9, "0s"]]


@pytest.mark.spec("kube-api", 42)
@played
async def test_tables_and_metadata_only(api: Harness, /) -> None:
    await api.post(NCS, network(vlan=7))
    api.clock.time += 3700 * 3
    table = (await api.get(NCS, accept="application/json;as=Table;v=v1;g=meta.k8s.io,application/json")).data
    assert table["kind"] == "Table"
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "VLAN", "Bridge", "Ready", "Age"]
    (row,) = table["rows"]
    assert row["cells"] == ["n", 7, "br0", None, "3h5m"]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    for include, kind in (("Object", "NetworkConfiguration"), ("None", None)):
        row = (await api.get(f"{NCS}/n?includeObject={include}", accept="application/json;as=Table;v=v1;g=meta.k8s.io")).data["rows"][0]
        assert row.get("object", {}).get("kind") == kind
    partial = (await api.get(NCS, accept="application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")).data
    assert partial["kind"] == "PartialObjectMetadataList"
    assert "spec" not in partial["items"][0]
    wrong = await api.get(f"{NCS}?includeObject=Some", accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert wrong.status == 400
