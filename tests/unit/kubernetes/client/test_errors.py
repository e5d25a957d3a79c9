"""Errors of answers, and what is tried again by itself."""

import random
from typing import Any

import orjson
import pytest

from paddock.base.backoff import Backoff
from paddock.base.errors import PaddockError, Terminal, Transient
from paddock.kubernetes.client import errors
from paddock.kubernetes.client.retrying import Retries, pause
from paddock.kubernetes.meta import failure
from paddock.kubernetes.meta.failure import Failure, FailureTarget
from paddock.kubernetes.schema import finding

ABOUT = FailureTarget(name="a", kind="configmaps")


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        (failure.not_found(ABOUT), errors.NotFound),
        (failure.no_such_path(), errors.NotFound),
        (failure.already_exists(ABOUT), errors.AlreadyExists),
        (failure.modified(ABOUT), errors.Conflict),
        (failure.invalid(ABOUT, [finding.required(("spec",), "x")]), errors.Invalid),
        (failure.forbidden(ABOUT, "no"), errors.Forbidden),
        (failure.bad_request("no"), errors.BadRequest),
        (failure.unauthorized(), errors.Unauthorized),
        (failure.method_not_allowed(), errors.MethodNotAllowed),
        (failure.too_large(3), errors.TooLarge),
        (failure.expired("old"), errors.Expired),
        (failure.future_revision(9, 3), errors.Unavailable),
        (failure.too_many_requests(3), errors.TooManyRequests),
        (failure.unavailable("disk"), errors.Unavailable),
        (failure.internal("x"), errors.Unavailable),
        (failure.not_acceptable(["a"]), errors.OtherStatus),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_every_failure_of_the_server_has_its_type(said: Failure, wanted: type[errors.ApiError]) -> None:
    found = errors.error_of(said.code, orjson.dumps(said.to_status()))
    assert type(found) is wanted
    assert (found.code, found.reason, str(found)) == (said.code, said.reason, said.message)
    assert found.retry_after == said.retry_after
    assert isinstance(found, Transient | Terminal)


@pytest.mark.parametrize(
    ("code", "body", "wanted", "text"),
    [
        (404, b"404 page not found\n", errors.NotFound, "404 page not found"),
        (502, b"<html>Bad Gateway</html>", errors.Unavailable, "<html>Bad Gateway</html>"),
        (418, b"", errors.OtherStatus, "the server answered 418"),
        (0, b'{"code": 410, "reason": "Gone"}', errors.Expired, "the server answered 410"),
        (409, b'{"reason": "SomethingNew"}', errors.Conflict, "the server answered 409"),
        (500, b"\xff\xfe", errors.Unavailable, "\ufffd\ufffd"),
    ],
)
def test_answers_that_are_no_status(code: int, body: bytes, wanted: type[errors.ApiError], text: str) -> None:
    found = errors.error_of(code, body)
    assert (type(found), str(found)) == (wanted, text)


def test_causes_and_tokens() -> None:
    said = failure.invalid(ABOUT, [finding.required(("spec", "x"), "x"), finding.invalid(("y",), 3, "is wrong", "x")])
    found = errors.error_of(422, orjson.dumps(said.to_status()))
    assert found.causes == {"spec.x": "Required value", "y": "Invalid value: 3: is wrong"}
    old = failure.expired("old")
    old.continue_token = "go on"
    assert errors.error_of(410, orjson.dumps(old.to_status())).continue_token == "go on"


BUSY = errors.error_of(429, b"", "7")
NEVER_SENT = errors.Unreachable("refused", sent=False)
LOST = errors.Unreachable("lost", sent=True)
DOWN = errors.error_of(503, b"", "2")
RETRIES = Retries(backoff=Backoff(first=1, longest=10, jitter=0))


@pytest.mark.parametrize(
    ("error", "reads", "writes"),
    [
        (BUSY, 7, 7),
        (NEVER_SENT, 1, 1),
        (LOST, 1, None),
        (DOWN, 2, None),
        (errors.error_of(429, b""), 1, 1),
        (errors.error_of(503, b""), None, None),
        (errors.error_of(500, b""), None, None),
        (errors.error_of(429, b"", "600"), None, None),
        (errors.TimedOut("slow", sent=True), None, None),
        (errors.error_of(409, b'{"reason": "Conflict"}', "1"), None, None),
        (errors.BadAccess("x"), None, None),
    ],
)
def test_only_what_cannot_happen_twice_is_repeated(error: PaddockError, reads: float | None, writes: float | None) -> None:
    class Least(random.Random):
        def uniform(self, a: float, b: float) -> Any:
            return a

    for asks, wanted in ((True, reads), (False, writes)):
        assert pause(error, reads=asks, attempt=1, retries=RETRIES, chance=Least()) == wanted
        assert pause(error, reads=asks, attempt=5, retries=RETRIES, chance=Least()) is None
