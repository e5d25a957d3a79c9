"""ConversionReview: the question to a webhook and what makes an answer to it acceptable (docs/spec/kube-api.md section 6.1). Pure."""

from collections.abc import Sequence
from typing import Any

from paddock.base import names
from paddock.base.errors import Terminal
from paddock.base.jsondata import Data

GROUP = "apiextensions.k8s.io"
_VERSIONS = ("v1", "v1beta1")


class BadConversion(Terminal):
    """A webhook did not convert, or gave something back that is not what it was asked for."""


def question(objects: Sequence[Data], wanted: str, uid: str, understood: Sequence[str]) -> Data:
    """The review to send, in the first version that the webhook and the server both understand."""
    version = next((each for each in understood if each in _VERSIONS), None)
    if version is None:
        raise BadConversion("no supported conversion review versions")
    request = {"uid": uid, "desiredAPIVersion": wanted, "objects": list(objects)}
    return {"kind": "ConversionReview", "apiVersion": f"{GROUP}/{version}", "request": request}


def converted(asked: Data, answer: Any) -> list[Data]:
    """The objects of an answer, with the metadata that they had; raises `BadConversion`."""
    kind = kind_of(asked["request"]["objects"][0])
    try:
        found = _objects(asked, answer)
    except BadConversion as wrong:
        raise BadConversion(f"conversion webhook for {kind} failed: {wrong.what}") from None
    objects, wanted = asked["request"]["objects"], asked["request"]["desiredAPIVersion"]
    if len(found) != len(objects):
        raise BadConversion(f"conversion webhook for {kind} returned {len(found)} objects, expected {len(objects)}")
    several = len(objects) > 1
    made = []
    for index, (before, after) in enumerate(zip(objects, found, strict=True)):
        at = f" at index {index}" if several else ""
        try:
            _check_type(before, after, wanted)
        except BadConversion as wrong:
            which = "converted object" if several else "object"
            raise BadConversion(f"conversion webhook for {kind} returned invalid {which} at index {index}: {wrong.what}") from None
        try:
            _check_identity(before["metadata"], after.get("metadata"))
        except BadConversion as wrong:
            raise BadConversion(
                f"conversion webhook for {kind} returned invalid {'converted ' if several else ''}object{at}: {wrong.what}"
            ) from None
        try:
            made.append({**after, "metadata": _restored(before["metadata"], after)})
        except BadConversion as wrong:
            where = f" in object{at}" if several else ""
            raise BadConversion(f"conversion webhook for {kind} returned invalid metadata{where}: {wrong.what}") from None
    return made


def _objects(asked: Data, answer: Any) -> list[Any]:
    """Return the objects of a successful answer."""
    if not isinstance(answer, dict):
        raise BadConversion("the answer is no JSON object")
    response = answer.get("response")
    if asked["apiVersion"] == f"{GROUP}/v1":
        if (answer.get("apiVersion"), answer.get("kind")) != (asked["apiVersion"], asked["kind"]):
            raise BadConversion(f"expected webhook response of {kind_of(asked)}, got {kind_of(answer)}")
        if not isinstance(response, dict):
            raise BadConversion("no response provided")
        wanted, got = asked["request"]["uid"], response.get("uid") or ""
        if got != wanted:
            raise BadConversion(f'expected response.uid="{wanted}", got "{got}"')
    if not isinstance(response, dict):
        raise BadConversion("no response provided")
    result = response.get("result")
    result = result if isinstance(result, dict) else {}
    if result.get("status") != "Success":
        raise BadConversion(result.get("message") or f"response.result.status was '{result.get('status') or ''}', not 'Success'")
    found = response.get("convertedObjects") or []
    if not isinstance(found, list):
        raise BadConversion("response.convertedObjects is no list")
    return found


def kind_of(data: Any) -> str:
    """Group, version and kind, as error messages write them."""
    return f"{data.get('apiVersion') or '/'}, Kind={data.get('kind') or ''}"


def _check_type(before: Data, after: Any, wanted: str) -> None:
    if not isinstance(after, dict):
        raise BadConversion("it is no JSON object")
    if after.get("apiVersion") != wanted:
        raise BadConversion(f"invalid groupVersion (expected {wanted}, received {after.get('apiVersion') or ''})")
    if after.get("kind") != before["kind"]:
        raise BadConversion(f"invalid kind (expected {before['kind']}, received {after.get('kind') or ''})")


def _check_identity(before: Data, after: Any) -> None:
    after = after if isinstance(after, dict) else {}
    for key, name in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        if (after.get(key) or "") != (before.get(key) or ""):
            raise BadConversion(f"must have the same {name}: {before.get(key) or ''} != {after.get(key) or ''}")


def _restored(before: Data, after: Data) -> Data:
    """Labels and annotations are the webhook's, all other metadata is what it was."""
    if "metadata" not in after:
        raise BadConversion("missing metadata in converted object")
    metadata = after["metadata"]
    if not isinstance(metadata, dict):
        raise BadConversion("invalid metadata in converted object")
    made = {key: value for key, value in before.items() if key not in ("labels", "annotations")}
    for key in ("labels", "annotations"):
        found = metadata.get(key)
        if found is None:
            continue
        if not isinstance(found, dict):
            raise BadConversion(f"invalid metadata.{key} in converted object")
        for name, value in found.items():
            if not isinstance(value, str):
                raise BadConversion(f"metadata.{key}[{name}] must be a string in converted object")
        if found != before.get(key):
            _check_keys(key, found)
        made[key] = found
    return made


def _check_keys(word: str, found: Data) -> None:
    for key, value in found.items():
        if not names.is_qualified(key if word == "labels" else key.lower()):
            raise BadConversion(f'metadata.{word}: Invalid value: "{key}": is no qualified name')
        if word == "labels" and not names.is_label_value(value):
            raise BadConversion(f'metadata.labels: Invalid value: "{value}": is no value of a label')
