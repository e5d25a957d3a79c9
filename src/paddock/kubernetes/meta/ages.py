"""Times as Kubernetes writes them, and how old something is as `kubectl get` shows it."""

from datetime import UTC, datetime
from functools import lru_cache

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY


def timestamp(seconds: float) -> str:
    """RFC 3339 in UTC, whole seconds."""
    return f"{_to_the_second(int(seconds // 1))}Z"


def micro_timestamp(seconds: float) -> str:
    """RFC 3339 in UTC with exactly six fractional digits."""
    micros = round(seconds * 1_000_000)
    return f"{_to_the_second(micros // 1_000_000)}.{micros % 1_000_000:06d}Z"


# A busy server writes the same second thousands of times.
@lru_cache(maxsize=64)
def _to_the_second(seconds: int) -> str:
    # Not strftime, which writes years before 1000 with fewer than four digits.
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat()


def seconds_of(text: str) -> float | None:
    """The time of an RFC 3339 text, or None."""
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def age(text: str, now: float) -> str:
    """Return the time since an RFC 3339 time."""
    start = seconds_of(text)
    return "<invalid>" if start is None else since(start, now)


def since(start: float, now: float) -> str:
    """Return the time since a moment, in the two largest units that matter."""
    seconds = int(now - start)
    if seconds < -1:
        return "<invalid>"
    return "0s" if seconds < 0 else _duration(seconds)


def _duration(seconds: int) -> str:
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds, _MINUTE, "m", 1, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds, _HOUR, "h", _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds, _DAY, "d", _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two(seconds, _YEAR, "y", _DAY, "d")
    return f"{seconds // _YEAR}y"


def _two(seconds: int, large: int, large_unit: str, small: int, small_unit: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{large_unit}{rest}{small_unit}" if rest else f"{seconds // large}{large_unit}"
