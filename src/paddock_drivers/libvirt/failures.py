"""The errors of libvirt: each becomes a `ProviderError` of its kind. The numbers are virErrorNumber's; the library is not needed."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from paddock.base import reasons
from paddock.base.errors import PaddockError
from paddock.contract.errors import ErrorKind, ProviderError
from paddock.contract.payloads import InvalidPayload

INTERNAL_ERROR, NO_SUPPORT, OPERATION_FAILED, NO_DOMAIN, OPERATION_INVALID = 1, 3, 9, 42, 55
NO_NETWORK = 43
NO_STORAGE_POOL, NO_STORAGE_VOL, STORAGE_VOL_EXIST, NO_SNAPSHOT, NO_METADATA = 49, 50, 90, 72, 80
INVALID_ARG, SYSTEM_ERROR = 8, 38
OPERATION_TIMEOUT, ARGUMENT_UNSUPPORTED, AGENT_UNRESPONSIVE, RESOURCE_BUSY, DEVICE_MISSING = 68, 74, 86, 87, 99
# Ends of a connection: whoever meets one has to open another. NO_CONNECT, INVALID_CONN, SYSTEM_ERROR, RPC, GNUTLS_ERROR, SSH, LIBSSH.
_LOST = frozenset((5, 6, 38, 39, 40, 85, 98))
# Internal errors that are ends, too.
_ENDS = ("client socket is closed", "keepalive", "connection closed", "connection vanished")
_KINDS: Mapping[int, ErrorKind] = {
    # NO_ and the kind of object; DEVICE_MISSING
    **dict.fromkeys((42, 43, 49, 50, 53, 57, 62, 66, 72, 80, 99, 101, 107), ErrorKind.NOT_FOUND),
    # OPERATION_DENIED, AUTH_FAILED, AUTH_CANCELLED, ACCESS_DENIED, AUTH_UNAVAILABLE
    **dict.fromkeys((29, 45, 79, 88, 94), ErrorKind.UNAUTHORIZED),
    # NO_SUPPORT, CONFIG_UNSUPPORTED, ARGUMENT_UNSUPPORTED, OPERATION_UNSUPPORTED, CPU_INCOMPATIBLE
    **dict.fromkeys((3, 67, 74, 84, 91), ErrorKind.NOT_SUPPORTED),
    # DOM_EXIST, NETWORK_EXIST, OPERATION_INVALID, SNAPSHOT_REVERT_RISKY, BLOCK_COPY_ACTIVE, STORAGE_VOL_EXIST
    **dict.fromkeys((28, 37, 55, 77, 83, 90), ErrorKind.CONFLICT),
    # INVALID_ARG, XML_ERROR, XML_DETAIL, INVALID_MAC, OVERFLOW, XML_INVALID_SCHEMA
    **dict.fromkeys((8, 27, 35, 44, 82, 92), ErrorKind.INVALID_SPEC),
    OPERATION_TIMEOUT: ErrorKind.TIMEOUT,
    # NO_CONNECT, INVALID_CONN, RPC, AGENT_UNRESPONSIVE, RESOURCE_BUSY, AGENT_UNSYNCED
    **dict.fromkeys((5, 6, 39, 86, 87, 97), ErrorKind.UNAVAILABLE),
}
# What is missing, or what the machine would need.
_REASONS: Mapping[int, str] = {
    NO_NETWORK: reasons.NETWORK_MISSING,
    NO_STORAGE_POOL: reasons.POOL_MISSING,
    NO_STORAGE_VOL: reasons.VOLUME_MISSING,
}
_FULL = "no space left on device"
_LONGEST = 300
# libvirt's words where getaddrinfo knows no address.
_NO_ADDRESS = "Unable to resolve address"
# A shell's word for a command that it does not find.
_NO_PROGRAM = "non-zero code: 127"


def code_of(error: BaseException) -> int:
    """Return libvirt's number of an error, 0 for an error of anybody else."""
    code = getattr(error, "get_error_code", None)
    return int(code() or 0) if callable(code) else 0


def is_lost(error: BaseException) -> bool:
    """Return whether an error may be the end of the connection."""
    return code_of(error) in _LOST or (code_of(error) == INTERNAL_ERROR and any(each in str(error) for each in _ENDS))


def of(error: Any, what: str = "libvirt refuses the operation") -> ProviderError:
    """Return the provider's error for one of libvirt's."""
    code, text = code_of(error), words(error)
    # libvirt has no number for a file system that is full.
    reason = reasons.PROVIDER_FULL if _FULL in str(error).lower() else _REASONS.get(code, "")
    return ProviderError(_KINDS.get(code, ErrorKind.INTERNAL), what, why=text, reason=reason)


def lost(error: Any) -> ProviderError:
    """Return the error of a call whose connection ended, or could not be opened."""
    if _NO_PROGRAM in str(error):
        program = "nc, or virt-ssh-helper for an endpoint without socket"
        why = f"the far host lacks the program that passes the connection on: {program} ({words(error)})"
        fix, reason = "install netcat-openbsd there, or libvirt's daemon with its virt-ssh-helper", reasons.HYPERVISOR_PROGRAM
    elif _NO_ADDRESS in str(error):
        why, fix, reason = words(error), "correct the host in spec.endpoint, or DNS", reasons.ADDRESS_UNKNOWN
    else:
        why, fix, reason = words(error), "see that libvirtd runs; Paddock tries again", reasons.HYPERVISOR_UNREACHABLE
    return ProviderError(ErrorKind.UNAVAILABLE, "libvirt cannot be reached", why=why, fix=fix, reason=reason)


@contextmanager
def mapped() -> Iterator[None]:
    """Raise what is raised inside as a `ProviderError`."""
    try:
        yield
    except ProviderError:
        raise
    except InvalidPayload as error:
        raise ProviderError(ErrorKind.INVALID_SPEC, error.what, why=error.why, fix=error.fix) from error
    except PaddockError as error:
        raise ProviderError(ErrorKind.INTERNAL, error.what, why=error.why, fix=error.fix, reason=error.reason_code) from error


def words(error: Any) -> str:
    """Return the text of an error, on one line and not for ever. A program's last words say why it failed."""
    text = " ".join(str(error).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
