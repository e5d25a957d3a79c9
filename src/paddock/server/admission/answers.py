"""Reading what a webhook answered. Pure."""

from typing import Any

import msgspec
import orjson

from paddock.base import base64data
from paddock.base.jsondata import Data
from paddock.kubernetes.meta import failure
from paddock.kubernetes.meta.failure import Failure, FailureTarget, StatusCause
from paddock.server.webhooks import WebhookReply


class CannotAsk(Exception):
    """A webhook was not reached or not understood; its failure policy says what follows."""


class WebhookAnswer(msgspec.Struct, frozen=True):
    """The answer of a webhook."""

    allowed: bool
    status: Data
    # operations of a JSON patch
    patch: tuple[Any, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: dict[str, str] = {}


def read(answered: WebhookReply, uid: str, version: str, *, mutating: bool) -> WebhookAnswer:
    """The verdict in an answer; raises `CannotAsk`."""
    if not 200 <= answered.status < 300:
        raise CannotAsk(f"failed to call webhook: {_refused(answered)}")
    try:
        review = orjson.loads(answered.body)
    except orjson.JSONDecodeError as error:
        raise CannotAsk(f"failed to call webhook: couldn't get version/kind; json parse error: {error}") from None
    response = review.get("response") if isinstance(review, dict) else None
    if not isinstance(response, dict):
        raise CannotAsk("received invalid webhook response: webhook response was absent")
    if version == "v1":
        _check_envelope(review, response, uid)
    patch = _patch(response, version, mutating=mutating)
    try:
        notes = msgspec.convert(response.get("auditAnnotations") or {}, dict[str, str])
        warnings = msgspec.convert(response.get("warnings") or [], tuple[str, ...])
        status = msgspec.convert(response.get("status") or {}, dict[str, Any])
    except msgspec.ValidationError as error:
        raise CannotAsk(f"failed to call webhook: json: {error}") from None
    return WebhookAnswer(response.get("allowed") is True, status, patch, warnings, notes)


def _refused(answered: WebhookReply) -> str:
    text = answered.body[:2048].decode(errors="replace").strip()
    try:
        said = orjson.loads(answered.body)
    except orjson.JSONDecodeError:
        said = None
    if isinstance(said, dict) and said.get("kind") == "Status" and said.get("message"):
        return str(said["message"])
    if 300 <= answered.status < 400:
        return f"the webhook answers with a redirect ({answered.status}), and redirects are not followed; give its final address"
    if answered.status == 404:
        return "the server could not find the requested resource"
    if answered.status >= 500:
        return f'an error on the server ("{text}") has prevented the request from succeeding'
    return "the server rejected our request for an unknown reason"


def _check_envelope(review: Data, response: Data, uid: str) -> None:
    if response.get("uid") != uid:
        raise CannotAsk(f'received invalid webhook response: expected response.uid="{uid}", got "{response.get("uid") or ""}"')
    if (review.get("apiVersion"), review.get("kind")) != ("admission.k8s.io/v1", "AdmissionReview"):
        got = f"{review.get('apiVersion') or ''}, Kind={review.get('kind') or ''}"
        wanted = "admission.k8s.io/v1, Kind=AdmissionReview"
        raise CannotAsk(f"received invalid webhook response: expected webhook response of {wanted}, got {got}")


def _patch(response: Data, version: str, *, mutating: bool) -> tuple[Any, ...]:
    text, kind = response.get("patch"), response.get("patchType")
    invalid = "received invalid webhook response:"
    if not mutating:
        for member, value in (("patch", text), ("patchType", kind)):
            if value and version == "v1":
                raise CannotAsk(f"{invalid} validating webhook may not return response.{member}")
        return ()
    if version == "v1" and text and kind is None:
        raise CannotAsk(f"{invalid} webhook returned response.patch but not response.patchType")
    if version == "v1" and kind is not None and not text:
        raise CannotAsk(f"{invalid} webhook returned response.patchType but not response.patch")
    if not text:
        return ()
    try:
        operations = orjson.loads(base64data.decode(text))
    except (ValueError, TypeError, AttributeError) as error:
        raise CannotAsk(f"received undecodable patch in webhook response: {error}") from None
    if not isinstance(operations, list):
        raise CannotAsk("received undecodable patch in webhook response: it must be a list of operations")
    if operations and version == "v1" and kind != "JSONPatch":
        raise CannotAsk(f'unsupported patch type "{kind}"')
    return tuple(operations)


def refusal(name: str, status: Data) -> Failure:
    """The failure that a denial becomes: the webhook's own status, with its name in front."""
    denied = f'admission webhook "{name}" denied the request'
    message, reason, code = status.get("message"), status.get("reason") or "", status.get("code")
    text = f"{denied}: {message or reason}" if message or reason else f"{denied} without explanation"
    given = status.get("details")
    details: Data = given if isinstance(given, dict) else {}
    about = FailureTarget(**{key: str(details.get(key) or "") for key in ("name", "group", "kind", "uid")})
    causes = [
        StatusCause(str(each.get("reason") or ""), str(each.get("message") or ""), str(each.get("field") or ""))
        for each in details.get("causes") or ()
        if isinstance(each, dict)
    ]
    return Failure(code if isinstance(code, int) and code >= 400 else 400, str(reason), text, about=about, causes=causes)


def out_of_reach(name: str, why: str) -> Failure:
    """The failure of a request whose webhook could not be asked and must be."""
    return failure.internal(f'failed calling webhook "{name}": {why}')


def no_dry_run(name: str) -> Failure:
    """The failure of a dry run that a webhook would not leave without effect."""
    return failure.bad_request(f'admission webhook "{name}" does not support dry run')
