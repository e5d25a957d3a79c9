"""Fields that a server's kinds do not declare: found in its OpenAPI document, and named when it refuses to apply an object."""

import asyncio
from typing import Any

import orjson
import pytest

from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.declaredfields import undeclared
from paddock.kubernetes.client.errors import UndeclaredFields
from paddock.kubernetes.client.localtransport import LocalTransport
from paddock.kubernetes.client.target import plain
from paddock.kubernetes.client.transport import TransportRequest, TransportResponse

POOLS = plain("pool.kubevirt.io", "v1alpha1", "virtualmachinepools", "VirtualMachinePool")
SPEC = {
    "properties": {
        "replicas": {"type": "integer"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "disks": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
        "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "quantity": {"x-kubernetes-int-or-string": True},
        "free": {"type": "object"},
    }
}
DOCUMENT = {
    "components": {
        "schemas": {
            "io.kubevirt.pool.v1alpha1.VirtualMachinePool": {
                "properties": {"metadata": {"allOf": [{"$ref": "x"}]}, "spec": SPEC},
                "x-kubernetes-group-version-kind": [{"group": "pool.kubevirt.io", "version": "v1alpha1", "kind": "VirtualMachinePool"}],
            }
        }
    }
}


def pool(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "workers", "namespace": "default"}
    return {"apiVersion": "pool.kubevirt.io/v1alpha1", "kind": "VirtualMachinePool", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"replicas": 1, "labels": {"a": "b"}, "disks": [{"name": "a"}], "quantity": "1Gi"}, ()),
        ({"anything": {"at": {"all": 1}}, "free": {"x": 1}}, ()),
        ({"autohealing": {"startUpFailureThreshold": 3}}, ("spec.autohealing",)),
        ({"disks": [{"name": "a", "io": "native"}, {"io": "threads"}], "updateStrategy": {}}, ("spec.disks[].io", "spec.updateStrategy")),
    ],
)
def test_fields(spec: dict[str, Any], found: tuple[str, ...]) -> None:
    assert undeclared(DOCUMENT, "v1alpha1", pool(**spec)) == found


def test_a_kind_that_the_document_lacks_has_no_undeclared_fields() -> None:
    assert undeclared(DOCUMENT, "v1beta1", pool(autohealing={})) == undeclared({}, "v1alpha1", pool(autohealing={})) == ()


class OldServer:
    """Refuses to apply, and names one field of several, another one each time."""

    def __init__(self, documents: int = 200) -> None:
        self.documents = documents
        self.fields = ["autohealing", "updateStrategy"]

    async def answer(self, request: TransportRequest) -> TransportResponse:
        if request.method == "GET":
            assert request.target == "/openapi/v3/apis/pool.kubevirt.io/v1alpha1"
            return TransportResponse(self.documents, {}, orjson.dumps(DOCUMENT if self.documents == 200 else {}))
        self.fields.reverse()
        said = "failed to create typed patch object (default/workers; pool.kubevirt.io/v1alpha1, Kind=VirtualMachinePool)"
        message = f"{said}: .spec.{self.fields[0]}: field not declared in schema"
        return TransportResponse(500, {}, orjson.dumps({"kind": "Status", "message": message, "code": 500}))


def refusals(server: OldServer) -> list[UndeclaredFields]:
    found = []

    async def script() -> None:
        async with Client(LocalTransport(server.answer)) as client:
            for _ in range(2):
                with pytest.raises(UndeclaredFields) as error:
                    await client.apply(POOLS, pool(autohealing={}, updateStrategy={}, replicas=1))
                found.append(error.value)

    asyncio.run(script())
    return found


def test_a_refusal_names_all_of_them_each_time() -> None:
    said = "VirtualMachinePool of pool.kubevirt.io/v1alpha1 does not have spec.autohealing, spec.updateStrategy on this server"
    assert {str(each) for each in refusals(OldServer())} == {f"{said}; remove these fields, or update what serves pool.kubevirt.io"}


def test_without_the_document_a_refusal_names_what_the_server_said() -> None:
    assert {each.fields for each in refusals(OldServer(403))} == {("spec.autohealing",), ("spec.updateStrategy",)}
