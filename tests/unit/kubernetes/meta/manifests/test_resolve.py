"""Words mean what they mean to kubectl. The expectations were taken from its YAML reader (sigs.k8s.io/yaml 1.6.0)."""

from typing import Any

import pytest

from paddock.kubernetes.meta.manifests.resolve import plain
from paddock.kubernetes.schema.scalars import BareWord

SAME = [
    "10Gi",
    "1.2.3",
    "v1",
    "tRue",
    "nULL",
    "yEs",
    "oN",
    "-",
    "+",
    ".",
    "_1",
    "0x",
    "0b2",
    "0o8",
    "1e",
    "1_e",
    "12:30",
    "12:30:45",
    "2001-01-01",
    "2001-01-01T00:00:00Z",
    "=",
    "<<",
    "._5",
    ".5_",
    "--1",
    "+-1",
    "0x1p3",
    "1,000",
    "10.0.0.1",
    "Nope",
    "Online",
    "yesterday",
    "e3",
    "inf",
    "nan",
]


@pytest.mark.parametrize("word", SAME)
def test_texts_stay_texts(word: str) -> None:
    assert plain(word) == word
    assert type(plain(word)) is str


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("", None),
        ("~", None),
        ("Null", None),
        ("true", True),
        ("FALSE", False),
        ("0", 0),
        ("-0", 0),
        ("+5", 5),
        ("1_000", 1000),
        ("1__0_", 10),
        ("010", 8),
        ("0o10", 8),
        ("-017", -15),
        ("0x1F", 31),
        ("0b101", 5),
        ("-0b11", -3),
        ("08", 8),
        ("1.0", 1),
        ("1.", 1),
        ("1e3", 1000),
        ("1.5", 1.5),
        (".5", 0.5),
        ("+.5", 0.5),
        (".1_5", 0.15),
        ("1e+2", 100),
        ("9223372036854775807", 2**63 - 1),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", float(2**64)),
        ("-9223372036854775809", -float(2**63)),
        ("9" * 100, float("9" * 100)),
        # beyond every floating number it is a text
        ("9" * 400, "9" * 400),
        ("1e400", "1e400"),
        ("0x" + "f" * 17, "0x" + "f" * 17),
        ("9" * 100_000, "9" * 100_000),
    ],
)
def test_values(word: str, value: Any) -> None:
    assert plain(word) == value
    assert type(plain(word)) is type(value)


@pytest.mark.parametrize("word", ["on", "On", "ON", "off", "Off", "OFF", "yes", "Yes", "YES", "no", "No", "NO", "y", "Y", "n", "N"])
def test_bare_words_are_kept_as_written(word: str) -> None:
    value = plain(word)
    assert isinstance(value, BareWord)
    assert value == word
    assert value.as_bool() is (word.lower() in ("on", "yes", "y"))
