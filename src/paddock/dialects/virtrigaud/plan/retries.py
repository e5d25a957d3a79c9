"""The pause after an error of a provider, by its kind (docs/spec/virtrigaud.md 3.6), and the reason under which it is reported."""

import msgspec

from paddock.contract.errors import ProviderError
from paddock.dialects.virtrigaud.plan import reasons


class RetryRule(msgspec.Struct, frozen=True):
    """When an operation that failed is tried again: pauses grow from `first` to `longest` seconds."""

    reason: str = reasons.PROVIDER_ERROR
    first: float = 5.0
    longest: float = 120.0
    # nothing is tried again until something that the request is made from changes
    terminal: bool = False


_OTHER = RetryRule()
_RULES = {
    "InvalidSpec": RetryRule(reasons.VALIDATION_ERROR, terminal=True),
    "NotSupported": RetryRule(reasons.UNSUPPORTED, terminal=True),
    "Conflict": RetryRule(reasons.PROVIDER_CONFLICT, 120.0, 120.0),
    "Unauthorized": RetryRule(first=60.0, longest=600.0),
    "RateLimit": RetryRule(first=30.0, longest=300.0),
    "QuotaExceeded": RetryRule(first=60.0, longest=600.0),
    "Unavailable": RetryRule(first=5.0, longest=60.0),
    "Timeout": RetryRule(first=5.0, longest=60.0),
}
# A machine that is being deleted is tried at this pace.
DELETION = RetryRule(first=15.0, longest=15.0)


def rule(kind: str) -> RetryRule:
    """The rule for a kind of error."""
    return _RULES.get(kind, _OTHER)


def reason(error: ProviderError) -> str:
    """The reason of the condition Ready for an error: its reason code, or that of its kind."""
    return error.reason_code or rule(error.kind).reason
