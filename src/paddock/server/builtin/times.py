"""Times of typed kinds in the one form that clients get: UTC, whole seconds, or six fractional digits."""

from typing import Any

from paddock.kubernetes.meta import ages


def settle(data: dict[str, Any] | None, *, whole: tuple[str, ...] = (), micro: tuple[str, ...] = ()) -> None:
    """Rewrite these members, in place. What is no time is left for validation to find."""
    if not isinstance(data, dict):
        return
    for names, write in ((whole, ages.timestamp), (micro, ages.micro_timestamp)):
        for name in names:
            text = data.get(name)
            seconds = ages.seconds_of(text) if isinstance(text, str) else None
            if seconds is not None:
                data[name] = write(seconds)
