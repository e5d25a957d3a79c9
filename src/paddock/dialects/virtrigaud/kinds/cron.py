"""Schedules: five to seven cron fields, a word such as `@daily`, or `@every` and a duration."""

import re

from paddock.base import duration

WORDS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "@reboot")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
# Name, least and most of each field, and the words it knows, from the first number on.
_SECOND = ("second", 0, 59, ())
_MINUTE = ("minute", 0, 59, ())
_HOUR = ("hour", 0, 23, ())
_DAY = ("day of month", 1, 31, ())
_MONTH = ("month", 1, 12, _MONTHS)
# 7 is Sunday, too.
_WEEKDAY = ("day of week", 0, 7, _DAYS)
_YEAR = ("year", 1970, 2099, ())
_FIVE = (_MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)
_FORMS = {5: _FIVE, 6: (_SECOND, *_FIVE), 7: (_SECOND, *_FIVE, _YEAR)}
_PART = re.compile(r"(\*|\?|[0-9A-Za-z]+)(?:-([0-9A-Za-z]+))?(?:/([0-9]+))?\Z", re.ASCII)


def problem(text: str) -> str:
    """Return the mistake in a schedule, or an empty text."""
    if text.startswith("@every "):
        span = text.removeprefix("@every ").strip()
        good = duration.is_duration(span) and duration.parse(span) >= duration.SECOND
        return "" if good else f"{span!r} is no duration of a second or more, such as 6h"
    if text.startswith("@"):
        return "" if text in WORDS else f"{text!r} is none of {', '.join(WORDS)}, and not @every with a duration"
    fields = text.split()
    form = _FORMS.get(len(fields))
    if form is None:
        return f"has {len(fields)} fields and needs 5 (6 with seconds, 7 with years)"
    for field, kind in zip(fields, form, strict=True):
        why = _field_problem(field, kind)
        if why:
            return why
    return ""


def _field_problem(field: str, kind: tuple[str, int, int, tuple[str, ...]]) -> str:
    for part in field.split(","):
        match = _PART.match(part)
        if match is None:
            return f"{part!r} is no {kind[0]}"
        first, last, step = match.groups()
        if step is not None and int(step) == 0:
            return f"{part!r}: a step cannot be 0"
        if first in ("*", "?"):
            if last is not None:
                return f"{part!r} is no {kind[0]}"
            continue
        low, high = _number(first, kind), _number(last, kind) if last is not None else None
        if low is None or (last is not None and high is None):
            return f"{part!r} is no {kind[0]} from {kind[1]} to {kind[2]}"
        if high is not None and high < low:
            return f"{part!r}: the range goes down"
    return ""


def _number(text: str, kind: tuple[str, int, int, tuple[str, ...]]) -> int | None:
    _, least, most, words = kind
    if text.isdecimal():
        number = int(text[:10])
        return number if least <= number <= most else None
    return words.index(text.lower()) + least if text.lower() in words else None
