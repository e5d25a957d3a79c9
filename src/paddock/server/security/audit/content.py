"""The parts of a body that may be recorded. Secrets never are.

- Secrets, ConfigMaps, tokens, and the files and commands of guests are recorded without bodies and messages, whatever a policy says.
- Of other kinds of the program, members that are declared as secret are removed wherever their names appear, also in patches;
  with them goes the annotation in which kubectl keeps the whole last configuration.
"""

import gzip
from functools import cache
from typing import Any

import orjson

from paddock.kubernetes import catalog
from paddock.kubernetes.meta.failure import Failure
from paddock.kubernetes.schema.shape import ListShape, MapShape, ObjectShape, Shape, shape_of
from paddock.server.edge.http import HttpRequest, HttpResponse
from paddock.server.protobuf import decode as decode_protobuf
from paddock.server.resources.kubevirtsubresources import GROUP, INSTANCES
from paddock.server.routing import RequestRoute

_LARGEST = 512 * 1024
_CLOSED = frozenset(
    (
        ("", "secrets", ""),
        ("", "configmaps", ""),
        ("", "serviceaccounts", "token"),
        ("authentication.k8s.io", "tokenreviews", ""),
        ("upload.cdi.kubevirt.io", "uploadtokenrequests", ""),
        # Files of guests; commands whose input and variables may be passwords.
        (GROUP, INSTANCES, "guestfile"),
        (GROUP, INSTANCES, "guestexec"),
    )
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
REDACTED = "(secret)"


def is_closed(route: RequestRoute) -> bool:
    """Return whether the bodies and the messages of a request are never recorded."""
    return (route.group, route.plural, route.subresource) in _CLOSED or (route.group, route.plural) in (("", "secrets"), ("", "configmaps"))


def request_object(request: HttpRequest, route: RequestRoute, *, managed: bool) -> Any:
    """The body of a request as it may be recorded; None when it may not, or cannot be read."""
    return _shown(_read(request.headers.get("content-type", ""), request.body), route, managed=managed)


def response_object(response: HttpResponse, route: RequestRoute, *, managed: bool) -> Any:
    """The body of an answer as it may be recorded; None when it may not, or cannot be read."""
    if response.length > _LARGEST:
        return None
    headers = dict(response.headers)
    body = response.body
    if headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    return _shown(_read(headers.get("content-type", ""), body), route, managed=managed)


def _read(media: str, body: bytes) -> Any:
    if not body or len(body) > _LARGEST:
        return None
    try:
        return decode_protobuf(body) if "protobuf" in media else orjson.loads(body)
    except (ValueError, Failure):
        return None


def _shown(data: Any, route: RequestRoute, *, managed: bool) -> Any:
    names = secret_members(route.group, route.plural)
    if not managed and isinstance(data, dict):
        for each in (data, *(item for item in data.get("items") or () if isinstance(item, dict))):
            if isinstance(each.get("metadata"), dict):
                each["metadata"].pop("managedFields", None)
    return _redacted(data, names) if names else data


def _redacted(data: Any, names: frozenset[str]) -> Any:
    if isinstance(data, list):
        return [_redacted(each, names) for each in data]
    if not isinstance(data, dict):
        return data
    if {"op", "path"} <= data.keys() and not names.isdisjoint(str(data["path"]).split("/")):
        # An operation of a JSON patch names the member in its path.
        return {**data, "value": REDACTED} if "value" in data else data
    return {key: REDACTED if key in names else _redacted(value, names) for key, value in data.items()}


@cache
def secret_members(group: str, plural: str) -> frozenset[str]:
    """The names of members of a kind that hold secrets; empty for kinds without, and for users' own kinds."""
    for kind in catalog.facts():
        if (kind.group, kind.plural) == (group, plural):
            found: set[str] = set()
            _collect(shape_of(catalog.declaration(kind).cls), found, set())
            return frozenset((*found, _LAST_APPLIED, _LAST_APPLIED.replace("/", "~1"))) if found else frozenset()
    return frozenset()


def _collect(shape: Shape, names: set[str], seen: set[int]) -> None:
    if id(shape) in seen:
        return
    seen.add(id(shape))
    if isinstance(shape, ObjectShape):
        for name, member in shape.properties.items():
            if member.field.secret:
                names.add(name)
            else:
                _collect(member.shape, names, seen)
    elif isinstance(shape, ListShape):
        _collect(shape.item, names, seen)
    elif isinstance(shape, MapShape):
        _collect(shape.value, names, seen)
