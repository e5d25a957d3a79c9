"""Errors of a provider's calls: kinds, the gRPC status code of each, and which of them a retry can cure.

    raise ProviderError(ErrorKind.NOT_FOUND, "machine vm-7 does not exist")

makes an error that is also `Transient` or `Terminal`, as the table of kinds says.
"""

import enum
from typing import TypedDict, Unpack

import msgspec

from paddock.base import reasons
from paddock.base.errors import PaddockError, Terminal, Transient


class StatusCode(enum.IntEnum):
    """The status codes of gRPC."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class ErrorKind(enum.StrEnum):
    """The causes of errors that a caller distinguishes."""

    NOT_FOUND = "NotFound"
    INVALID_SPEC = "InvalidSpec"
    CONFLICT = "Conflict"
    UNAUTHORIZED = "Unauthorized"
    NOT_SUPPORTED = "NotSupported"
    RATE_LIMIT = "RateLimit"
    QUOTA_EXCEEDED = "QuotaExceeded"
    UNAVAILABLE = "Unavailable"
    TIMEOUT = "Timeout"
    INTERNAL = "Internal"


class KindRule(msgspec.Struct, frozen=True):
    """The meaning of a kind on the wire and for the caller."""

    code: StatusCode
    # the same call may succeed later
    transient: bool
    # a sign that the provider is unwell, for the circuit breaker
    counted: bool = False
    # the reason code of an error that has none of its own
    reason: str = ""


RULES: dict[ErrorKind, KindRule] = {
    ErrorKind.NOT_FOUND: KindRule(StatusCode.NOT_FOUND, transient=False),
    ErrorKind.INVALID_SPEC: KindRule(StatusCode.INVALID_ARGUMENT, transient=False),
    ErrorKind.CONFLICT: KindRule(StatusCode.ALREADY_EXISTS, transient=False),
    ErrorKind.UNAUTHORIZED: KindRule(StatusCode.PERMISSION_DENIED, transient=False, reason=reasons.PROVIDER_UNAUTHORIZED),
    ErrorKind.NOT_SUPPORTED: KindRule(StatusCode.UNIMPLEMENTED, transient=False),
    ErrorKind.RATE_LIMIT: KindRule(StatusCode.RESOURCE_EXHAUSTED, transient=True, reason=reasons.PROVIDER_RATE_LIMITED),
    ErrorKind.QUOTA_EXCEEDED: KindRule(StatusCode.RESOURCE_EXHAUSTED, transient=True, reason=reasons.PROVIDER_QUOTA),
    ErrorKind.UNAVAILABLE: KindRule(StatusCode.UNAVAILABLE, transient=True, counted=True),
    ErrorKind.TIMEOUT: KindRule(StatusCode.DEADLINE_EXCEEDED, transient=True, counted=True, reason=reasons.PROVIDER_TIMEOUT),
    ErrorKind.INTERNAL: KindRule(StatusCode.INTERNAL, transient=True, counted=True),
}

# The way back. Resource exhaustion is a quota only if the provider says so (see `client`).
KINDS: dict[StatusCode, ErrorKind] = {
    StatusCode.CANCELLED: ErrorKind.UNAVAILABLE,
    StatusCode.UNKNOWN: ErrorKind.INTERNAL,
    StatusCode.INVALID_ARGUMENT: ErrorKind.INVALID_SPEC,
    StatusCode.DEADLINE_EXCEEDED: ErrorKind.TIMEOUT,
    StatusCode.NOT_FOUND: ErrorKind.NOT_FOUND,
    StatusCode.ALREADY_EXISTS: ErrorKind.CONFLICT,
    StatusCode.PERMISSION_DENIED: ErrorKind.UNAUTHORIZED,
    StatusCode.RESOURCE_EXHAUSTED: ErrorKind.RATE_LIMIT,
    StatusCode.FAILED_PRECONDITION: ErrorKind.CONFLICT,
    StatusCode.ABORTED: ErrorKind.UNAVAILABLE,
    StatusCode.OUT_OF_RANGE: ErrorKind.INVALID_SPEC,
    StatusCode.UNIMPLEMENTED: ErrorKind.NOT_SUPPORTED,
    StatusCode.INTERNAL: ErrorKind.INTERNAL,
    StatusCode.UNAVAILABLE: ErrorKind.UNAVAILABLE,
    StatusCode.DATA_LOSS: ErrorKind.INTERNAL,
    StatusCode.UNAUTHENTICATED: ErrorKind.UNAUTHORIZED,
}


class ErrorParts(TypedDict, total=False):
    """What an error may say beside its kind and what failed."""

    why: str
    fix: str
    # seconds; None when the provider gave no hint
    retry_after: float | None
    # what `paddock why` decides by; without one, the kind alone says what went wrong
    reason: str
    # false if the provider certainly did not see the call
    sent: bool


class ProviderError(PaddockError):
    """A call that a provider did not carry out. Constructing one gives a `TransientProviderError` or a `TerminalProviderError`."""

    def __new__(cls, kind: ErrorKind, what: str, **parts: Unpack[ErrorParts]) -> "ProviderError":
        chosen: type[ProviderError] = cls
        if cls is ProviderError:
            chosen = TransientProviderError if RULES[kind].transient else TerminalProviderError
        return super().__new__(chosen, kind, what)

    def __init__(self, kind: ErrorKind, what: str, **parts: Unpack[ErrorParts]) -> None:
        super().__init__(what, why=parts.get("why", ""), fix=parts.get("fix", ""))
        self.kind = kind
        self.reason_code = parts.get("reason") or RULES[kind].reason
        self.retry_after = parts.get("retry_after")
        self.sent = parts.get("sent", True)

    def reworded(self, what: str, *, why: str = "", fix: str = "") -> "ProviderError":
        """Return the same error in other words."""
        return ProviderError(self.kind, what, why=why, fix=fix, retry_after=self.retry_after, reason=self.reason_code, sent=self.sent)

    def with_reason(self, reason: str) -> "ProviderError":
        """Return the same error with another reason code."""
        return ProviderError(self.kind, self.what, why=self.why, fix=self.fix, retry_after=self.retry_after, reason=reason, sent=self.sent)

    @property
    def reported(self) -> str:
        """The text for a condition: the kind before the words of the provider."""
        return f"{self.kind}: {self}"


class TransientProviderError(ProviderError, Transient):
    """The same call may succeed later."""


class TerminalProviderError(ProviderError, Terminal):
    """The same call fails again until something changes."""
