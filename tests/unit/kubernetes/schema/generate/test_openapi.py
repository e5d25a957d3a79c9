"""OpenAPI documents as kubectl reads them."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from paddock.kubernetes.meta.objects import ObjectMeta
from paddock.kubernetes.schema.generate import metaschemas, openapi
from paddock.kubernetes.schema.generate.openapi import OpenApiResource
from tests.golden import Golden
from tests.unit.kubernetes.schema.sample import SAMPLE

METADATA = metaschemas.object_meta(ObjectMeta)
V1, V1BETA1 = openapi.resources([SAMPLE])
PLAIN = OpenApiResource(
    group="x.dev", version="v1", kind="Plain", plural="plains", list_kind="PlainList", schema={"type": "object"}, namespaced=False
)
ROOT = "/apis/test.paddock.dev/v1"
ONE = f"{ROOT}/namespaces/{{namespace}}/samples/{{name}}"


def _document(*resources: OpenApiResource) -> dict[str, Any]:
    return openapi.document(resources, METADATA)


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        yield from ((path, method, operation) for method, operation in item.items() if method != "parameters")


def test_the_paths_of_a_resource(golden: Golden) -> None:
    document = _document(V1)
    lines = [f"{operation['x-kubernetes-action']:16} {operation['operationId']:60} {path}" for path, _, operation in _operations(document)]
    golden("sample.paths.txt", "\n".join(lines) + "\n")


def test_every_served_version_is_a_resource() -> None:
    assert [(each.version, each.scale, each.status) for each in (V1, V1BETA1)] == [("v1", True, True), ("v1beta1", True, True)]


def test_kubectl_finds_out_about_field_validation_at_the_patch() -> None:
    patch = _document(V1)["paths"][ONE]["patch"]
    assert patch["x-kubernetes-action"] == "patch"
    assert patch["x-kubernetes-group-version-kind"] == {"group": "test.paddock.dev", "version": "v1", "kind": "Sample"}
    assert [parameter["name"] for parameter in patch["parameters"]] == ["dryRun", "fieldManager", "fieldValidation", "force"]
    assert {parameter["in"] for parameter in patch["parameters"]} == {"query"}


def test_only_kinds_of_the_server_take_strategic_merge_patches() -> None:
    def media(resource: OpenApiResource) -> set[str]:
        return set(_document(resource)["paths"][ONE]["patch"]["requestBody"]["content"])

    custom = {"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"}
    assert media(V1) == custom
    assert media(msgspec.structs.replace(V1, builtin=True)) == {*custom, "application/strategic-merge-patch+json"}


def test_merge_keys_are_told_of_kinds_of_the_server() -> None:
    def disks(resource: OpenApiResource) -> dict[str, Any]:
        schemas: dict[str, Any] = _document(resource)["components"]["schemas"]
        found: dict[str, Any] = schemas["dev.paddock.test.v1.Sample"]["properties"]["spec"]["properties"]["disks"]
        return found

    assert "x-kubernetes-patch-merge-key" not in disks(V1)
    builtin = disks(msgspec.structs.replace(V1, builtin=True))
    assert (builtin["x-kubernetes-patch-merge-key"], builtin["x-kubernetes-patch-strategy"]) == ("name", "merge")


def test_the_published_schema_has_the_envelope_and_its_kind() -> None:
    schema = _document(V1)["components"]["schemas"]["dev.paddock.test.v1.Sample"]
    assert list(schema["properties"]) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert schema["properties"]["metadata"]["allOf"] == [metaschemas.ref(metaschemas.OBJECT_META)]
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "test.paddock.dev", "version": "v1", "kind": "Sample"}]
    listed = _document(V1)["components"]["schemas"]["dev.paddock.test.v1.SampleList"]
    assert listed["properties"]["items"]["items"] == metaschemas.ref("dev.paddock.test.v1.Sample")
    assert listed["x-kubernetes-group-version-kind"][0]["kind"] == "SampleList"


def test_publishing_leaves_the_schema_of_the_resource_alone() -> None:
    before = json.dumps(V1.schema)
    _document(msgspec.structs.replace(V1, builtin=True))
    assert json.dumps(V1.schema) == before


@pytest.mark.parametrize("resources", [(V1,), (PLAIN,), (msgspec.structs.replace(V1, stored=False),)])
def test_every_reference_leads_somewhere_in_the_document(resources: tuple[OpenApiResource, ...]) -> None:
    document = _document(*resources)
    assert set(_references(document)) <= {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def test_operations_have_names_of_their_own() -> None:
    names = [
        operation["operationId"]
        for _, _, operation in _operations(_document(V1, msgspec.structs.replace(V1, kind="Other", plural="others")))
    ]
    assert len(names) == len(set(names))


def test_what_is_only_created_has_one_operation() -> None:
    document = _document(msgspec.structs.replace(V1, stored=False))
    assert [(path, method) for path, method, _ in _operations(document)] == [(f"{ROOT}/namespaces/{{namespace}}/samples", "post")]
    assert "dev.paddock.test.v1.SampleList" not in document["components"]["schemas"]


def test_a_resource_of_the_whole_cluster_has_no_namespaces() -> None:
    assert list(_document(PLAIN)["paths"]) == ["/apis/x.dev/v1/plains", "/apis/x.dev/v1/plains/{name}"]
    names = {parameter["name"] for parameter in _document(PLAIN)["paths"]["/apis/x.dev/v1/plains/{name}"]["parameters"]}
    assert names == {"name", "pretty"}


def test_the_core_group_has_paths_of_its_own() -> None:
    assert openapi.path_of("", "v1") == "api/v1"
    assert openapi.path_of("apps", "v1") == "apis/apps/v1"
    assert openapi.schema_name("", "v1", "Secret") == "core.v1.Secret"
    core = _document(msgspec.structs.replace(PLAIN, group=""))
    assert next(iter(core["paths"])) == "/api/v1/plains"


def test_metadata_merges_as_the_server_merges_it() -> None:
    owners = METADATA["properties"]["ownerReferences"]
    assert (owners["x-kubernetes-patch-merge-key"], owners["x-kubernetes-patch-strategy"]) == ("uid", "merge")
    assert METADATA["properties"]["finalizers"]["x-kubernetes-patch-strategy"] == "merge"
