"""Go's durations, exact and refused where Go refuses them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.base import duration

SECOND = duration.SECOND


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("+0", 0),
        ("-0", 0),
        ("0s", 0),
        ("30s", 30 * SECOND),
        ("5m", 300 * SECOND),
        ("1h30m", 5400 * SECOND),
        ("1h1h", 7200 * SECOND),
        ("-1.5h", -5400 * SECOND),
        ("+2s", 2 * SECOND),
        (".5s", SECOND // 2),
        ("1.s", SECOND),
        ("500ms", SECOND // 2),
        ("1us", 1000),
        ("1µs", 1000),
        ("1μs", 1000),
        ("1ns", 1),
        ("0.5ns", 0),
        ("2562047h", 2562047 * 3600 * SECOND),
    ],
)
def test_the_value_in_nanoseconds(text: str, nanoseconds: int) -> None:
    assert duration.parse(text) == nanoseconds
    assert duration.is_duration(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+",
        "-",
        "5",
        "1.5",
        "s",
        ".s",
        "1 s",
        " 1s",
        "1s ",
        "1s\n",
        "1d",
        "1H",
        "1h30",
        "--1s",
        "1e3s",
        "1,5s",
        "\u0663s",
        "2562048h",
        "-2562048h",
        "9" * 70 + "s",
        "1s" * 40,
    ],
)
def test_what_is_no_duration(text: str) -> None:
    assert not duration.is_duration(text)
    with pytest.raises(duration.NotADuration) as caught:
        duration.parse(text)
    assert caught.value.text == text


@given(st.lists(st.tuples(st.integers(0, 1000), st.sampled_from([("h", 3600), ("m", 60), ("s", 1)])), min_size=1, max_size=5))
def test_the_parts_add_up(parts: list[tuple[int, tuple[str, int]]]) -> None:
    text = "".join(f"{number}{unit}" for number, (unit, _) in parts)
    assert duration.parse(text) == sum(number * seconds for number, (_, seconds) in parts) * SECOND
    assert duration.parse(f"-{text}") == -duration.parse(text)
