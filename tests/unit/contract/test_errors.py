"""Kinds of errors, their status codes, and which of them a retry can cure."""

import pytest

from paddock.base.errors import Terminal, Transient
from paddock.contract.errors import KINDS, RULES, ErrorKind, ProviderError, StatusCode

TRANSIENT = {ErrorKind.RATE_LIMIT, ErrorKind.QUOTA_EXCEEDED, ErrorKind.UNAVAILABLE, ErrorKind.TIMEOUT, ErrorKind.INTERNAL}


@pytest.mark.parametrize("kind", ErrorKind)
def test_the_type_says_whether_to_try_again(kind: ErrorKind) -> None:
    error = ProviderError(kind, "cannot do it", why="reason", fix="do that", retry_after=2.0)
    assert isinstance(error, Transient) is (kind in TRANSIENT)
    assert isinstance(error, Terminal) is (kind not in TRANSIENT)
    assert (error.kind, error.retry_after, str(error)) == (kind, 2.0, "cannot do it: reason; do that")


def test_an_invalid_spec_is_terminal() -> None:
    assert isinstance(ProviderError(ErrorKind.INVALID_SPEC, "no"), Terminal)


def test_the_table_leads_back() -> None:
    for kind, rule in RULES.items():
        if kind is not ErrorKind.QUOTA_EXCEEDED:
            assert KINDS[rule.code] is kind
    assert set(RULES) == set(ErrorKind)
    assert set(KINDS) == set(StatusCode) - {StatusCode.OK}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (StatusCode.NOT_FOUND, ErrorKind.NOT_FOUND),
        (StatusCode.INVALID_ARGUMENT, ErrorKind.INVALID_SPEC),
        (StatusCode.UNAVAILABLE, ErrorKind.UNAVAILABLE),
        (StatusCode.DEADLINE_EXCEEDED, ErrorKind.TIMEOUT),
        (StatusCode.UNAUTHENTICATED, ErrorKind.UNAUTHORIZED),
        (StatusCode.PERMISSION_DENIED, ErrorKind.UNAUTHORIZED),
        (StatusCode.ALREADY_EXISTS, ErrorKind.CONFLICT),
        (StatusCode.RESOURCE_EXHAUSTED, ErrorKind.RATE_LIMIT),
        (StatusCode.UNIMPLEMENTED, ErrorKind.NOT_SUPPORTED),
        (StatusCode.INTERNAL, ErrorKind.INTERNAL),
        (StatusCode.UNKNOWN, ErrorKind.INTERNAL),
    ],
)
def test_codes(code: StatusCode, kind: ErrorKind) -> None:
    assert KINDS[code] is kind
