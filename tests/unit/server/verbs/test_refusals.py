"""Refusals that hold for every verb of a write."""

from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

MACHINES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"


def machine(**instance: Any) -> dict[str, Any]:
    template = {"spec": {"domain": {"memory": {"guest": "1Gi"}, "devices": {}}, **instance}}
    spec = {"runStrategy": "Halted", "template": template}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "m"}, "spec": spec}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"hostname": 5}, "spec.template.spec.hostname"),
        ({"domain": {"cpu": {"cores": "many"}}}, "spec.template.spec.domain.cpu.cores"),
        ({"networks": [{"pod": {}}]}, "spec.template.spec.networks[0].name"),
    ],
)
@played
async def test_an_update_may_bring_nothing_that_a_create_may_not(api: Harness, /, change: Any, field: str) -> None:
    assert (await api.post(MACHINES, machine())).status == 201
    wrong = machine(**change)
    changes = (
        await api.merge(f"{MACHINES}/m", {"spec": {"template": {"spec": change}}}),
        await api.apply(f"{MACHINES}/m", wrong, "somebody", force=True),
        await api.put(f"{MACHINES}/m", {**wrong, "metadata": (await api.get(f"{MACHINES}/m")).data["metadata"]}),
        await api.post(MACHINES, {**wrong, "metadata": {"name": "other"}}),
    )
    for refused in changes:
        assert refused.status in (400, 422, 500) and field.rpartition(".")[2] in refused.data["message"], refused.data
    # Nobody writes the rest together with the status.
    assert (await api.merge(f"{MACHINES}/m/status", {"spec": {"template": {"spec": change}}})).status == 200
