"""Selectors: the conditions that were written, and what a long selector costs."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.kubernetes.meta import matching
from paddock.kubernetes.meta.matching import BadSelector, FieldQuery, LabelQuery, Requirement, parse_fields, parse_labels

_VALUES = ("", "a", "b", "1", "2", "30")
_KEYS = tuple("klmnopqrstuv")
_operators = st.one_of(
    st.sampled_from(["", "!"]).map(lambda mark: (mark, "")),
    st.tuples(st.just(""), st.tuples(st.sampled_from(["=", "==", "!="]), st.sampled_from(_VALUES)).map("".join)),
    st.tuples(st.just(""), st.tuples(st.sampled_from([">", "<"]), st.sampled_from(["1", "2", "30", "-4"])).map("".join)),
    st.tuples(
        st.just(""),
        st.tuples(st.sampled_from(["in", "notin"]), st.lists(st.sampled_from(_VALUES[1:]), min_size=1, max_size=3)).map(
            lambda said: f" {said[0]} ({','.join(said[1])})"
        ),
    ),
)
_conditions = st.tuples(st.sampled_from(_KEYS), _operators).map(lambda said: f"{said[1][0]}{said[0]}{said[1][1]}")
_labels = st.dictionaries(st.sampled_from(_KEYS), st.sampled_from(_VALUES))


@pytest.mark.spec("kube-api", 38)
@pytest.mark.hypothesis
@given(st.lists(_conditions, min_size=1, max_size=30), st.lists(_labels, min_size=1, max_size=10))
def test_a_selector_means_all_of_its_conditions(conditions: list[str], objects: list[dict[str, str]]) -> None:
    query = parse_labels(",".join(conditions))
    alone = [parse_labels(each) for each in conditions]
    for labels in objects:
        expected = all(each.matches(labels) for each in alone)
        assert query.matches(labels) is expected
        assert LabelQuery(query.requirements).matches(labels) is expected, "however many there are"
        if expected:
            assert all(labels.get(key) in values for key, values in query.equalities)


class Counted(Mapping[str, str]):
    """Labels that count what is read of them."""

    def __init__(self, labels: dict[str, str]) -> None:
        self.labels = labels
        self.count = 0

    def __getitem__(self, key: str) -> str:
        self.count += 1
        return self.labels[key]

    def __iter__(self) -> Iterator[str]:
        self.count += len(self.labels)
        return iter(self.labels)

    def __len__(self) -> int:
        return len(self.labels)


_LONG = [
    (["!a"] * 16000, True),
    (["k=v"] * 16000, True),
    ([f"k!={number}" for number in range(5000)], True),
    ([f"k{number}!=v" for number in range(5000)], True),
    ([f"!k{number}" for number in range(5000)], True),
    ([f"k{number}" for number in range(5000)], False),
    ([f"n>{number}" for number in range(900)], True),
    ([f"n<{number}" for number in range(900)], False),
    (["k=v", *(f"k{number} notin (a)" for number in range(5000)), "!k"], False),
]


@pytest.mark.spec("kube-api", 38)
@pytest.mark.parametrize(("conditions", "expected"), _LONG, ids=[each[0][-1] for each in _LONG])
def test_a_long_selector_reads_an_object_once(conditions: list[str], expected: bool) -> None:
    labels = Counted({"k": "v", "n": "1000", "other": "x"})
    assert parse_labels(",".join(conditions)).matches(labels) is expected
    assert labels.count < 30


def test_one_condition_stays_as_it_was_written() -> None:
    found = parse_labels("a in (x,y),b!=z,a in (y,z)")
    assert found.requirements == (Requirement("a", "in", frozenset("y")), Requirement("b", "!=", frozenset("z")))


@pytest.mark.spec("kube-api", 39)
def test_a_field_selector_has_a_bound() -> None:
    repeated: FieldQuery = parse_fields(",".join(["metadata.name!=a"] * 5000))
    assert len(repeated.conditions) == 1
    most = [f"metadata.name!=a{number}" for number in range(matching._MOST_FIELDS)]
    values: dict[str, Any] = {"metadata.name": "b"}
    assert parse_fields(",".join(most)).matches(values.__getitem__)
    with pytest.raises(BadSelector, match="257 different conditions, and at most 256 are allowed"):
        parse_fields(",".join([*most, "metadata.name!=b"]))
