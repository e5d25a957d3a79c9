"""The server's own description: health, discovery, OpenAPI; and the form of its answers."""

import asyncio
import re
from pathlib import Path
from typing import Any

import orjson
import pytest

import paddock.dialects.stakater
from paddock.kubernetes.meta.manifests.load import load
from paddock.server import protobuf
from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

MAPS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
EXAMPLE = Path(paddock.dialects.stakater.__file__).parent / "examples" / "minimal.yaml"
KUBECTL = f"{AGGREGATED.format('v2')},{AGGREGATED.format('v2beta1')},application/json"
# One CRD kind with every subresource, one built-in kind.
DOCUMENTS = ("apis/kubevirt.io/v1", "apis/infrastructure.stakater.com/v1", "api/v1")


@pytest.mark.spec("kube-api", 2, "give 200 `ok`", "`?verbose` lists checks")
@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
@played
async def test_health_is_ok_and_verbose_lists_its_checks(api: Harness, /, path: str) -> None:
    assert ((await api.get(path)).status, (await api.get(path)).raw) == (200, b"ok")
    said = (await api.get(f"{path}?verbose")).raw.decode()
    assert re.search(r"^\[\+\]ping ok$", said, re.MULTILINE)
    assert said.endswith("check passed\n")
    api.api.health.add_ready("broken", lambda: "it does not work")
    assert (await api.get("/readyz")).status == 500
    assert (await api.get("/livez")).status == 200


@played
async def test_a_group_that_is_not_ready_says_why(api: Harness, /) -> None:
    path = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/web/start"
    reasons = ["the controllers of machines are starting"]
    api.api.unready["subresources.kubevirt.io"] = lambda: "".join(reasons)
    said = await api.put(path, {})
    assert (said.status, said.data["reason"], said.data["message"]) == (503, "ServiceUnavailable", reasons[0])
    assert said.headers["retry-after"] == "1"
    reasons.clear()
    assert (await api.put(path, {})).status == 404


