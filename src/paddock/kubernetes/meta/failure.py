"""Failures of an API request in Kubernetes' form: code, reason, details, and a `Status` object on the wire.

Clients decide by reason first and code second, and test suites match on texts; docs/spec/kube-api.md section 2.12 is the table.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from paddock.kubernetes.schema.finding import Finding


class StatusCause(msgspec.Struct, frozen=True):
    """One entry of `details.causes`."""

    reason: str
    message: str
    field: str = ""


class FailureTarget(msgspec.Struct, frozen=True):
    """The object of a failure. `kind` is the plural resource, for Invalid the Kind."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""

    @property
    def qualified(self) -> str:
        """`virtualmachines.kubevirt.io`, or `secrets` in the core group."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


class Failure(Exception):
    """A request that is answered with a Status of failure."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        about: FailureTarget | None = None,
        causes: Iterable[StatusCause] = (),
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.about = about
        self.causes = tuple(causes)
        self.retry_after = retry_after
        # a continue token that a client may go on with (410 of a list)
        self.continue_token = ""

    def to_status(self) -> dict[str, Any]:
        """The Status object of the answer."""
        status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message}
        if self.continue_token:
            status["metadata"] = {"continue": self.continue_token}
        if self.reason:
            status["reason"] = self.reason
        details = self._details()
        if details:
            status["details"] = details
        status["code"] = self.code
        return status

    def _details(self) -> dict[str, Any]:
        details: dict[str, Any] = {}
        if self.about is not None:
            details = {key: value for key in ("name", "group", "kind", "uid") if (value := getattr(self.about, key))}
        if self.causes:
            details["causes"] = [
                {key: value for key in ("reason", "message", "field") if (value := getattr(cause, key))} for cause in self.causes
            ]
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        return details


def not_found(about: FailureTarget) -> Failure:
    return Failure(404, "NotFound", f'{about.qualified} "{about.name}" not found', about=about)


def no_such_path() -> Failure:
    """Nothing is served there."""
    return Failure(404, "NotFound", "the server could not find the requested resource", about=FailureTarget())


def already_exists(about: FailureTarget, *, terminating: bool = False) -> Failure:
    text = f'{about.qualified} "{about.name}" already exists'
    return Failure(409, "AlreadyExists", f"object is being deleted: {text}" if terminating else text, about=about)


def conflict(about: FailureTarget, why: str) -> Failure:
    """The object is not as the writer believed."""
    return Failure(409, "Conflict", f'Operation cannot be fulfilled on {about.qualified} "{about.name}": {why}', about=about)


def modified(about: FailureTarget) -> Failure:
    """The object has a newer resourceVersion than the writer read."""
    return conflict(about, "the object has been modified; please apply your changes to the latest version and try again")


def invalid(about: FailureTarget, findings: Iterable[Finding]) -> Failure:
    """The object breaks its schema or a rule; `about.kind` is the Kind."""
    found = tuple(findings)
    causes = [StatusCause(each.cause.value, each.message, each.field) for each in found]
    texts = [each.full_message for each in found]
    said = texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"
    return Failure(422, "Invalid", f'{about.qualified} "{about.name}" is invalid: {said}', about=about, causes=causes)


def forbidden(about: FailureTarget, why: str, causes: Iterable[StatusCause] = ()) -> Failure:
    """The caller may not, or nobody may now."""
    what = f'{about.qualified} "{about.name}"' if about.name else about.qualified
    return Failure(403, "Forbidden", f"{what} is forbidden: {why}", about=about, causes=causes)


def bad_request(message: str) -> Failure:
    """The request makes no sense."""
    return Failure(400, "BadRequest", message)


def unauthorized() -> Failure:
    """No credential, or one that is not accepted."""
    return Failure(401, "Unauthorized", "Unauthorized")


def method_not_allowed(message: str = "the server does not allow this method on the requested resource") -> Failure:
    """The verb is not served here."""
    return Failure(405, "MethodNotAllowed", message, about=FailureTarget())


def not_acceptable(types: Iterable[str]) -> Failure:
    """Nothing the client accepts can be made."""
    return Failure(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(types)}")


def unsupported_media_type(types: Iterable[str]) -> Failure:
    """The body is of a type that is not read here."""
    text = f"the body of the request was in an unknown format - accepted media types include: {', '.join(types)}"
    return Failure(415, "UnsupportedMediaType", text)


def too_large(limit: int) -> Failure:
    """The body is over the limit."""
    return Failure(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def expired(message: str) -> Failure:
    """The history asked for is gone."""
    return Failure(410, "Expired", message)


def future_revision(asked: int, current: int) -> Failure:
    """A revision that does not exist yet."""
    text = f"Timeout: Too large resource version: {asked}, current: {current}"
    cause = StatusCause("ResourceVersionTooLarge", "Too large resource version")
    return Failure(504, "Timeout", text, about=FailureTarget(), causes=[cause], retry_after=1)


def late() -> Failure:
    """The request took longer than it may."""
    text = "Timeout: request did not complete within the allotted timeout"
    return Failure(504, "Timeout", text, about=FailureTarget(), causes=[StatusCause("", text)])


def unanswered(why: str) -> Failure:
    """Somebody whom the server asked did not answer in time; what became of the request is not known."""
    return Failure(504, "Timeout", why, about=FailureTarget(), causes=[StatusCause("", why)])


def too_many_requests(retry_after: int = 1) -> Failure:
    """More than the server takes from this client now."""
    text = "The server has received too many requests and has asked us to try again later"
    return Failure(429, "TooManyRequests", text, about=FailureTarget(), retry_after=retry_after)


def unavailable(why: str, retry_after: int = 1) -> Failure:
    """The server cannot do it now and expects to later."""
    return Failure(503, "ServiceUnavailable", why, about=FailureTarget(), retry_after=retry_after)


def internal(why: str) -> Failure:
    """A defect of the server."""
    return Failure(500, "InternalError", f"Internal error occurred: {why}", about=FailureTarget(), causes=[StatusCause("", why)])
