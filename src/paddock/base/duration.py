"""Go's duration texts (`1h30m`, `500ms`), as Kubernetes fields and environment variables carry them; values are nanoseconds."""

import re

from paddock.base.errors import Terminal

SECOND = 10**9
_PART = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
LONGEST = 64
# Go keeps a duration in 64 bits, which is some 292 years.
_WIDEST = 2**63


class NotADuration(Terminal):
    """The text is not a Go duration."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} is not a duration", fix="write numbers with units such as 30s, 5m or 1h30m")
        self.text = text


def parse(text: str) -> int:
    """The duration in nanoseconds, cut to whole ones; raises `NotADuration`."""
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if not rest or len(text) > LONGEST:
        raise NotADuration(text)
    total, at = 0, 0
    while at < len(rest):
        part = _PART.match(rest, at)
        if part is None or not (part[1] or part[2]):
            raise NotADuration(text)
        digits = part[2] or ""
        total += int(part[1] + digits) * _UNITS[part[3]] // 10 ** len(digits)
        at = part.end()
    total = -total if text.startswith("-") else total
    if not -_WIDEST <= total < _WIDEST:
        raise NotADuration(text)
    return total


def is_duration(text: str) -> bool:
    """Return True if `parse` would succeed."""
    try:
        parse(text)
    except NotADuration:
        return False
    return True
