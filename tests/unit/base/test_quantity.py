"""Kubernetes quantities: what is one, what it is worth, and how sizes are written."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.base import quantity
from paddock.base.errors import Terminal

UNIT = quantity.UNIT


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (0, 0),
        (7, 7 * UNIT),
        (-7, -7 * UNIT),
        ("0", 0),
        ("12", 12 * UNIT),
        ("+12", 12 * UNIT),
        ("-12", -12 * UNIT),
        ("1.", UNIT),
        (".5", UNIT // 2),
        ("1.5", UNIT * 3 // 2),
        ("1Ki", 1024 * UNIT),
        ("1.5Ki", 1536 * UNIT),
        ("1Mi", 2**20 * UNIT),
        ("1Gi", 2**30 * UNIT),
        ("1Ti", 2**40 * UNIT),
        ("1Pi", 2**50 * UNIT),
        ("1Ei", 2**60 * UNIT),
        ("1n", 1),
        ("1u", 10**3),
        ("1m", 10**6),
        ("500m", UNIT // 2),
        ("1k", 10**3 * UNIT),
        ("1M", 10**6 * UNIT),
        ("1G", 10**9 * UNIT),
        ("1T", 10**12 * UNIT),
        ("1P", 10**15 * UNIT),
        ("1E", 10**18 * UNIT),
        ("1e3", 1000 * UNIT),
        ("1E3", 1000 * UNIT),
        ("1e-3", 10**6),
        ("1.5e+3", 1500 * UNIT),
        ("0.0000000001", 1),
        ("-0.0000000001", -1),
        ("0.5n", 1),
    ],
)
def test_the_value_in_billionths(text: int | str, value: int) -> None:
    assert quantity.parse(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "+",
        "-",
        ".",
        "1 Gi",
        " 1",
        "1 ",
        "1\n",
        "Gi",
        "1gi",
        "1GI",
        "1KI",
        "1K",
        "1g",
        "1b",
        "1GiB",
        "--1",
        "+-1",
        "1..5",
        "1,5",
        "1e",
        "e3",
        "1e3Gi",
        "1e1.5",
        "0x10",
        "1_000",
        "NaN",
        "inf",
        "\u0661",
        "1e1000",
        "9" * 65,
    ],
)
def test_what_is_no_quantity(text: str) -> None:
    assert not quantity.is_quantity(text)
    with pytest.raises(quantity.NotAQuantity) as caught:
        quantity.parse(text)
    assert isinstance(caught.value, Terminal)
    assert repr(text) in str(caught.value)
    assert caught.value.text == text


@pytest.mark.parametrize(("text", "whole"), [("1", 1), ("1.1", 2), ("500m", 1), ("-1.5", -1), ("1Gi", 2**30), (5, 5), ("0", 0)])
def test_whole_numbers_are_rounded_up(text: int | str, whole: int) -> None:
    assert quantity.whole(text) == whole


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0"), (1, "1"), (1023, "1023"), (1024, "1Ki"), (1536, "1536"), (2**31, "2Gi"), (3 * 2**20, "3Mi"), (2**60, "1Ei")],
)
def test_sizes_are_written_in_the_largest_exact_unit(size: int, text: str) -> None:
    assert quantity.binary(size) == text


@given(st.integers(min_value=0, max_value=2**70))
def test_a_written_size_is_read_back(size: int) -> None:
    assert quantity.parse(quantity.binary(size)) == size * UNIT


@given(st.integers(-(10**12), 10**12), st.integers(0, 9), st.sampled_from(["", "Ki", "Mi", "Gi", "m", "k", "M", "G", "e2", "E-2"]))
def test_the_value_is_exact_up_to_a_billionth_and_rounded_away_from_zero(digits: int, places: int, unit: str) -> None:
    factors: dict[str, int | Fraction] = {
        "": 1,
        "Ki": 2**10,
        "Mi": 2**20,
        "Gi": 2**30,
        "m": Fraction(1, 1000),
        "k": 10**3,
        "M": 10**6,
        "G": 10**9,
    }
    factor = Fraction(factors.get(unit, 100 if unit == "e2" else Fraction(1, 100)))
    text = f"{abs(digits):0{places + 1}d}"
    text = f"{text[:-places]}.{text[-places:]}" if places else text
    exact = Fraction(digits, 10**places) * factor * UNIT
    value = quantity.parse(f"{'-' if digits < 0 else ''}{text}{unit}")
    assert abs(value) == -(-abs(exact).numerator // abs(exact).denominator)
    assert value == 0 or (value < 0) == (digits < 0)


@pytest.mark.spec("kubevirt", 127)
@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("4GB", ("4G", "4Gi")),
        ("2gb", ("2G", "2Gi")),
        ("1.5 tb", ("1.5T", "1.5Ti")),
        ("512mb", ("512M", "512Mi")),
        ("8KB", ("8k", "8Ki")),
        ("4GiB", ("4Gi",)),
        ("20GB!", ()),
        ("many", ()),
        ("9" * 70 + "GB", ()),
        (4, ()),
    ],
)
def test_an_amount_that_is_none_may_mean_two(text: object, meant: tuple[str, ...]) -> None:
    assert quantity.meant(text) == meant
    assert all(quantity.is_quantity(each) for each in meant)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0"),
        (512, "512"),
        (32 << 20, "32Mi"),
        (35567698, "33.9Mi"),
        (45526482944, "42.4Gi"),
        (40 << 30, "40Gi"),
        (1100000000, "1.02Gi"),
        ((40 << 30) + 1, "40Gi"),
    ],
)
def test_sizes_that_people_read(size: int, text: str) -> None:
    assert quantity.readable(size) == text
