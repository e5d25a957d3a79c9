"""Images that not everybody may have: the user's Secret under the names that CDI reads."""

import base64
import json
from typing import Any

import msgspec
import pytest

from paddock.dialects.virtrigaud.translate import MissingReference
from tests.unit.dialects.virtrigaud.translate.making import Made, Scene, at, made, plain, secret

URL = "https://images.example.com/a.img"
SOURCE = "spec.dataVolumeTemplates.0.spec.source"


def by_http(url: str = URL, **authentication: Any) -> dict[str, Any]:
    return {"VMImage": {".source": {"http": {"url": url, "authentication": authentication}}}}


def source(result: Made) -> Any:
    return at(plain(result.machine), SOURCE)


def basic(**keys: str) -> dict[str, Any]:
    return by_http(basicAuth={"secretRef": {"name": "login"}, **keys})


def test_user_and_password_are_copied() -> None:
    result = made(basic(), secret("login", username="emma", password="s3cret", other="x"))
    assert source(result) == {"http": {"url": URL, "secretRef": "web-image"}}
    assert result.secrets == {"web-image": {"accessKeyId": b"emma", "secretKey": b"s3cret"}}
    told = json.loads((result.resources[0].metadata.annotations or {})["virtrigaud.io/secret"])
    assert told == {"name": "login", "basicAuth": {"usernameKey": "username", "passwordKey": "password"}}
    assert result.losses == ()


def test_under_keys_of_their_own() -> None:
    result = made(basic(usernameKey="u", passwordKey="p"), secret("login", u="emma", p="s3cret"))
    assert result.secrets == {"web-image": {"accessKeyId": b"emma", "secretKey": b"s3cret"}}


def test_a_secret_that_cdi_reads_is_named() -> None:
    result = made(basic(usernameKey="accessKeyId", passwordKey="secretKey"), secret("login", accessKeyId="emma", secretKey="s"))
    assert source(result) == {"http": {"url": URL, "secretRef": "login"}}
    assert result.secrets == {}


def test_a_token_becomes_a_header() -> None:
    result = made(by_http(bearer={"secretRef": {"name": "login"}, "tokenKey": "t"}), secret("login", t="abc\n"))
    assert source(result) == {"http": {"url": URL, "secretExtraHeaders": ["web-image"]}}
    assert result.secrets == {"web-image": {"authorization": b"Authorization: Bearer abc"}}


def test_a_client_certificate() -> None:
    plainly = made(by_http(clientCert={"secretRef": {"name": "login"}}), secret("login", **{"tls.crt": "c", "tls.key": "k"}))
    part = {"secretRef": {"name": "login"}}
    assert source(plainly) == {"http": {"url": URL, "certConfig": {"cert": part, "key": part}}}
    keys = {"certKey": "c", "keyKey": "k"}
    copied = made(by_http(clientCert={"secretRef": {"name": "login"}, **keys}), secret("login", c="cert", k="key"))
    assert copied.secrets == {"web-image": {"tls.crt": b"cert", "tls.key": b"key"}}
    assert at(source(copied), "http.certConfig.cert.secretRef.name") == "web-image"


def test_a_client_certificate_needs_https() -> None:
    result = made(by_http("http://images.example.com/a.img", clientCert={"secretRef": {"name": "login"}}), secret("login"))
    assert result.lost() == [("VMImage/debian", "spec.source.http.authentication.clientCert")]
    assert at(source(result), "http.certConfig") is None


@pytest.mark.parametrize(
    ("way", "field", "named"),
    [
        ("basicAuth", ".basicAuth.secretRef.name", True),
        ("bearer", ".bearer", False),
        ("clientCert", None, True),
    ],
)
def test_the_secret_is_not_there(way: str, field: str | None, named: bool) -> None:
    authentication: dict[str, Any] = {way: {"secretRef": {"name": "login"}}}
    changes = by_http(**authentication)
    result = made(changes)
    assert result.lost() == ([("VMImage/debian", f"spec.source.http.authentication{field}")] if field else [])
    assert ("login" in str(source(result))) is named
    if field is not None:
        with pytest.raises(MissingReference) as caught:
            Scene(changes).translated(complete=True)
        assert (caught.value.kind, caught.value.name) == ("Secret", "login")


def test_credentials_of_an_image_elsewhere() -> None:
    """They are in the image's namespace, where the machine's import cannot read them, so that they are copied."""
    changes = {
        "VirtualMachine": {".imageRef.namespace": "infra"},
        "VMImage": {"metadata.namespace": "infra", **basic(usernameKey="accessKeyId", passwordKey="secretKey")["VMImage"]},
    }
    there = secret("login", accessKeyId="emma", secretKey="s")
    result = made(changes, in_namespace(there, "infra"))
    assert at(source(result), "http.secretRef") == "web-image"
    assert result.secrets == {"web-image": {"accessKeyId": b"emma", "secretKey": b"s"}}
    assert made(changes, there).lost() != []


def in_namespace(resource: Any, namespace: str) -> Any:
    return msgspec.structs.replace(resource, metadata=msgspec.structs.replace(resource.metadata, namespace=namespace))


AUTH = base64.b64encode(b"emma:s3cret").decode()
PULL = {"VMImage": {".source": {"registry": {"image": "quay.io/a/b:c", "pullSecretRef": {"name": "pull"}}}}}


@pytest.mark.parametrize(
    "values",
    [
        {".dockerconfigjson": json.dumps({"auths": {"quay.io": {"auth": AUTH}}})},
        {".dockerconfigjson": json.dumps({"auths": {"https://quay.io/v2/": {"username": "emma", "password": "s3cret"}}})},
        {"username": "emma", "password": "s3cret"},
    ],
)
def test_a_pull_secret(values: dict[str, str]) -> None:
    result = made(PULL, secret("pull", **values))
    assert source(result) == {"registry": {"url": "docker://quay.io/a/b:c", "secretRef": "web-image"}}
    assert result.secrets == {"web-image": {"accessKeyId": b"emma", "secretKey": b"s3cret"}}
    assert result.losses == ()


@pytest.mark.parametrize(
    "values",
    [
        {".dockerconfigjson": json.dumps({"auths": {"docker.io": {"auth": AUTH}}})},
        {".dockerconfigjson": json.dumps({"auths": {"quay.io": {"auth": "%%%"}}})},
        {".dockerconfigjson": json.dumps({"auths": {"quay.io": {"auth": base64.b64encode(b"emma").decode()}}})},
        {".dockerconfigjson": "nonsense"},
        {".dockerconfigjson": "[]"},
        {},
    ],
)
def test_a_pull_secret_without_a_login_for_the_registry(values: dict[str, str]) -> None:
    result = made(PULL, secret("pull", **values))
    assert result.lost() == [("VMImage/debian", "spec.source.registry.pullSecretRef")]
    assert source(result) == {"registry": {"url": "docker://quay.io/a/b:c"}}


def test_a_pull_secret_that_cdi_reads_or_that_is_not_there() -> None:
    named = {"registry": {"url": "docker://quay.io/a/b:c", "secretRef": "pull"}}
    assert source(made(PULL, secret("pull", accessKeyId="a", secretKey="b"))) == named
    absent = made(PULL)
    assert source(absent) == named
    assert absent.lost() == [("VMImage/debian", "spec.source.registry.pullSecretRef")]


def test_secrets_are_not_told() -> None:
    result = made(PULL, secret("pull", **{".dockerconfigjson": json.dumps({"auths": {"docker.io": {"auth": AUTH}}})}))
    assert AUTH not in str(result.losses)
