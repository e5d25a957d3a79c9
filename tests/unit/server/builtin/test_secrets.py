"""Secrets, ConfigMaps and ServiceAccounts (docs/spec/kube-api.md section 7)."""

import base64
from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

SECRETS = "/api/v1/namespaces/default/secrets"
MAPS = "/api/v1/namespaces/default/configmaps"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def secret(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, **fields}


def folded(text: str) -> str:
    """Return base64 as kustomize writes long values."""
    coded = b64(text)
    return f"{coded[:4]}\n{coded[4:]}\r\n"


@played
async def test_base64_in_lines_is_taken_as_one_line(api: Harness, /) -> None:
    made = await api.post(SECRETS, secret(data={"a": folded("a long value")}))
    assert (made.status, made.data["data"]) == (201, {"a": b64("a long value")})
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    client = {"url": "https://example.org/x", "caBundle": folded("a certificate")}
    hook = {"name": "a.example.org", "clientConfig": client, "sideEffects": "None", "admissionReviewVersions": ["v1"]}
    found = await api.post(hooks, {"metadata": {"name": "a"}, "webhooks": [hook]})
    assert found.status == 201, found.data
    assert found.data["webhooks"][0]["clientConfig"]["caBundle"] == b64("a certificate")


@pytest.mark.spec("kube-api", 114)
@played
async def test_plain_text_is_merged_and_never_returned(api: Harness, /) -> None:
    made = await api.post(SECRETS, secret(data={"a": b64("1"), "b": b64("2")}, stringData={"b": "3"}))
    assert (made.status, made.data["type"]) == (201, "Opaque")
    assert made.data["data"] == {"a": b64("1"), "b": b64("3")}
    put = await api.put(f"{SECRETS}/a", secret(stringData={"c": "4"}))
    assert put.data["data"] == {"c": b64("4")}
    merged = await api.merge(f"{SECRETS}/a", {"stringData": {"d": "5"}})
    assert merged.data["data"] == {"c": b64("4"), "d": b64("5")}
    applied = await api.apply(f"{SECRETS}/b", secret(apiVersion="v1", kind="Secret", stringData={"x": "y"}) | {"metadata": {"name": "b"}})
    assert (applied.status, applied.data["data"]) == (201, {"x": b64("y")})
    for reply in (made, put, merged, applied, await api.get(f"{SECRETS}/a"), await api.get(f"{SECRETS}/b")):
        assert "stringData" not in reply.data


@pytest.mark.spec("kube-api", 114)
@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"type": "kubernetes.io/tls", "stringData": {"tls.crt": "x"}}, "data[tls.key]", "Required value"),
        ({"type": "kubernetes.io/tls", "stringData": {"tls.key": "x"}}, "data[tls.crt]", "Required value"),
        ({"type": "kubernetes.io/basic-auth"}, "data.username", "Required value"),
        ({"type": "kubernetes.io/ssh-auth"}, "data.ssh-privatekey", "Required value"),
        ({"type": "kubernetes.io/dockerconfigjson"}, "data[.dockerconfigjson]", "Required value"),
        ({"type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": "{"}}, "data[.dockerconfigjson]", "must be JSON"),
        ({"type": "kubernetes.io/service-account-token"}, "metadata.annotations[kubernetes.io/service-account.name]", "Required value"),
        ({"data": {"a b": ""}}, "data.a b", "Invalid value"),
        ({"data": {"x": "***"}}, "data.x", "not base64"),
        ({"stringData": {"x": "y" * (1024 * 1024 + 1)}}, "data", "Too long"),
    ],
)
@played
async def test_refused_secrets(api: Harness, /, fields: dict[str, Any], field: str, words: str) -> None:
    refused = await api.post(SECRETS, secret(**fields))
    assert (refused.status, refused.reason) == (422, "Invalid")
    assert words in refused.causes[field]


@pytest.mark.spec("kube-api", 114)
@played
async def test_types_and_immutable_secrets_stay(api: Harness, /) -> None:
    await api.post(SECRETS, secret(stringData={"a": "1"}))
    other = await api.merge(f"{SECRETS}/a", {"type": "mine"})
    assert "field is immutable" in other.causes["type"]
    assert (await api.merge(f"{SECRETS}/a", {"immutable": True})).status == 200
    for change in ({"stringData": {"a": "2"}}, {"data": None}, {"immutable": False}, {"immutable": None}):
        refused = await api.merge(f"{SECRETS}/a", change)
        assert (refused.status, "field is immutable" in refused.data["message"]) == (422, True), change
    labelled = await api.merge(f"{SECRETS}/a", {"metadata": {"labels": {"x": "y"}}, "stringData": {"a": "1"}})
    assert labelled.status == 200


@played
async def test_config_maps_keep_their_keys_apart_and_may_be_frozen(api: Harness, /) -> None:
    twice = await api.post(MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}, "binaryData": {"x": b64("1")}})
    assert twice.status == 422
    assert "binaryData.x" in twice.causes
    await api.post(MAPS, {"metadata": {"name": "a"}, "data": {"x": "1"}, "immutable": True})
    refused = await api.merge(f"{MAPS}/a", {"data": {"x": "2"}})
    assert (refused.status, "data" in refused.causes) == (422, True)
    emptied = await api.post(MAPS, {"metadata": {"name": "b"}, "data": {}})
    assert "data" not in emptied.data


@played
async def test_secrets_of_an_account_are_patched_by_name(api: Harness, /) -> None:
    await api.post(ACCOUNTS, {"metadata": {"name": "a"}, "secrets": [{"name": "x"}], "imagePullSecrets": [{"name": "p"}]})
    patch = {"secrets": [{"name": "y"}], "imagePullSecrets": [{"name": "q"}], "metadata": {"finalizers": ["a/b"]}}
    made = await api.call("PATCH", f"{ACCOUNTS}/a", patch, content_type="application/strategic-merge-patch+json")
    assert [each["name"] for each in made.data["secrets"]] == ["y", "x"]
    # The Go type has no merge key for these.
    assert [each["name"] for each in made.data["imagePullSecrets"]] == ["q"]
    again = await api.call(
        "PATCH", f"{ACCOUNTS}/a", {"metadata": {"finalizers": ["c/d"]}}, content_type="application/strategic-merge-patch+json"
    )
    assert again.data["metadata"]["finalizers"] == ["c/d", "a/b"]
