"""The word a user most likely meant, and none when it is anybody's guess."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.base.nearest import nearest

KNOWN = ("cores", "sockets", "threads", "memory", "storageClassName", "id")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("cores", "cores"),
        ("Cores", "cores"),
        ("core", "cores"),
        ("coers", "cores"),
        ("coresx", "cores"),
        ("socets", "sockets"),
        ("soket", None),
        ("storageClass", "storageClassName"),
        ("storageclassname", "storageClassName"),
        ("di", "id"),
        ("disk", None),
        ("", None),
        ("memorandum", None),
        ("x" * 65, None),
    ],
)
def test_what_was_meant(word: str, meant: str | None) -> None:
    assert nearest(word, KNOWN) == meant


def test_ties_go_to_the_first_in_order() -> None:
    assert nearest("ac", ("ad", "ab", "aa")) == "aa"
    assert nearest("ac", ()) is None


@given(st.text(st.characters(codec="ascii", categories=["Ll"]), min_size=3, max_size=20), st.data())
def test_one_letter_off_is_always_found(word: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(word) - 1))
    letter = data.draw(st.sampled_from("abcxyz"))
    slip = data.draw(
        st.sampled_from(
            [word[:at] + word[at + 1 :], word[:at] + letter + word[at:], word[:at] + letter + word[at + 1 :], _swapped(word, at)]
        )
    )
    assert nearest(slip, (word, "somethingElseEntirely")) == word


def _swapped(word: str, at: int) -> str:
    return word[:at] + word[at + 1 : at + 2] + word[at : at + 1] + word[at + 2 :]
