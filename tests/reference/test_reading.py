"""Manifests read by Paddock and by the real kubectl: the same words mean the same values."""

import json
from typing import Any

import pytest

from paddock.kubernetes.meta.manifests.load import load
from paddock.kubernetes.meta.manifests.unreadable import UnreadableManifest
from paddock.kubernetes.schema.check import settle
from paddock.kubernetes.schema.finding import Severity
from tests.reference.client import Json, Kubectl
from tests.reference.crds import Crd

pytestmark = pytest.mark.reference

WORDS = """
true True TRUE tRUE false False FALSE yes Yes YES yEs no No NO on On ON off Off OFF y Y n N t f
null Null NULL nULL ~ none None nil
0 1 -1 +1 -0 +0 00 01 007 08 09 0o7 0o8 0O7 0x1f 0X1F 0xg 0b101 0B101 0b2 -0x1f +0x1f -0b11 -017 1_000 1__0 _1 1_ 0x_1f 0x1_f
1.0 1.5 -1.5 +1.5 .5 -.5 +.5 1. 1.e3 1e3 1E3 1e+3 1e-3 1e 1e+ 1.5e3 1_0.5 1.5_0 ._5 .5_0 1.2.3 1..2 . .. ... -. +. + --1 ++1 -+1
9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616
9007199254740993 1e15 1e16 1e20 1e21 1e22 1e300 1e400 123456789012345678901234567890 0.1 0.30000000000000004 1e-7 100000000000000000000
12:30 12:30:45 190:20:30 1:60 2026-01-31 2026-01-31T12:00:00Z 2001-12-14t21:59:43.10-05:00 <<
1Gi 1e3Gi 10m 0.5 1,000 1e3x 0x 0b 0o 0.0 -0.0 1.0e0 5e-324 infinity inf nan NaN Infinity
a/b a:b a#b http://x "1" 'true' "on" '' "" "\\x41" "\\u00e9" 'it''s'
""".split()  # noqa: SIM905 - a list of words reads best as one

STRUCTURES = [
    "spec: {a: &x {b: 1}, c: *x}",
    "spec: {a: &x {b: 1, c: 2}, d: {<<: *x, c: 3}}",
    "spec: {d: {<<: [{a: 1}, {a: 2, b: 3}]}}",
    "spec: {1: a, true: c, 0x10: f, -1: h, 1e3: i, 2026-01-31: k}",
    "spec:\n  a: |\n    x\n     y\n\n  b: >-\n    x\n    y\n  c: |+\n    z\n\n",
    "spec:\n  a: x\n   y\n  b: 'x\n\n    y'",
    "spec: {a: !!str 1, b: !!int '2', c: !!float 3, d: !!bool 'true', e: !!null ''}",
    "spec: [1, [2, {a: [3]}], []]",
    'spec: {"a": 1, "b": [true, null, 1.0, 1e2, "\\u0041", "\\U0001F600"]}',
]

REFUSED = [
    "spec: {null: a}",
    "spec: {~: a}",
    "spec: {[1]: a}",
    "spec: {a: 1",
    "spec: a: b",
    "spec: -",
    "spec: {a: *nowhere}",
    "spec: {a: &x [*x]}",
    "spec: {a: !!int x}",
    "spec:\n\ta: 1",
    "spec: @a",
    "spec: `a",
    "spec: %a",
]

ONLY_KUBECTL_READS = [
    # It takes the last; which of two values is meant nobody can know.
    "spec: {a: 1, a: 2}",
    # It makes a text of the number, and of 1.50 the same text.
    "spec: {1.5: a}",
]
ONLY_PADDOCK_READS = [
    # JSON writes characters beyond the first 65,536 like this, and Paddock reads JSON and YAML with one reader.
    'spec: "\\ud83d\\ude00"',
]


def document(spec: str) -> str:
    """A manifest around a text."""
    return f"apiVersion: reference.paddock.example/v1\nkind: Crate\nmetadata: {{name: words}}\n{spec}\n"


def kubectl_reads(kubectl: Kubectl, text: str) -> Json | None:
    """Return the object that kubectl would send; None when it cannot read the text."""
    ran = kubectl.run("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-", stdin=text)
    if ran.code:
        assert "error parsing" in ran.errors or "error converting" in ran.errors
        return None
    sent: Json = json.loads(ran.output)
    return sent


def paddock_reads(text: str) -> Json | None:
    """Return Paddock's reading without a declaration; None when it cannot read the text, or finds it wrong."""
    try:
        (read,) = load(text.encode(), "test")
    except UnreadableManifest:
        return None
    if any(problem.finding.severity is Severity.ERROR for problem in read.problems):
        return None
    settled: Json = settle(read.data)
    return settled


def same(ours: Any, theirs: Any) -> bool:
    """Equality down to the type; beyond what a floating number holds exactly, only the floating number counts."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if type(theirs) is int and abs(theirs) > 2**53 and type(ours) in (int, float):
        return float(ours) == float(theirs)
    return type(ours) is type(theirs) and ours == theirs


def test_words_mean_the_same(kubectl: Kubectl, crate: Crd) -> None:
    text = document("spec:\n" + "".join(f"  w{number}: {word}\n" for number, word in enumerate(WORDS)))
    theirs, ours = kubectl_reads(kubectl, text), paddock_reads(text)
    assert theirs is not None
    assert ours is not None
    pairs = {word: (ours["spec"][f"w{number}"], theirs["spec"][f"w{number}"]) for number, word in enumerate(WORDS)}
    assert {word: pair for word, pair in pairs.items() if not same(*pair)} == {}


@pytest.mark.parametrize("text", STRUCTURES)
def test_structures_mean_the_same(kubectl: Kubectl, crate: Crd, text: str) -> None:
    theirs, ours = kubectl_reads(kubectl, document(text)), paddock_reads(document(text))
    assert theirs is not None
    assert ours is not None
    assert same(ours["spec"], theirs["spec"])


@pytest.mark.parametrize("text", REFUSED)
def test_both_refuse_to_read(kubectl: Kubectl, crate: Crd, text: str) -> None:
    assert kubectl_reads(kubectl, document(text)) is None
    assert paddock_reads(document(text)) is None


@pytest.mark.parametrize("text", ONLY_KUBECTL_READS)
def test_paddock_refuses_what_is_ambiguous(kubectl: Kubectl, crate: Crd, text: str) -> None:
    assert kubectl_reads(kubectl, document(text)) is not None
    assert paddock_reads(document(text)) is None


@pytest.mark.parametrize("text", ONLY_PADDOCK_READS)
def test_paddock_reads_more(kubectl: Kubectl, crate: Crd, text: str) -> None:
    assert kubectl_reads(kubectl, document(text)) is None
    assert paddock_reads(document(text)) is not None
