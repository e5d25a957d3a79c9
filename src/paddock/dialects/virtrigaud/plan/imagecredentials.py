"""The document that a provider prepares an image from, with the credentials that the image's Secrets hold.

A provider that reports `image.credentials` gets them: of `http.authentication` as a header, of a pull Secret beside the spec. No other one
gets any. Those of type qemu read the Secrets themselves, where they are.
"""

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from paddock.contract import features, specs
from paddock.contract.specs import HTTPAuthentication, VMImageSpec
from paddock.dialects.virtrigaud.plan.refusals import Refusal
from paddock.kubernetes.meta.wire import to_data

Secrets = Mapping[str, Mapping[str, bytes]]
_OWN_SECRETS = "qemu"
_DOCKER_CONFIG = ".dockerconfigjson"


def names(spec: VMImageSpec, provider_type: str, reported: Iterable[str] | None) -> tuple[str, ...]:
    """Return the names of the Secrets whose values go to a provider."""
    if provider_type == _OWN_SECRETS or not features.has(reported, features.IMAGE_CREDENTIALS):
        return ()
    block, http, registry = specs.image_block(spec.source, provider_type), spec.source.http, spec.source.registry
    if block == "registry" and registry is not None and registry.pullSecretRef is not None:
        return (registry.pullSecretRef.name,)
    given = http.authentication if block == "http" and http is not None else None
    found = (given.basicAuth or given.bearer) if given is not None else None
    return (found.secretRef.name,) if found is not None else ()


def document(spec: VMImageSpec, secrets: Secrets) -> dict[str, Any]:
    """Return the manifest of an image with the values of these Secrets; raises `Refusal` for one that lacks what it is for."""
    made: dict[str, Any] = to_data(spec)
    http, registry = spec.source.http, spec.source.registry
    if registry is not None and registry.pullSecretRef is not None and registry.pullSecretRef.name in secrets:
        name = registry.pullSecretRef.name
        del made["source"]["registry"]["pullSecretRef"]
        made["credentials"] = _login(name, secrets[name])
    if http is not None and http.authentication is not None and (word := _authorization(http.authentication, secrets)):
        block = made["source"]["http"]
        del block["authentication"]
        block["headers"] = {**(block.get("headers") or {}), "Authorization": word}
    return made


def _authorization(authentication: HTTPAuthentication, secrets: Secrets) -> str:
    basic, bearer = authentication.basicAuth, authentication.bearer
    if basic is not None and (values := secrets.get(basic.secretRef.name)) is not None:
        user, password = (_value(basic.secretRef.name, values, key) for key in (basic.usernameKey, basic.passwordKey))
        return f"Basic {base64.b64encode(b':'.join((user, password))).decode()}"
    if basic is None and bearer is not None and (values := secrets.get(bearer.secretRef.name)) is not None:
        return f"Bearer {_value(bearer.secretRef.name, values, bearer.tokenKey).decode(errors='replace').strip()}"
    return ""


def _login(name: str, values: Mapping[str, bytes]) -> dict[str, str]:
    if _DOCKER_CONFIG in values:
        return {"dockerConfig": values[_DOCKER_CONFIG].decode(errors="replace")}
    return {key: _value(name, values, key).decode(errors="replace") for key in ("username", "password")}


def _value(name: str, values: Mapping[str, bytes], key: str) -> bytes:
    if key not in values:
        raise Refusal(f"Secret {name} has no key {key}", fix="add it")
    return values[key]
