"""Automatic retries of failed requests, limited to requests that cannot take effect twice."""

import random

import msgspec

from paddock.base.backoff import Backoff
from paddock.base.errors import PaddockError
from paddock.kubernetes.client.errors import TimedOut, TooManyRequests, Unavailable, Unreachable


class Retries(msgspec.Struct, frozen=True, kw_only=True):
    """The number of retries and their pauses."""

    attempts: int = 5
    # a server that asks for more patience than this is an error
    longest_wait: float = 60.0
    backoff: Backoff = Backoff(first=0.1, longest=5.0, jitter=0.5)


def pause(error: PaddockError, *, reads: bool, attempt: int, retries: Retries, chance: random.Random) -> float | None:
    """The wait before attempt number `attempt + 1`; None when it is not for the client to try again.

    A read may always be repeated. A write only when it did not begin: it was never sent, or the server said so (429).
    """
    if attempt >= retries.attempts:
        return None
    if isinstance(error, Unreachable):
        repeatable = (reads or not error.sent) and not isinstance(error, TimedOut)
        return retries.backoff.pause(attempt, chance) if repeatable else None
    invited = isinstance(error, TooManyRequests) or (reads and isinstance(error, Unavailable) and error.retry_after is not None)
    if not invited:
        return None
    assert isinstance(error, TooManyRequests | Unavailable)
    wait = error.retry_after if error.retry_after is not None else retries.backoff.pause(attempt, chance)
    # All clients got the same number; they need not all come back at the same moment.
    return None if wait > retries.longest_wait else wait * chance.uniform(1.0, 1.1)
