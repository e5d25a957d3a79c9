"""Errors of a request. Each type says whether a retry can help; an `ApiError` is an answer of the server, the others are not."""

import re
from typing import Any

import msgspec

from paddock.base.errors import PaddockError, Terminal, Transient

# The words of every Kubernetes API server since 1.12, which has no other form of them.
_REFUSED = re.compile(r'User "([^"]*)" cannot (\S+) resource "([^"]*)" in API group "([^"]*)"(?: in the namespace "([^"]*)")?')

# What an API server answers to an object that it cannot apply: the kind, and one field or several.
_UNTYPED = re.compile(r"failed to create typed patch object \([^;]*; (\S+), Kind=(\w+)\).*field not declared in schema", re.DOTALL)
_UNDECLARED = re.compile(r"\.(\S+): field not declared in schema")


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """The parts of a Status that decide something."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


class ApiError(PaddockError):
    """The server answered that it did not do it."""

    def __init__(self, code: int, said: StatusDetails, retry_after: float | None = None) -> None:
        super().__init__(said.message or f"the server answered {code}")
        self.code = code
        self.reason = said.reason
        self.details = said.details or {}
        # seconds; None when the server did not invite to try again
        self.retry_after = retry_after
        # of an expired continue token: one to go on with, inconsistently
        self.continue_token = str((said.metadata or {}).get("continue") or "")

    @property
    def causes(self) -> dict[str, str]:
        """The causes of the error, by field."""
        return {cause.get("field", ""): cause.get("message", "") for cause in self.details.get("causes") or ()}


class BadRequest(ApiError, Terminal):
    """The request makes no sense to the server."""


class Unauthorized(ApiError, Terminal):
    """The credentials are not accepted."""


class Forbidden(ApiError, Terminal):
    """The user may not, or nobody may now."""


class QuotaExceeded(Forbidden):
    """A quota of the namespace has no room. Controllers try again as for a transient error: what others delete makes room."""

    @property
    def users(self) -> tuple[str, ...]:
        """The objects that use most of the quota; only Paddock's server names them."""
        return tuple(cause.get("message", "") for cause in self.details.get("causes") or () if cause.get("reason") == "QuotaUser")


class RefusedRight(msgspec.Struct, frozen=True):
    """A right on a resource that a user lacks. Without a namespace it is one at the cluster scope."""

    user: str
    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""

    @property
    def text(self) -> str:
        resource = ".".join(filter(None, (self.resource, self.group))) + (f"/{self.subresource}" if self.subresource else "")
        where = f'in namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        return f"cannot {self.verb} {resource} {where}"

    @property
    def path(self) -> str:
        """The resource with its subresource, as roles name it."""
        return "/".join(filter(None, (self.resource, self.subresource)))

    @property
    def fix(self) -> str:
        """The right to grant, and how."""
        group = f'API group "{self.group}"' if self.group else "the core API group"
        kind = f'a Role in namespace "{self.namespace}" or a ClusterRole' if self.namespace else "a ClusterRole"
        return f'grant {self.user} the verb "{self.verb}" on {self.path} of {group} with {kind}'


class MissingRight(Forbidden):
    """The user has no right to this; `right` is what to grant."""

    def __init__(self, code: int, said: StatusDetails, right: RefusedRight, retry_after: float | None = None) -> None:
        super().__init__(code, said, retry_after)
        self.right = right
        self.fix = right.fix


class NotFound(ApiError, Terminal):
    """The object, or the kind, is not there."""


class MethodNotAllowed(ApiError, Terminal):
    """The verb is not served for this kind."""


class Conflict(ApiError, Transient):
    """Somebody else was faster, or owns a field: read again and decide again."""


class AlreadyExists(ApiError, Terminal):
    pass


class Expired(ApiError, Transient):
    """The history or the page that was asked for is gone: list again."""


class Invalid(ApiError, Terminal):
    """The object breaks its schema or a rule; `causes` tells which."""