@pytest.mark.spec("kube-api", 3)
@pytest.mark.parametrize("root", ["/api", "/apis"])
@played
async def test_aggregated_discovery(api: Harness, /, root: str) -> None:
    reply = await api.get(root, accept=KUBECTL)
    assert reply.headers["content-type"] == AGGREGATED.format("v2")
    assert (reply.data["kind"], reply.data["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    wanted = ("v1", "configmaps") if root == "/api" else ("v1", "virtualmachines")
    versions = [version for group in reply.data["items"] for version in group["versions"]]
    assert any(version["version"] == wanted[0] and wanted[1] in [r["resource"] for r in version["resources"]] for version in versions)


@pytest.mark.spec("kubevirt", 52)
@pytest.mark.parametrize("is_aggregated", [True, False])
@played
async def test_a_short_name_of_two_dialects_means_kubevirts_kind(api: Harness, /, is_aggregated: bool) -> None:
    listed = await _names(api, is_aggregated)
    for name, owner in (
        ("vm", "virtualmachines.kubevirt.io"),
        ("vmclone", "virtualmachineclones.clone.kubevirt.io"),
        ("vmsnapshot", "virtualmachinesnapshots.snapshot.kubevirt.io"),
        ("vmset", "vmsets.infra.virtrigaud.io"),
    ):
        assert {resource for resource, names in listed.items() if name in names} == {owner}


async def _names(api: Harness, is_aggregated: bool) -> dict[str, set[str]]:
    """Each resource, and the singular and short names that a client finds for it."""
    found: dict[str, set[str]] = {}
    if is_aggregated:
        for group in (await api.get("/apis", accept=KUBECTL)).data["items"]:
            for resource in (each for version in group["versions"] for each in version["resources"]):
                names = {resource["singularResource"], *resource.get("shortNames", ())}
                found.setdefault(f"{resource['resource']}.{group['metadata']['name']}", set()).update(names)
        return found
    for group in (await api.get("/apis")).data["groups"]:
        for version in group["versions"]:
            for resource in (await api.get(f"/apis/{version['groupVersion']}")).data["resources"]:
                names = {resource["singularName"], *resource.get("shortNames", ())}
                found.setdefault(f"{resource['name']}.{group['name']}", set()).update(names)
    return found


@pytest.mark.spec("kube-api", 145)
@pytest.mark.parametrize("spelling", ["spec.v2@v1.0", "spec.v2.v1.0"])
@played
async def test_the_second_openapi_in_its_binary_form_says_the_same_under_a_type_that_clients_can_read(
    api: Harness, /, spelling: str
) -> None:
    reply = await api.get("/openapi/v2", accept=f"application/com.github.proto-openapi.{spelling}+protobuf, */*;q=0.1")
    assert reply.headers["content-type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    plain = (await api.get("/openapi/v2")).data
    said = members(reply.raw)
    assert said[1] == [b"2.0"]
    assert [members(each)[1] for each in members(said[8][0])[2]] == [[path.encode()] for path in plain["paths"]]
    entries = [members(each) for each in members(said[9][0])[1]]
    definitions = {each[1][0].decode(): each[2][0] for each in entries}
    assert list(definitions) == list(plain["definitions"])
    name = next(each for each in plain["definitions"] if each.endswith(".v1.ConfigMap"))
    config_map, wanted = members(definitions[name]), plain["definitions"][name]
    assert config_map[4] == [wanted["description"].encode()]
    assert config_map[22] == [b"\n\x06object"]
    assert [members(each)[1][0].decode() for each in members(config_map[25][0])[1]] == list(wanted["properties"])
    (kinds,) = (members(each) for each in config_map[31] if members(each)[1] == [b"x-kubernetes-group-version-kind"])
    assert orjson.loads(members(kinds[2][0])[2][0]) == wanted["x-kubernetes-group-version-kind"]


@pytest.mark.spec("kube-api", 145)
@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3/api/v1"])
@played
async def test_openapi_in_a_form_that_is_not_made(api: Harness, /, path: str) -> None:
    refused = await api.get(path, accept="application/vnd.kubernetes.protobuf")
    assert (refused.status, refused.raw) == (406, b"")
    assert (await api.get(path, accept="application/*")).headers["content-type"] == "application/json"


def members(message: bytes) -> dict[int, list[Any]]:
    """The fields of a protobuf message, by number."""
    found: dict[int, list[Any]] = {}
    for number, value in protobuf._raw(message):
        found.setdefault(number, []).append(value)
    return found


@pytest.mark.spec("kube-api", 4)
@played
async def test_older_forms_of_discovery(api: Harness, /) -> None:
    old = await api.get("/apis", accept=AGGREGATED.format("v2beta1"))
    assert (old.headers["content-type"], old.data["apiVersion"]) == (AGGREGATED.format("v2beta1"), "apidiscovery.k8s.io/v2beta1")
    for path, kind in (("/api", "APIVersions"), ("/apis", "APIGroupList")):
        plain = await api.get(path, accept="application/json")
        assert (plain.headers["content-type"], plain.data["kind"]) == ("application/json", kind)


@pytest.mark.spec("kube-api", 7)
@played
async def test_every_group_and_version_tells_its_resources(api: Harness, /) -> None:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"scale": scale, "status": {}}}
    called = {"plural": "fleets", "kind": "Fleet"}
    fleets = {"group": "example.com", "scope": "Namespaced", "names": called, "versions": [version]}
    made = await api.post(CRDS, {"metadata": {"name": "fleets.example.com"}, "spec": fleets})
    assert made.status == 201, made.data
    groups = (await api.get("/apis")).data["groups"]
    served = {group["name"] for group in groups}
    assert {"kubevirt.io", "cdi.kubevirt.io", "infra.virtrigaud.io", "vitistack.io", "example.com"} < served
    for group in groups:
        alone = (await api.get(f"/apis/{group['name']}")).data
        assert (alone["kind"], alone["preferredVersion"]) == ("APIGroup", group["preferredVersion"])
        for version in group["versions"]:
            said = (await api.get(f"/apis/{version['groupVersion']}")).data
            assert (said["kind"], said["groupVersion"]) == ("APIResourceList", version["groupVersion"])
            listed = {resource["name"] for resource in said["resources"]}
            assert all(name.partition("/")[0] in listed for name in listed)
            scaled = [each for each in said["resources"] if each["name"].endswith("/scale")]
            assert all((each["group"], each["version"], each["kind"]) == ("autoscaling", "v1", "Scale") for each in scaled)
    pools = {r["name"]: r for r in (await api.get("/apis/pool.kubevirt.io/v1beta1")).data["resources"]}
    assert "virtualmachinepools/scale" in pools
    assert pools["virtualmachinepools/status"]["verbs"] == ["get", "patch", "update"]


@pytest.mark.spec("kube-api", 8)
@played
async def test_openapi_documents_are_found_by_their_hash(api: Harness, /) -> None:
    paths = (await api.get("/openapi/v3")).data["paths"]
    for name in DOCUMENTS:
        url = paths[name]["serverRelativeURL"]
        found = await api.get(url)
        assert found.status == 200
        assert (found.headers["cache-control"], found.headers["expires"][-3:]) == ("public, immutable", "GMT")
        stale = await api.get(f"{url.partition('?')[0]}?hash=0123")
        assert (stale.status, stale.headers["location"]) == (301, url)


@pytest.mark.spec("kube-api", 166)
@pytest.mark.parametrize("path", ["/openapi/v3", "/openapi/v2"])
@played
async def test_others_are_answered_while_openapi_documents_are_made(api: Harness, /, path: str) -> None:
    document = asyncio.create_task(api.get(path))
    await asyncio.sleep(0)
    assert (await api.get("/version")).status == 200
    assert not document.done()
    assert (await document).status == 200


@played
async def test_a_change_of_one_group_keeps_the_documents_of_the_others(api: Harness, /) -> None:
    before = (await api.get("/openapi/v3")).data["paths"]
    kept = api.parts.registry.find("", "v1", "configmaps")
    changed = api.parts.registry.find("infrastructure.stakater.com", "v1", "virtualmachines") or next(
        each for each in api.parts.registry if each.group == "infrastructure.stakater.com"
    )
    assert kept is not None
    api.parts.registry.remove(changed)
    after = (await api.get("/openapi/v3")).data["paths"]
    assert {name for name in before if after.get(name) != before[name]} == {f"apis/{changed.group}/{changed.version}"}


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        mine = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
        return mine.union(*(_references(each) for each in value.values()))
    if isinstance(value, list):
        return set().union(*(_references(each) for each in value))
    return set()


@pytest.mark.spec("kube-api", 9, 10)
@pytest.mark.parametrize("name", DOCUMENTS)
@played
async def test_openapi_documents_are_whole(api: Harness, /, name: str) -> None:
    document = (await api.get(f"/openapi/v3/{name}")).data
    schemas = document["components"]["schemas"]
    missing = {reference for reference in _references(document) if reference.removeprefix("#/components/schemas/") not in schemas}
    assert missing == set()
    patches = [path["patch"] for path in document["paths"].values() if "patch" in path]
    assert patches
    for patch in patches:
        assert patch["x-kubernetes-group-version-kind"]["kind"]
        assert {"fieldValidation", "dryRun", "fieldManager", "force"} <= {each["name"] for each in patch["parameters"]}


@pytest.mark.spec("kube-api", 14)
@played
async def test_a_client_that_prefers_protobuf_gets_json_where_it_takes_it(api: Harness, /) -> None:
    vms = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
    fallback = await api.get(vms, accept="application/vnd.kubernetes.protobuf,application/json")
    assert (fallback.status, fallback.headers["content-type"]) == (200, "application/json")
    assert (await api.get(vms, accept="application/vnd.kubernetes.protobuf")).status == 406


@pytest.mark.spec("kube-api", 29)
@pytest.mark.parametrize(
    ("method", "target", "body", "code", "reason"),
    [
        ("GET", f"{MAPS}/none", None, 404, "NotFound"),
        ("GET", "/apis/nothing.example/v1/things", None, 404, "NotFound"),
        ("POST", MAPS, b"{", 400, "BadRequest"),
        ("POST", MAPS, {"metadata": {"name": "A_"}}, 422, "Invalid"),
        ("POST", f"{MAPS}/named", {}, 405, "MethodNotAllowed"),
        ("PUT", f"{MAPS}/none", {"metadata": {"name": "none"}}, 404, "NotFound"),
        ("GET", f"{MAPS}?limit=many", None, 400, "BadRequest"),
    ],
)
@played
async def test_every_error_is_a_status(api: Harness, /, method: str, target: str, body: Any, code: int, reason: str) -> None:
    reply = await api.call(method, target, body)
    assert (reply.status, reply.headers["content-type"]) == (code, "application/json")
    said = reply.data
    assert (said["kind"], said["apiVersion"], said["status"]) == ("Status", "v1", "Failure")
    assert (said["code"], said["reason"]) == (code, reason)
    assert said["message"]


@pytest.mark.spec("stakater", 69)
@played
async def test_a_stakater_machine_is_shown_by_its_conditions(api: Harness, /) -> None:
    machines = "/apis/infrastructure.stakater.com/v1/namespaces/default/virtualmachines"
    example = load(EXAMPLE.read_bytes(), str(EXAMPLE))
    made = await api.post(machines, {**next(example).data, "metadata": {"name": "web"}})
    assert made.status == 201, made.raw
    conditions = [{"type": "Ready", "status": "False"}, {"type": "Synced", "status": "True"}]
    status = await api.merge(f"{machines}/web/status", {"status": {"conditions": conditions, "vm": {"printableStatus": "Starting"}}})
    assert status.status == 200, status.raw
    table = (await api.get(machines, accept="application/json;as=Table;g=meta.k8s.io;v=v1")).data
    columns = [column["name"].upper() for column in table["columnDefinitions"] if column["priority"] == 0]
    assert columns == ["NAME", "READY", "SYNCED", "PRINTABLE-STATUS", "AGE"]
    assert table["rows"][0]["cells"][:4] == ["web", "False", "True", "Starting"]


@played
async def test_the_stored_form_has_the_short_name_that_tools_compute_for_it(api: Harness, /) -> None:
    listed = (await api.get("/api/v1")).data["resources"]
    # As a kube-apiserver tells it of its own ConfigMaps.
    assert next(each["storageVersionHash"] for each in listed if each["name"] == "configmaps") == "qFsyl6wFWjQ="


@pytest.mark.parametrize("path", ["/version", "/api", MAPS])
@played
async def test_a_timeout_that_is_no_duration_is_refused_everywhere(api: Harness, /, path: str) -> None:
    assert (await api.get(f"{path}?timeout=32s")).status == 200
    refused = await api.get(f"{path}?timeout=invalid")
    assert (refused.status, "invalid timeout specified in the request URL" in refused.data["message"]) == (400, True)
