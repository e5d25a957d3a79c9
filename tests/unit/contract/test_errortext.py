"""Texts of a provider are made fit for a condition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.contract.errortext import LONGEST, cleaned


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        (" a\n\tb\x1b[31m\x00 ", "a b [31m"),
        ("a\u202eb\u2028c", "a b c"),
        ("\ud800x", "x"),
        ("key hunter2 refused", "key <hidden> refused"),
        ("https://user:hunter@host/x", "https://<hidden>@host/x"),
        ("it is ok", "it is ok"),
        ("é" * 2000, "é" * 510 + "..."),
    ],
)
def test_cleaned(text: str, shown: str) -> None:
    assert cleaned(text, ["hunter2", "ok", ""]) == shown


def test_a_secret_behind_the_cut_does_not_come_forward() -> None:
    assert "hunter" not in cleaned("\x00" * 10_000 + "hunter2", ["hunter2"])


@given(st.text())
def test_any_text(text: str) -> None:
    shown = cleaned(text)
    assert len(shown.encode()) <= LONGEST
    assert shown.isprintable() or all(each.isprintable() or each.isspace() or ord(each) > 0x7F for each in shown)
    assert "\n" not in shown
