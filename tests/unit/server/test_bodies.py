"""JSON bodies: a key that stands twice is found in every spelling."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.server.bodies import read_json

# Pieces of keys and strings: ends of keys, and what looks like one, as itself and as an escape.
WORDS = st.lists(st.sampled_from(["a", ":", r"\"", r"\":", r"\u0022", r"\u003a", r"\u003A", r"\\"]), max_size=3).map(
    lambda each: '"' + "".join(each) + '"'
)
SPACES = st.sampled_from(["", " "])


def objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    members = st.tuples(WORDS, SPACES, SPACES, values).map(lambda each: f"{each[0]}{each[1]}:{each[2]}{each[3]}")
    return st.lists(members, max_size=3).map(lambda each: "{" + ",".join(each) + "}")


def values(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return objects(inner) | st.lists(inner, max_size=2).map(lambda each: f"[{','.join(each)}]")


VALUES = st.recursive(WORDS, values, max_leaves=6)


def repeats(text: str) -> bool:
    """Return True if any object has a key twice, by the standard library's reader."""
    found = []

    def see(pairs: list[tuple[str, Any]]) -> None:
        found.append(len(dict(pairs)) < len(pairs))

    json.loads(text, object_pairs_hook=see)
    return any(found)


@given(objects(VALUES))
def test_a_key_that_stands_twice_is_found(text: str) -> None:
    assert bool(read_json(text.encode()).repeated) == repeats(text), text


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        r'{"a":"\u003a","a":"x"}',
        r'{"a:":1,"a\u003a":2}',
        r'{"a":1,"b":"\u003a","a":2}',
        '{"a" :1,"a":2}',
    ],
)
def test_a_hidden_colon_does_not_make_up_for_a_repeated_key(text: str) -> None:
    assert read_json(text.encode()).repeated
