"""The refusals of drivers: a `ProviderError` for each kind that a driver says itself."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from paddock.base import reasons
from paddock.base.errors import PaddockError
from paddock.contract.errors import ErrorKind, ProviderError


@contextmanager
def mapped(of: Callable[[PaddockError], ProviderError]) -> Iterator[None]:
    """Raise each error that is raised inside as the `ProviderError` that `of` makes of it."""
    try:
        yield
    except ProviderError:
        raise
    except PaddockError as error:
        raise of(error) from error


def not_found(what: str, fix: str = "", *, reason: str = "") -> ProviderError:
    """Return the error of an object that is not there; the reason code says what it is."""
    return ProviderError(ErrorKind.NOT_FOUND, what, fix=fix, reason=reason)


def invalid(what: str, *, why: str = "", fix: str = "", reason: str = "") -> ProviderError:
    """Return the error of a request that makes no sense."""
    return ProviderError(ErrorKind.INVALID_SPEC, what, why=why, fix=fix, reason=reason)


def conflict(what: str, *, why: str = "", fix: str = "") -> ProviderError:
    """Return the error of a request that what is there stands against."""
    return ProviderError(ErrorKind.CONFLICT, what, why=why, fix=fix)


def not_supported(what: str, *, why: str = "", fix: str = "", reason: str = "") -> ProviderError:
    """Return the error of what KubeVirt or this target cannot do."""
    return ProviderError(ErrorKind.NOT_SUPPORTED, what, why=why, fix=fix, reason=reason)


def unserved(group_version: str, api_service: str, why: str) -> ProviderError:
    """Return the error of a group that the API server hands on to a program that does not answer."""
    what = f"the target does not serve {group_version} now"
    return ProviderError(ErrorKind.UNAVAILABLE, what, why=why, fix=f"see why the APIService {api_service} is not available")


def retry_later(what: str, seconds: float = 5.0) -> ProviderError:
    """Return the error of a call that succeeds a little later."""
    return ProviderError(ErrorKind.UNAVAILABLE, what, fix="call again", retry_after=seconds, reason=reasons.PROVIDER_BUSY)
