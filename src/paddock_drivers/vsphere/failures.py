"""The errors of the driver: each fault of vSphere, each lost connection and each broken payload becomes a `ProviderError` of its kind."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from xml.parsers.expat import ExpatError

from pyVmomi import vim, vmodl

from paddock.base import reasons
from paddock.base.errors import PaddockError
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.payloads import InvalidPayload

_CA = "ca.crt"
_UNKNOWN = "vSphere cannot do this"
# The first type that fits counts, so a special one stands before its base.
_KINDS: tuple[tuple[type[Exception], ErrorKind], ...] = (
    (vim.fault.InvalidLogin, ErrorKind.UNAUTHORIZED),
    (vim.fault.NoPermission, ErrorKind.UNAUTHORIZED),
    (vim.fault.RestrictedVersion, ErrorKind.NOT_SUPPORTED),
    (vmodl.fault.SecurityError, ErrorKind.UNAUTHORIZED),
    (vmodl.fault.ManagedObjectNotFound, ErrorKind.NOT_FOUND),
    (vim.fault.FileNotFound, ErrorKind.NOT_FOUND),
    (vim.fault.NotFound, ErrorKind.NOT_FOUND),
    (vim.fault.DuplicateName, ErrorKind.CONFLICT),
    (vim.fault.AlreadyExists, ErrorKind.CONFLICT),
    (vim.fault.FileAlreadyExists, ErrorKind.CONFLICT),
    (vim.fault.TaskInProgress, ErrorKind.UNAVAILABLE),
    (vim.fault.ConcurrentAccess, ErrorKind.UNAVAILABLE),
    (vim.fault.ResourceInUse, ErrorKind.UNAVAILABLE),
    (vim.fault.FileLocked, ErrorKind.UNAVAILABLE),
    (vmodl.fault.HostCommunication, ErrorKind.UNAVAILABLE),
    (vim.fault.InvalidState, ErrorKind.CONFLICT),
    (vim.fault.NoDiskSpace, ErrorKind.QUOTA_EXCEEDED),
    (vim.fault.InsufficientResourcesFault, ErrorKind.QUOTA_EXCEEDED),
    (vim.fault.Timedout, ErrorKind.TIMEOUT),
    (vmodl.fault.NotSupported, ErrorKind.NOT_SUPPORTED),
    (vmodl.fault.NotImplemented, ErrorKind.NOT_SUPPORTED),
    (vmodl.fault.MethodNotFound, ErrorKind.NOT_SUPPORTED),
    (vmodl.fault.InvalidType, ErrorKind.NOT_SUPPORTED),
    (vim.fault.InvalidName, ErrorKind.INVALID_SPEC),
    (vim.fault.VmConfigFault, ErrorKind.INVALID_SPEC),
    (vmodl.fault.InvalidRequest, ErrorKind.INVALID_SPEC),
    (vmodl.fault.InvalidArgument, ErrorKind.INVALID_SPEC),
    (InvalidPayload, ErrorKind.INVALID_SPEC),
    (ssl.SSLCertVerificationError, ErrorKind.UNAVAILABLE),
    (TimeoutError, ErrorKind.TIMEOUT),
    (OSError, ErrorKind.UNAVAILABLE),
    (HTTPException, ErrorKind.UNAVAILABLE),
    (ExpatError, ErrorKind.UNAVAILABLE),
)
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (vim.fault.NoDiskSpace, reasons.PROVIDER_FULL),
    (vim.fault.InsufficientResourcesFault, reasons.PROVIDER_CAPACITY),
    (ssl.SSLCertVerificationError, reasons.PROVIDER_CERTIFICATE),
    (OSError, reasons.HYPERVISOR_UNREACHABLE),
)
# What a call that meets one of these may wait for, in seconds.
_BUSY = (vim.fault.TaskInProgress, vim.fault.ConcurrentAccess, vim.fault.ResourceInUse, vim.fault.FileLocked)
_BUSY_SECONDS = 5.0


def of(error: Exception, what: str = _UNKNOWN) -> ProviderError:
    """Return the provider's error for any other one; `what` says what could not be done."""
    if isinstance(error, ProviderError):
        return error
    kind = next((kind for type_, kind in _KINDS if isinstance(error, type_)), ErrorKind.INTERNAL)
    if isinstance(error, PaddockError):
        return ProviderError(kind, error.what, why=error.why, fix=error.fix, reason=error.reason_code)
    wait = _BUSY_SECONDS if isinstance(error, _BUSY) else None
    code = next((code for type_, code in _REASONS if isinstance(error, type_)), "")
    return ProviderError(kind, what, why=reason(error), fix=_fix(error), retry_after=wait, reason=code)


def reason(error: Exception) -> str:
    """Return what a fault says, or what its type means."""
    if isinstance(error, vim.fault.NoPermission) and not isinstance(error, vim.fault.NotAuthenticated):
        return f"the account lacks the privilege {error.privilegeId or 'for it'}"
    if isinstance(error, vmodl.MethodFault):
        return str(error.msg or "") or type(error).__name__.rsplit(".", 1)[-1]
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the endpoint cannot be verified ({error.verify_message})"
    if isinstance(error, TimeoutError):
        return "the endpoint did not answer in time"
    if isinstance(error, OSError):
        return f"the endpoint cannot be reached ({error.strerror or type(error).__name__})"
    if isinstance(error, HTTPException | ExpatError):
        return "the endpoint did not answer as a vCenter does"
    # Words of anything else may hold what was asked for.
    return type(error).__name__


def _fix(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"store its authority as {_CA} in the credentials, or set insecureSkipVerify"
    if isinstance(error, vim.fault.NoPermission) and not isinstance(error, vim.fault.NotAuthenticated):
        return "give the account a role with it"
    return ""


@contextmanager
def mapped(what: str = _UNKNOWN) -> Iterator[None]:
    """Raise what is raised inside as a `ProviderError`."""
    try:
        yield
    except ProviderError:
        raise
    except (PaddockError, vmodl.MethodFault, OSError, HTTPException, ExpatError) as error:
        raise of(error, what) from error
