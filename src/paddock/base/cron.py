"""Cron schedules and their next due times. Pure; in UTC, or in a time zone that the caller gives.

minute hour day-of-month month day-of-week [year]; values, ranges, steps, lists, names of months and days, and words such as @daily.
A day fits when both fields for days do, or either where both say something, as cron has it. Where clocks go forward, the hour that is
left out has no due times; where they go back, the hour that comes twice has them twice.
"""

import calendar
from datetime import UTC, datetime, timedelta, tzinfo

import msgspec

_WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
_DAYS = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_LAST_YEAR = 2099
# What is not due within so many years is never due.
_YEARS = 30


class BadSchedule(ValueError):
    """The text is no schedule."""


class CronSchedule(msgspec.Struct, frozen=True):
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    years: frozenset[int]
    # either kind of day will do
    either: bool
    seconds: frozenset[int] = frozenset((0,))

    def fits_day(self, moment: datetime) -> bool:
        """Return whether the day of a moment is one of the schedule."""
        by_month, by_week = moment.day in self.days, moment.isoweekday() % 7 in self.weekdays
        return by_month or by_week if self.either else by_month and by_week


def parse(text: str) -> CronSchedule:
    """Raises `BadSchedule`."""
    fields = _WORDS.get(text, text).split()
    if len(fields) not in (5, 6) or (text.startswith("@") and text not in _WORDS):
        raise BadSchedule(f"{text!r} is no cron schedule: it has {len(fields)} fields, and 5 are needed")
    minutes, hours = _values(fields[0], 0, 59), _values(fields[1], 0, 23)
    days, months = _values(fields[2], 1, 31), _values(fields[3], 1, 12, _MONTHS)
    weekdays = frozenset(day % 7 for day in _values(fields[4], 0, 7, _DAYS))
    years = _values(fields[5], 1970, _LAST_YEAR) if len(fields) == 6 else frozenset(range(1970, _LAST_YEAR + 1))
    either = not fields[2].startswith(("*", "?")) and not fields[4].startswith(("*", "?"))
    return CronSchedule(minutes, hours, days, months, weekdays, years, either)


def parse_with_seconds(text: str) -> CronSchedule:
    """Parse a schedule whose first of six or seven fields is the second; one of five fields has none. Raises `BadSchedule`."""
    fields = text.split()
    if len(fields) not in (6, 7):
        return parse(text)
    return msgspec.structs.replace(parse(" ".join(fields[1:])), seconds=_values(fields[0], 0, 59))


def _values(field: str, low: int, high: int, names: dict[str, int] | None = None) -> frozenset[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step_text = part.partition("/")
        if span in ("*", "?"):
            first, last = low, high
        else:
            begin, dash, end = span.partition("-")
            first = _number(begin, names)
            # `5/15` goes on to the end
            last = _number(end, names) if dash else high if step_text else first
        if "/" in part and (not step_text.isdecimal() or int(step_text) == 0):
            raise BadSchedule(f"{part!r} has no step")
        if not low <= first <= last <= high:
            raise BadSchedule(f"{part!r} is not within {low} and {high}")
        found.update(range(first, last + 1, int(step_text or 1)))
    return frozenset(found)


def _number(text: str, names: dict[str, int] | None) -> int:
    if names is not None and text.lower() in names:
        return names[text.lower()]
    if not text.isdecimal():
        raise BadSchedule(f"{text!r} is no number")
    return int(text)


def next_after(schedule: CronSchedule, seconds: float, zone: tzinfo = UTC) -> float | None:
    """The first time after this one that fits; None: there is none any more."""
    moment = _later(datetime.fromtimestamp(seconds, zone).replace(microsecond=0), 1)
    end = moment.year + _YEARS
    while moment.year <= end:
        if moment.year not in schedule.years or moment.month not in schedule.months:
            moment = _next_month(moment)
        elif not schedule.fits_day(moment):
            moment = _midnight(moment, timedelta(days=1))
        elif moment.hour not in schedule.hours:
            moment = _later(moment, 3600 - 60 * moment.minute - moment.second)
        elif moment.minute not in schedule.minutes:
            moment = _later(moment, 60 - moment.second)
        else:
            second = min((each for each in schedule.seconds if each >= moment.second), default=60)
            if second == moment.second:
                return moment.timestamp()
            moment = _later(moment, second - moment.second)
    return None


def _later(moment: datetime, seconds: float) -> datetime:
    """So much later, whatever the clocks of its zone do meanwhile."""
    return (moment.astimezone(UTC) + timedelta(seconds=seconds)).astimezone(moment.tzinfo)


def _midnight(moment: datetime, days: timedelta = timedelta()) -> datetime:
    """The beginning of a day; the first moment after it if clocks leave it out."""
    return _later(moment.replace(hour=0, minute=0, second=0, fold=0) + days, 0)


def _next_month(moment: datetime) -> datetime:
    first = moment.replace(day=1)
    return _midnight(first.replace(year=first.year + 1, month=1) if first.month == 12 else first.replace(month=first.month + 1))
