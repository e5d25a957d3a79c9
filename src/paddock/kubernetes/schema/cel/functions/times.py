"""Moments and lengths of time."""

import datetime
import re
import zoneinfo
from collections.abc import Callable
from typing import Any

from paddock.kubernetes.schema.cel.errors import EvaluationError
from paddock.kubernetes.schema.cel.functions.function import CostBudget, Function, NotMine
from paddock.kubernetes.schema.cel.values import SECOND, Cidr, Duration, Ip, Semver, Timestamp, Url, no_overload

_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?\d*([Zz]|[+-]\d\d:\d\d)\Z", re.ASCII)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_OFFSET = re.compile(r"([+-]?)(\d\d):(\d\d)\Z", re.ASCII)
GLOBAL: dict[str, Function] = {}


def read_timestamp(text: str) -> Timestamp:
    """A moment of RFC 3339."""
    match = _TIME.match(text)
    zone = "+00:00" if match is not None and match[4] in "Zz" else match[4] if match is not None else ""
    try:
        if match is None:
            raise ValueError
        moment = datetime.datetime.fromisoformat(f"{match[1]}T{match[2]}{zone}")
    except ValueError:
        raise EvaluationError(f"type conversion error from 'string' to 'google.protobuf.Timestamp': {text[:40]}") from None
    seconds = (moment - _EPOCH) // datetime.timedelta(seconds=1)
    return Timestamp(seconds * SECOND + int((match[3] or "0").ljust(9, "0")))


def show_timestamp(value: Timestamp) -> str:
    """RFC 3339, in UTC."""
    fraction = f"{value.ns % SECOND:09d}".rstrip("0")
    return f"{_moment(value):%Y-%m-%dT%H:%M:%S}{'.' + fraction if fraction else ''}Z"


def show_duration(value: Duration) -> str:
    """Seconds with their fraction."""
    whole, rest = divmod(abs(value.ns), SECOND)
    fraction = f"{rest:09d}".rstrip("0")
    return f"{'-' if value.ns < 0 else ''}{whole}{'.' + fraction if fraction else ''}s"


def own_text(value: Any) -> str:
    """The text of a value that was made of a text."""
    if isinstance(value, Url | Semver):
        return value.text
    if isinstance(value, Ip):
        return str(value.address)
    if isinstance(value, Cidr):
        return f"{value.interface.ip}/{value.interface.network.prefixlen}"
    raise no_overload("string", value)


def _moment(value: Timestamp, zone: datetime.tzinfo = datetime.UTC) -> datetime.datetime:
    try:
        return (_EPOCH + datetime.timedelta(seconds=value.ns // SECOND)).astimezone(zone)
    except OverflowError:
        raise EvaluationError("timestamp out of range") from None


def _zone(name: str) -> datetime.tzinfo:
    match = _OFFSET.match(name)
    if match is not None:
        minutes = int(match[2]) * 60 + int(match[3])
        return datetime.timezone(datetime.timedelta(minutes=-minutes if match[1] == "-" else minutes))
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise EvaluationError(f"unknown time zone {name[:40]}") from None


def _getter(name: str, of_time: Callable[[datetime.datetime], int], of_length: Callable[[int], int] | None = None) -> Function:
    def get(budget: CostBudget, value: Any, zone: Any = None) -> int:
        if isinstance(value, Timestamp):
            return of_time(_moment(value, _zone(zone) if isinstance(zone, str) else datetime.UTC))
        if isinstance(value, Duration) and of_length is not None and zone is None:
            return of_length(value.ns)
        raise NotMine(str(no_overload(name, value)))

    return Function(get, 1, 2, "int")


def _toward_zero(ns: int, unit: int) -> int:
    return ns // unit if ns >= 0 else -(-ns // unit)


def _milliseconds(budget: CostBudget, value: Any, zone: Any = None) -> int:
    if isinstance(value, Timestamp):
        return value.ns % SECOND // 10**6
    if isinstance(value, Duration):
        return _toward_zero(value.ns, 10**6)
    raise no_overload("getMilliseconds", value)


METHODS: dict[str, Function] = {
    "getFullYear": _getter("getFullYear", lambda moment: moment.year),
    "getMonth": _getter("getMonth", lambda moment: moment.month - 1),
    "getDayOfYear": _getter("getDayOfYear", lambda moment: moment.timetuple().tm_yday - 1),
    "getDayOfMonth": _getter("getDayOfMonth", lambda moment: moment.day - 1),
    "getDate": _getter("getDate", lambda moment: moment.day),
    "getDayOfWeek": _getter("getDayOfWeek", lambda moment: moment.isoweekday() % 7),
    "getHours": _getter("getHours", lambda moment: moment.hour, lambda ns: _toward_zero(ns, 3600 * SECOND)),
    "getMinutes": _getter("getMinutes", lambda moment: moment.minute, lambda ns: _toward_zero(ns, 60 * SECOND)),
    "getSeconds": _getter("getSeconds", lambda moment: moment.second, lambda ns: _toward_zero(ns, SECOND)),
    "getMilliseconds": Function(_milliseconds, 1, 2, "int"),
}
