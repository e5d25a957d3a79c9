"""The errors of the driver: each one of the client's or of the driver's own becomes a `ProviderError` of its kind."""

from contextlib import AbstractContextManager

from paddock.base import reasons
from paddock.base.errors import PaddockError
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.payloads import InvalidPayload
from paddock.kubernetes.client import errors as client
from paddock.kubevirt.kinds.missinggates import MissingGates
from paddock_drivers.kit import refusals

_QUOTA = "exceeded quota"
# The first type that fits counts.
_KINDS: tuple[tuple[type[PaddockError], ErrorKind], ...] = (
    (InvalidPayload, ErrorKind.INVALID_SPEC),
    (MissingGates, ErrorKind.NOT_SUPPORTED),
    (client.TimedOut, ErrorKind.TIMEOUT),
    (client.Unreachable, ErrorKind.UNAVAILABLE),
    (client.BadAccess, ErrorKind.UNAUTHORIZED),
    (client.Unauthorized, ErrorKind.UNAUTHORIZED),
    (client.Forbidden, ErrorKind.UNAUTHORIZED),
    (client.NotFound, ErrorKind.NOT_FOUND),
    (client.MethodNotAllowed, ErrorKind.NOT_SUPPORTED),
    (client.Conflict, ErrorKind.CONFLICT),
    (client.AlreadyExists, ErrorKind.CONFLICT),
    (client.BadRequest, ErrorKind.INVALID_SPEC),
    (client.Invalid, ErrorKind.INVALID_SPEC),
    (client.TooLarge, ErrorKind.INVALID_SPEC),
    (client.TooManyRequests, ErrorKind.RATE_LIMIT),
    (client.Expired, ErrorKind.UNAVAILABLE),
    (client.Unavailable, ErrorKind.UNAVAILABLE),
)


def of(error: PaddockError) -> ProviderError:
    """Return the provider's error for any other one."""
    if isinstance(error, ProviderError):
        return error
    kind = next((kind for type_, kind in _KINDS if isinstance(error, type_)), ErrorKind.INTERNAL)
    if isinstance(error, client.Forbidden) and _QUOTA in str(error):
        kind = ErrorKind.QUOTA_EXCEEDED
    if isinstance(error, client.NotFound) and not error.details.get("name"):
        # The path itself is not served: KubeVirt or CDI lacks the kind.
        kind = ErrorKind.NOT_SUPPORTED
    wait = error.retry_after if isinstance(error, client.ApiError) else None
    return ProviderError(kind, error.what, why=error.why, fix=error.fix, retry_after=wait, reason=_reason(error))


def _reason(error: PaddockError) -> str:
    return error.reason_code or (reasons.HYPERVISOR_UNREACHABLE if isinstance(error, client.Unreachable) else "")


def mapped() -> AbstractContextManager[None]:
    """Raise what is raised inside as a `ProviderError`."""
    return refusals.mapped(of)
