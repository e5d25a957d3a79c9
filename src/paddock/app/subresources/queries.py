"""Requests for subresources: bodies of any content type, options, and answers without a body (docs/spec/kubevirt.md 4.1)."""

from typing import Any

import orjson

from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.server import bodies
from paddock.server.edge.http import HttpRequest, HttpResponse

_JSON = (("content-type", "application/json"),)
ACCEPTED, OK = 202, 200


def options(request: HttpRequest) -> Data:
    """The body, JSON or YAML whatever its content type says; without one, no options."""
    if not request.body.strip():
        return {}
    try:
        found = bodies.read_yaml(request.body).data
    except failure.Failure as said:
        raise failure.bad_request(f"Can not unmarshal Request body to struct, error: {said.message}") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise failure.bad_request("Can not unmarshal Request body to struct, error: the body must be an object")
    return found


def needed(request: HttpRequest) -> Data:
    """The body of a request that makes no sense without one."""
    if not request.body.strip():
        raise failure.bad_request("Request with no body")
    return options(request)


def is_dry(given: Data) -> bool:
    """Return whether the request is a dry run; raise a `Failure` for any other value."""
    wish = given.get("dryRun") or []
    wish = [wish] if isinstance(wish, str) else wish
    if not isinstance(wish, list) or any(each != "All" for each in wish):
        raise failure.bad_request(f'invalid dryRun: {wish!r}: supported values: "All"')
    return bool(wish)


def seconds(given: Data, name: str) -> int | None:
    """A whole number of seconds among the options."""
    value = given.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise failure.bad_request(f"Can not unmarshal Request body to struct, error: {name} must be a whole number")
    return value


def text(given: Data, name: str) -> str:
    """A text among the options; empty when it is absent."""
    value = given.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise failure.bad_request(f"Can not unmarshal Request body to struct, error: {name} must be a text")
    return value


def accepted() -> HttpResponse:
    return HttpResponse(ACCEPTED)


def done() -> HttpResponse:
    return HttpResponse(OK)


def said(document: Any) -> HttpResponse:
    return HttpResponse(OK, orjson.dumps(document), _JSON)
