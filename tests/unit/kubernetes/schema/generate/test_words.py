"""Declarations in words."""

import pytest

from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.generate import words
from tests.unit.kubernetes.schema.sample import Spec

PROPERTIES = shape.shape_of(Spec).properties


@pytest.mark.parametrize(
    ("name", "kind", "allowed", "default"),
    [
        ("count", "integer", "greater than or equal to 1", "1"),
        ("small", "integer", "32 bits", ""),
        ("share", "number", "between 0 and 1, inclusive", ""),
        ("running", "boolean", "", "true"),
        ("nickname", "string", "2 to 8 characters; a small word", ""),
        ("storageClass", "string", "a DNS-1123 subdomain; empty is the same as absent", ""),
        ("password", "string", "at least 4 characters", ""),
        ("memory", "quantity", "at least 1Mi; whole bytes", '"1Gi"'),
        ("since", "time", "or null", ""),
        ("mode", "string", "one of `Fast`, `Safe`, `Off`; or null", ""),
        ("tags", "list of strings", "at least 1 entry; at most 3 entries; no entry twice; each not empty", ""),
        ("disks", "list of objects", "at most 4 entries; unique by name", "[]"),
        ("modes", "list of strings", "", '["a","b"]'),
        ("limits", "map of quantities", "", ""),
        ("extra", "free object", "", ""),
        ("anything", "anything", "", ""),
        ("agent", "object", "", ""),
    ],
)
def test_the_cells_of_a_field(name: str, kind: str, allowed: str, default: str) -> None:
    prop = PROPERTIES[name]
    assert (words.type_of(prop.shape), "; ".join(words.allowed(prop.shape)), words.default_of(prop)) == (kind, allowed, default)


@pytest.mark.parametrize(("text", "sentence"), [("", ""), ("A word", "A word."), ("A word.", "A word."), ("Why?", "Why?")])
def test_texts_end_in_a_full_stop(text: str, sentence: str) -> None:
    assert words.sentence(text) == sentence


def test_an_object_without_a_text_is_described_by_its_class() -> None:
    disks = PROPERTIES["disks"].shape
    assert isinstance(disks, shape.ListShape)
    assert words.own_text(disks.item) == "A disk."
