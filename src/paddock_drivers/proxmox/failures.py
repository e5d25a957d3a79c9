"""The errors of the driver: each refusal of the cluster, and each failure of the way to it, becomes a `ProviderError` of its kind."""

from contextlib import AbstractContextManager

from paddock.base import reasons
from paddock.base.errors import PaddockError
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.payloads import InvalidPayload
from paddock.kubernetes.client import errors as client
from paddock_drivers.kit import refusals
from paddock_drivers.proxmox.api import ProxmoxRefusal

_TYPES: tuple[tuple[type[PaddockError], ErrorKind], ...] = (
    (InvalidPayload, ErrorKind.INVALID_SPEC),
    (client.TimedOut, ErrorKind.TIMEOUT),
    (client.Unreachable, ErrorKind.UNAVAILABLE),
    (client.BadAccess, ErrorKind.UNAUTHORIZED),
    (client.BadAnswer, ErrorKind.UNAVAILABLE),
)
_GONE = ("does not exist", "no such vm", "no such file", "unable to find configuration file")
_TAKEN = ("already exists", "already in use", "config file already", "is already used")
_LOCKED = ("is locked", "can't lock file", "got timeout", "unable to get exclusive lock", "cfs-lock", "got lock request timeout")
_CONFLICTS = ("not running", "already running", "is running", "hotplug problem", "protection mode", "is a template", "linked clone")
_FULL = ("no space left", "out of space", "not enough space", "insufficient free space", "quota")
_LACKING = ("snapshot feature is not available", "not supported", "does not support", "feature is not available", "not implemented")
# The node that a request was passed on to does not answer.
_PROXY = (595, 596, 597, 598, 599, 502, 503, 504)


def is_gone(error: ProxmoxRefusal) -> bool:
    """Return whether what was asked for is not there."""
    return error.status == 404 or (error.status in (400, 500) and error.says(*_GONE))


def is_taken(error: ProxmoxRefusal) -> bool:
    """Return whether the VMID or the name belongs to something else."""
    return error.status in (400, 500) and error.says(*_TAKEN)


def is_locked(error: ProxmoxRefusal) -> bool:
    """Return whether the machine is busy with something else."""
    return error.status in (400, 500, 503) and error.says(*_LOCKED)


def kind_of(error: ProxmoxRefusal) -> ErrorKind:
    """Return the kind of a refusal."""
    if error.status in (401, 403):
        return ErrorKind.UNAUTHORIZED
    if error.status == 429:
        return ErrorKind.RATE_LIMIT
    if error.status in _PROXY:
        return ErrorKind.UNAVAILABLE
    if error.status == 501 or error.says(*_LACKING):
        return ErrorKind.NOT_SUPPORTED
    if is_locked(error):
        return ErrorKind.UNAVAILABLE
    if is_gone(error):
        return ErrorKind.NOT_FOUND
    if is_taken(error) or error.says(*_CONFLICTS):
        return ErrorKind.CONFLICT
    if error.says(*_FULL):
        return ErrorKind.QUOTA_EXCEEDED
    return ErrorKind.INVALID_SPEC if error.status == 400 else ErrorKind.INTERNAL


def of(error: PaddockError) -> ProviderError:
    """Return the provider's error for any other one."""
    if isinstance(error, ProviderError):
        return error
    if isinstance(error, ProxmoxRefusal):
        kind = kind_of(error)
        reason = reasons.PROVIDER_FULL if kind is ErrorKind.QUOTA_EXCEEDED else ""
        return ProviderError(kind, error.what, why=error.why, fix=_fix(kind, error), reason=reason)
    kind = next((kind for type_, kind in _TYPES if isinstance(error, type_)), ErrorKind.INTERNAL)
    return ProviderError(kind, error.what, why=error.why, fix=error.fix, reason=_reason(error))


def _fix(kind: ErrorKind, error: ProxmoxRefusal) -> str:
    if error.status == 403:
        return "give the user or token a role with this privilege on this path (`pveum role modify`, `pveum acl modify`)"
    if error.status == 401:
        return "correct the credentials in the Provider's Secret"
    if kind is ErrorKind.UNAVAILABLE:
        return "wait until the node or the machine is free; the call is made again"
    return ""


def _reason(error: PaddockError) -> str:
    return error.reason_code or (reasons.HYPERVISOR_UNREACHABLE if isinstance(error, client.Unreachable) else "")


def mapped() -> AbstractContextManager[None]:
    """Raise what is raised inside as a `ProviderError`."""
    return refusals.mapped(of)
