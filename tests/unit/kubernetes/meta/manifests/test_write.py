"""A written document is read back as it was, by our reader and by plain YAML readers."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from paddock.kubernetes.meta.manifests.load import load
from paddock.kubernetes.meta.manifests.write import to_json, to_yaml

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.text("0123456789_xobe+-.:T", max_size=8),
    st.sampled_from(
        ["on", "y", "N", "1e3", "08", "0o17", "12:30", "2024-01-01", "<<", "=", "~", "null", "a\nb\n", " a\n b", "\tx\ny", "a \n"]
    ),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXTS, VALUES, min_size=1, max_size=5)


@given(st.lists(OBJECTS, min_size=1, max_size=3))
def test_yaml_is_read_back(objects: list[dict[str, Any]]) -> None:
    text = to_yaml(objects)
    assert [document.data for document in load(text.encode(), "f")] == objects
    assert list(yaml.load_all(text, Loader=yaml.CSafeLoader)) == objects


@given(OBJECTS)
def test_json_is_read_back(value: dict[str, Any]) -> None:
    text = to_json(value)
    assert json.loads(text) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": "on"}, 'b: 1\na: "on"\n'),
        ({"t": "x\ny\n"}, "t: |\n  x\n  y\n"),
        ({"l": [{"a": 1}], "e": [], "o": {}}, "l:\n- a: 1\ne: []\no: {}\n"),
        ({"long": "word " * 40 + "end"}, f"long: {'word ' * 40}end\n"),
    ],
)
def test_layout(value: dict[str, Any], text: str) -> None:
    assert to_yaml([value]) == text


def test_documents_are_separated_and_nothing_is_shared() -> None:
    shared = {"k": [1]}
    assert to_yaml([{"a": shared, "b": shared}, {"c": 1}]) == "a:\n  k:\n  - 1\nb:\n  k:\n  - 1\n---\nc: 1\n"
