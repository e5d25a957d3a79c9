"""The due times of schedules."""

from datetime import UTC, datetime

import pytest

from paddock.base.cron import BadSchedule, next_after, parse


def due(text: str, after: datetime) -> str:
    found = next_after(parse(text), after.replace(tzinfo=UTC).timestamp())
    return "" if found is None else datetime.fromtimestamp(found, UTC).strftime("%Y-%m-%d %H:%M %a")


@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("* * * * *", datetime(2026, 1, 1, 0, 0, 30), "2026-01-01 00:01 Thu"),
        ("30 1 * * *", datetime(2026, 1, 1, 1, 30), "2026-01-02 01:30 Thu".replace("Thu", "Fri")),
        ("*/15 * * * *", datetime(2026, 1, 1, 0, 46), "2026-01-01 01:00 Thu"),
        ("5/20 * * * *", datetime(2026, 1, 1, 0, 26), "2026-01-01 00:45 Thu"),
        ("0 9-17/4 * * mon-fri", datetime(2026, 1, 2, 18, 0), "2026-01-05 09:00 Mon"),
        ("0 0 29 2 *", datetime(2026, 1, 1), "2028-02-29 00:00 Tue"),
        ("0 0 31 * *", datetime(2026, 2, 1), "2026-03-31 00:00 Tue"),
        ("0 0 13 * 5", datetime(2026, 1, 1), "2026-01-02 00:00 Fri"),
        ("0 0 13 * *", datetime(2026, 1, 1), "2026-01-13 00:00 Tue"),
        ("0 0 * jan,JUL 7", datetime(2026, 1, 26), "2026-07-05 00:00 Sun"),
        ("0 0 1 1 * 2030", datetime(2026, 1, 1), "2030-01-01 00:00 Tue"),
        ("0 0 1 1 * 2020", datetime(2026, 1, 1), ""),
        ("0 0 31 2 *", datetime(2026, 1, 1), ""),
        ("@weekly", datetime(2026, 1, 1), "2026-01-04 00:00 Sun"),
        ("@monthly", datetime(2026, 12, 5), "2027-01-01 00:00 Fri"),
    ],
)
def test_the_next_time(text: str, after: datetime, expected: str) -> None:
    assert due(text, after) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "* * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "5-1 * * * *",
        "*/0 * * * *",
        "x * * * *",
        "@often",
    ],
)
def test_what_is_no_schedule(text: str) -> None:
    with pytest.raises(BadSchedule):
        parse(text)