class UndeclaredFields(ApiError, Terminal):
    """The object has fields that its kind on this server lacks, as that of an older release does. Nothing was written."""

    def __init__(self, code: int, kind: str, version: str, fields: tuple[str, ...]) -> None:
        super().__init__(code, StatusDetails(f"{kind} of {version} does not have {', '.join(fields)} on this server"))
        self.kind = kind
        self.version = version
        self.fields = fields
        self.fix = f"remove these fields, or update what serves {version.rpartition('/')[0] or 'the core group'}"


class TooLarge(ApiError, Terminal):
    """The body is over the server's limit."""


class TooManyRequests(ApiError, Transient):
    """The server did not begin; it takes the request later."""


class Unavailable(ApiError, Transient):
    """The server cannot now: overload, a lost store, a shutdown, a defect."""


class OtherStatus(ApiError, Terminal):
    """An answer that has no type of its own."""


class Unreachable(Transient):
    """No answer. `sent` tells whether the server may have begun all the same."""

    def __init__(self, what: str, *, why: str = "", sent: bool, fix: str = "") -> None:
        super().__init__(what, why=why, fix=fix)
        self.sent = sent


class TimedOut(Unreachable):
    pass


class BadAnswer(Terminal):
    """The server sent what no API server sends."""


class BadAccess(Terminal):
    """A kubeconfig, a ServiceAccount's files or a credential cannot be used."""


_BY_REASON: dict[str, type[ApiError]] = {
    "BadRequest": BadRequest,
    "Unauthorized": Unauthorized,
    "Forbidden": Forbidden,
    "NotFound": NotFound,
    "MethodNotAllowed": MethodNotAllowed,
    "Conflict": Conflict,
    "AlreadyExists": AlreadyExists,
    "Expired": Expired,
    "Gone": Expired,
    "Invalid": Invalid,
    "RequestEntityTooLarge": TooLarge,
    "TooManyRequests": TooManyRequests,
    "ServerTimeout": Unavailable,
    "Timeout": Unavailable,
    "ServiceUnavailable": Unavailable,
    "InternalError": Unavailable,
}
_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    409: Conflict,
    410: Expired,
    413: TooLarge,
    422: Invalid,
    429: TooManyRequests,
}
_LONGEST_TEXT = 500


def error_of(code: int, body: bytes, retry_after: str = "") -> ApiError:
    """The error of an answer: by the reason of its Status, else by its code."""
    try:
        said = msgspec.json.decode(body, type=StatusDetails)
    except msgspec.MsgspecError:
        # A proxy, or a server before it is one: the beginning of its text is all there is to tell.
        said = StatusDetails(message=body[:_LONGEST_TEXT].decode(errors="replace").strip())
    code = code if code >= 400 else said.code
    wait = float(retry_after) if retry_after.isdecimal() else _said_wait(said)
    if code == 403 and (right := _refused_right(said)) is not None:
        return MissingRight(code, said, right, wait)
    if code == 403 and "exceeded quota: " in said.message:
        return QuotaExceeded(code, said, wait)
    if typed := _UNTYPED.search(said.message):
        return UndeclaredFields(code, typed[2], typed[1], tuple(dict.fromkeys(_UNDECLARED.findall(said.message))))
    found = _BY_REASON.get(said.reason) or _BY_CODE.get(code) or (Unavailable if code >= 500 else OtherStatus)
    return found(code, said, wait)


def _refused_right(said: StatusDetails) -> RefusedRight | None:
    """Return the right that an authorizer refused; None for the refusals of quotas, policies and webhooks."""
    found = _REFUSED.search(said.message)
    if found is None:
        return None
    user, verb, path, group, namespace = found.groups()
    resource, _, subresource = path.partition("/")
    name = str((said.details or {}).get("name") or "")
    return RefusedRight(user, verb, group, resource, subresource, namespace or "", name)


def _said_wait(said: StatusDetails) -> float | None:
    seconds = (said.details or {}).get("retryAfterSeconds")
    return float(seconds) if isinstance(seconds, int | float) and seconds > 0 else None
