"""Reading request bodies: JSON and YAML with every repeated key noticed, protobuf for built-in kinds."""

import json
from typing import Any

import msgspec
import orjson

from paddock.kubernetes.meta import failure
from paddock.server import protobuf
from paddock.server.edge.http import HttpRequest

_YAML = ("application/yaml", "text/yaml", "application/x-yaml", "application/apply-patch+yaml")
_PROTOBUF = "application/vnd.kubernetes.protobuf"
READ_TYPES = ("application/json", "application/yaml", _PROTOBUF)
# Deeper nesting is not read: every algorithm behind this point recurses.
_DEEPEST = 200


class Body(msgspec.Struct, frozen=True):
    """A decoded body and the fields that stand twice in it."""

    data: Any
    repeated: tuple[str, ...] = ()
    # the same as lines of the text and keys
    repeated_at: tuple[tuple[int, str], ...] = ()


def media_type(request: HttpRequest) -> str:
    """The media type of the body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def read_object(request: HttpRequest) -> Body:
    """The object in a body; raises a `Failure`."""
    media = media_type(request)
    if media == _PROTOBUF:
        decoded = protobuf.decode(request.body)
        check_depth(decoded)
        return Body(decoded)
    if media in _YAML:
        body = read_yaml(request.body)
    elif media in ("application/json", ""):
        body = read_json(request.body)
    else:
        raise failure.unsupported_media_type(READ_TYPES)
    if not isinstance(body.data, dict):
        raise failure.bad_request("couldn't get version/kind; json parse error: the body must be an object")
    if not isinstance(body.data.get("metadata") or {}, dict):
        raise failure.bad_request("json: cannot unmarshal into Go struct field .metadata: must be an object")
    return body


def read_json(text: bytes) -> Body:
    """JSON, with the fields that stand twice."""
    try:
        data = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise failure.bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    return _read(text, data)


def _read(text: bytes, data: Any) -> Body:
    # What has fewer brackets than that is not nested deeper, and most bodies have. The many empty ones of managedFields hold nothing.
    opened = text.count(b"{") + text.count(b"[")
    if opened >= _DEEPEST and opened - text.count(b"{}") >= _DEEPEST:
        check_depth(data)
    # Only a repeated key needs its place.
    if _has_each_key_once(text, orjson.dumps(data)) or not _repeats(text):
        return Body(data)
    repeated = _repeated(text)
    return Body(data, repeated.repeated, repeated.repeated_at)


def _has_each_key_once(text: bytes, encoded: bytes) -> bool:
    """Return True if no key is repeated, as far as a comparison with `encoded` shows; False proves nothing.

    `encoded` is the parsed text, encoded again, so it has each key once. Most clients write as the encoder does. For the others, colons
    are counted: every key has one, and those inside strings count on both sides, unless they are escaped.
    """
    if text.strip() == encoded:
        return True
    return text.count(b":") == encoded.count(b":") and b"\\u003a" not in text and b"\\u003A" not in text


class _Twice(Exception):
    """A key stands twice in one object."""


def _unique(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) != len(pairs):
        raise _Twice


def _repeats(text: bytes) -> bool:
    """Return whether any key stands twice in one object."""
    try:
        json.loads(text, object_pairs_hook=_unique)
    except _Twice:
        return True
    except (ValueError, RecursionError):
        # One reader takes what another does not (a number of a million digits, say): nothing is known of its keys.
        return False
    return False


def read_yaml(text: bytes) -> Body:
    """The first document of YAML, with the fields that stand twice. Most clients send JSON under this name."""
    try:
        data = orjson.loads(text) if text[:1] == b"{" else None
    except orjson.JSONDecodeError:
        data = None
    return _read_yaml(text) if data is None else _read(text, data)


def _read_yaml(text: bytes) -> Body:
    # Deliberately late: clients send JSON, and reading YAML with all its places is a large piece of program.
    from paddock.server import yamlbodies  # noqa: PLC0415

    return Body(*yamlbodies.read(text))


def _repeated(text: bytes) -> Body:
    try:
        return _read_yaml(text)
    except failure.Failure:
        # JSON that the careful reader does not take, though it is JSON (huge numbers, say): nothing is known of its keys.
        return Body({})


def check_depth(data: Any) -> None:
    """Refuse what is nested too deep, without recursing into it."""
    level = [data]
    for _ in range(_DEEPEST):
        level = [child for place in level for child in _children(place)]
        if not level:
            return
    raise failure.bad_request(f"json parse error: nested deeper than {_DEEPEST} levels")


def _children(place: Any) -> list[Any]:
    if isinstance(place, dict):
        return [child for child in place.values() if isinstance(child, dict | list)]
    return [child for child in place if isinstance(child, dict | list)] if isinstance(place, list) else []
