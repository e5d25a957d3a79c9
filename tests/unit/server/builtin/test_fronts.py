"""Machines of the dialects as the server makes them where controllers run, and where none do."""

import asyncio
from typing import Any

import pytest

from paddock.kubernetes.schema.kind import AdmissionSettings
from tests.coroutines import run_by
from tests.kit.servers.apiharness import Harness

Data = dict[str, Any]
_VITISTACK = "/apis/vitistack.io/v1alpha1/namespaces/default/machines"
_STAKATER = "/apis/infrastructure.stakater.com/v1/namespaces/default/virtualmachines"
_VIRTRIGAUD = "/apis/infra.virtrigaud.io/v1beta1/namespaces/default/virtualmachines"
_REFERENCES = {"providerRef": {"name": "p"}, "classRef": {"name": "c"}, "imageRef": {"name": "i"}}
MACHINES: tuple[tuple[str, str, Data, Data], ...] = (
    (_VITISTACK, "machine.vitistack.io/cleanup", {"template": "small"}, {"phase": "Pending"}),
    (_STAKATER, "infrastructure.stakater.com/virtualmachine", {"parameters": {"runStrategy": "Halted"}}, {}),
    (_VIRTRIGAUD, "virtualmachine.infra.virtrigaud.io/finalizer", _REFERENCES, {}),
)


def _machine(path: str, spec: Data, **metadata: Any) -> Data:
    _, _, group, version, *_, plural = path.split("/")
    kind = {"machines": "Machine", "virtualmachines": "VirtualMachine"}[plural]
    return {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": {"name": "web", **metadata}, "spec": spec}


async def _made(path: str, spec: Data, annotations: Data, *, controllers: bool) -> Data:
    async with Harness(settings=AdmissionSettings(controllers=controllers)) as api:
        reply = await api.post(path, _machine(path, spec, annotations=annotations))
        assert reply.status == 201, reply.data
        found: Data = reply.data
        return found


@pytest.mark.parametrize(("path", "finalizer", "spec", "status"), MACHINES, ids=("vitistack", "stakater", "virtrigaud"))
@pytest.mark.parametrize("controllers", [True, False], ids=["controllers", "alone"])
def test_a_machine_has_its_finalizer_and_first_status_from_the_beginning(
    path: str, finalizer: str, spec: Data, status: Data, *, controllers: bool
) -> None:
    made = asyncio.run(_made(path, spec, {}, controllers=controllers))
    assert (made["metadata"].get("finalizers") or []) == ([finalizer] if controllers else [])
    # Nobody owns what the server puts there.
    assert not any("f:finalizers" in str(each) for each in made["metadata"]["managedFields"])
    assert (made.get("status") or {}) == (status if controllers else {})


@run_by(asyncio.run)
async def test_a_finalizer_is_not_put_on_twice_nor_on_a_paused_machine() -> None:
    path, _, spec, _ = MACHINES[1]
    made = await _made(path, spec, {"crossplane.io/paused": "true"}, controllers=True)
    assert "finalizers" not in made["metadata"]
    async with Harness() as api:
        place, finalizer, spec, _ = MACHINES[0]
        made = (await api.post(place, _machine(place, spec, finalizers=[finalizer, "a.b/c"]))).data
        assert made["metadata"]["finalizers"] == [finalizer, "a.b/c"]
