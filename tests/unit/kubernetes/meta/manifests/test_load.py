"""Documents of YAML and JSON, their data, their problems and their places."""

from typing import Any

import pytest

from paddock.kubernetes.meta.manifests.document import Document
from paddock.kubernetes.meta.manifests.limits import ManifestLimits
from paddock.kubernetes.meta.manifests.load import load
from paddock.kubernetes.meta.manifests.unreadable import UnreadableManifest


def read(text: str | bytes, limits: ManifestLimits | None = None) -> list[Document]:
    return list(load(text if isinstance(text, bytes) else text.encode(), "f.yaml", limits or ManifestLimits()))


def one(text: str | bytes) -> Document:
    (document,) = read(text)
    return document


def problems(text: str) -> list[str]:
    return [f"{p.position.line}:{p.position.column} {p.finding.severity} {p.finding.rule} {p.finding.field}" for p in one(text).problems]


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
        ("---\n---\na: 1\n...\n---\nnull\n", [{"a": 1}]),
        ("# only a comment\n", []),
        ("", []),
        ("%YAML 1.2\n---\na: 1\n", [{"a": 1}]),
        ('{"a": 1, "b": [true, null, 1.5, "x"]}', [{"a": 1, "b": [True, None, 1.5, "x"]}]),
        ('{"a": "\\ud83d\\ude00 \\/ \\u00e9"}', [{"a": "\U0001f600 / é"}]),
        ('{"a": "\\\\ud83d"}', [{"a": "\\ud83d"}]),
        # values one after the other, as `jq -c '.items[]'` writes them
        ('{"a": 1}{"b": "}{"}\n\n{"c": [{}]}\n', [{"a": 1}, {"b": "}{"}, {"c": [{}]}]),
        ("a: {b: c}\r\nd:\r\n- e\r\n", [{"a": {"b": "c"}, "d": ["e"]}]),
        ("a: |\r\n  x\r\n  y\r\n", [{"a": "x\ny\n"}]),
        ("\ufeffa: 1\n", [{"a": 1}]),
        ("a:\t1\n", [{"a": 1}]),
        ("a: !!str 12\nb: !!int '5'\nc: !!null ''\ne: !!bool on\n", [{"a": "12", "b": 5, "c": None, "e": True}]),
        ("a: \"on\"\nb: '5'\n", [{"a": "on", "b": "5"}]),
    ],
)
def test_data(text: str, data: list[Any]) -> None:
    assert [document.data for document in read(text)] == data
    assert not any(document.problems for document in read(text))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_byte_order_marks(encoding: str) -> None:
    assert one("a: é\n".encode(encoding)).data == {"a": "é"}


def test_aliases_are_shared() -> None:
    document = one("a: &x {k: [1]}\nb: *x\nc: &s word\nd: *s\n")
    assert document.data == {"a": {"k": [1]}, "b": {"k": [1]}, "c": "word", "d": "word"}
    assert document.position(("b", "k", 0)) == (1, 12)


def test_merge_keys() -> None:
    text = "base: &b {x: 1, z: 2}\nm:\n  <<: *b\n  x: 3\np:\n  <<: [{x: 7}, *b]\nq:\n  '<<': 1\n"
    document = one(text)
    assert document.data["m"] == {"x": 3, "z": 2}
    assert document.data["p"] == {"x": 7, "z": 2}
    assert document.data["q"] == {"<<": 1}
    assert not document.problems
    assert document.position(("m", "z")) == (1, 20)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", ["4:3 error yaml/duplicate-key b.c"]),
        ('{"a": 1, "a": 2}', ["1:10 error yaml/duplicate-key a"]),
        ("l:\n- x: 1\n- z: 1\n  z: 2\n", ["4:3 error yaml/duplicate-key l[1].z"]),
        ("m:\n  <<: 1\n", ["2:3 error yaml/key m"]),
        ("a: .nan\nb: [-.inf]\n", ["1:4 error yaml/number a", "2:5 error yaml/number b[0]"]),
        ("a: !!python/object:os.system x\n", ["1:4 error yaml/tag a"]),
        ("a: !!binary aGk=\nb: !thing {}\n", ["1:4 error yaml/tag a", "2:4 error yaml/tag b"]),
        ("a: !!int x\n", ["1:4 error yaml/number a"]),
        ("on: 1\n", ["1:1 warning yaml/key true"]),
        ("a: {0x10: b}\n", ["1:5 warning yaml/key a.16"]),
        ("1.10: b\n", ["1:1 error yaml/key "]),
        ("~: b\n", ["1:1 error yaml/key "]),
        ("? [a]\n: b\n", ["1:3 error yaml/key "]),
        ("a: {{ .Values.x }}\n", ["1:5 error yaml/key a"]),
        ("- a\n- b\n", ["1:1 error yaml/not-a-mapping "]),
        ("word\n", ["1:1 error yaml/not-a-mapping "]),
        ("a: {1: b}\n", []),
        ("true: b\n", []),
    ],
)
def test_problems(text: str, expected: list[str]) -> None:
    assert problems(text) == expected


def test_a_key_that_stands_twice_names_both_places() -> None:
    (problem,) = one("x: 1\nz: 2\nx: 3\n").problems
    assert problem.position == (3, 1)
    assert problem.finding.message == 'the key "x" stands twice, first at 1:1; keep one of them'


def test_keys_as_kubectl_reads_them() -> None:
    assert one("1: a\n0x10: b\nNo: c\ntrue: d\n").data == {"1": "a", "16": "b", "false": "c", "true": "d"}


POSITIONS = """\
apiVersion: v1
spec:
  cpu: {cores: 2}
  disks:
  - name: root
    size: 10Gi
  -
    name: data
  text: |
    line
  empty:
"""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ((), (1, 1)),
        (("apiVersion",), (1, 13)),
        (("spec",), (2, 1)),
        (("spec", "cpu", "cores"), (3, 16)),
        (("spec", "cpu", "sockets"), (3, 3)),
        (("spec", "disks"), (4, 3)),
        (("spec", "disks", 0), (5, 5)),
        (("spec", "disks", 0, "size"), (6, 11)),
        (("spec", "disks", 1, "size"), (8, 5)),
        (("spec", "disks", 7, "size"), (4, 3)),
        (("spec", "text"), (9, 9)),
        (("spec", "empty"), (11, 3)),
        (("spec", "nothing", "at", 0, "all"), (2, 1)),
        (("metadata", "name"), (1, 1)),
    ],
)
def test_positions(path: tuple[str | int, ...], expected: tuple[int, int]) -> None:
    assert one(POSITIONS).position(path) == expected


def test_positions_of_keys() -> None:
    assert one(POSITIONS).position(("spec", "disks", 0, "size"), of_key=True) == (6, 5)


def test_positions_in_later_documents_and_values() -> None:
    first, second = read("a: 1\n---\n\nb: {c: 2}\n")
    assert first.start == (1, 1)
    assert second.position(("b", "c")) == (4, 8)
    jsons = read('{"a": 1}{"b": 2}\n{\n"c": 3}')
    assert jsons[1].position(("b",)) == (1, 15)
    assert jsons[2].position(("c",)) == (3, 6)


def test_written_words() -> None:
    document = one("v: 1.10\nm: 0777\nl: [~]\n")
    assert [document.written(path) for path in (("v",), ("m",), ("l", 0), ("l",), ("x",))] == ["1.10", "0777", "~", None, None]


def test_objects_of_a_list_keep_their_places_and_problems() -> None:
    document = one("kind: List\nitems:\n- kind: A\n  x: 1\n- kind: B\n  z: 1\n  z: 2\n- 5\n")
    first, second, third = document.items("items")
    assert [first.data, second.data, third.data] == [{"kind": "A", "x": 1}, {"kind": "B", "z": 2}, {}]
    assert first.position(("x",)) == (4, 6)
    assert second.start == (5, 3)
    assert [(problem.position, problem.finding.path) for problem in second.problems] == [((7, 3), ("z",))]
    assert not first.problems and not third.problems


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a: b: c\n",
            'f.yaml:1:5: a second ": " in one line, or a wrong indentation; quote the value, or align the line with its neighbours',
        ),
        ("a:\n\tb: c\n", "f.yaml:2:1: a tab where YAML wants spaces; indent with spaces"),
        ("a: @b\n", "f.yaml:1:4: nothing starts with '@'; quote the value"),
        ('a: "b\n', "f.yaml:1:4: a quoted text that does not end; close the quotes"),
        ("a: 1\nb\nc: 2\n", 'f.yaml:2:1: a line that is neither a key nor a value; write it as "key: value"'),
        ("a: *x\n", "f.yaml:1:4: the alias *x has no anchor &x before it; write the value out, or add the anchor"),
        ("a: &x [*x]\n", "f.yaml:1:8: the alias *x stands inside of what it stands for; write the value out"),
        ('{"a": 1} b', 'f.yaml:1:10: something follows the end of the document; separate documents with a line "---"'),
        ('{"a": 1}{"b": 2', "f.yaml:1:9: an object in braces that does not go on; separate members with commas, end with }"),
        (b"a: b\xff\n", "f.yaml:1:5: byte 4 (0xff) is not UTF-8; save it as UTF-8"),
        (b"a: 1\nb: \x00", "f.yaml:2:4: the control character NUL cannot stand in YAML or JSON; remove it"),
        ("a: \x1b[0m", "f.yaml:1:4: the control character U+001B cannot stand"),
        (b"\x00\x01\xff\xfe", "f.yaml: is binary data; a manifest is text in UTF-8; is this the right file?"),
        (b"\x1f\x8b\x08\x00", "f.yaml: is gzip data"),
        ("a".encode("utf-32"), "f.yaml: is written in UTF-32; save it as UTF-8"),
        (b"\xff\xfea", "f.yaml:1:1: byte 2 (0x61) is not UTF-16"),
        ('"\\ud800"', "f.yaml:1:4: half of a surrogate pair"),
    ],
)
def test_unreadable(text: str | bytes, expected: str) -> None:
    with pytest.raises(UnreadableManifest) as caught:
        read(text)
    assert str(caught.value).startswith(expected)


def test_documents_before_the_trouble_are_good() -> None:
    documents = load(b"a: 1\n---\nb: [\n", "f.yaml")
    assert next(documents).data == {"a": 1}
    with pytest.raises(UnreadableManifest):
        next(documents)


BOMB = (
    "a: &a [" + "x," * 9 + "]\n" + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BOMB, "more than 1000 values in one object, aliases counted"),
        ("a: [" + "1," * 1001 + "]", "more than 1000 values in one object"),
        ("a: " + "[" * 31 + "]" * 31, "nested deeper than 30 levels"),
        ("- " * 31, "nested deeper than 30 levels"),
        ("{a: " * 31, "nested deeper than 30 levels"),
        ("---\n" * 51, "more than 50 documents in one input"),
        ("{}" * 51, "more than 50 documents in one input"),
        ("items:\n" + "- {}\n" * 1100, "more than 50 objects in one list"),
        ("items:\n- a: [" + "1," * 1001 + "]", "more than 1000 values in one object"),
        ("#" * 70_000, "larger than 64 KiB"),
    ],
)
def test_limits(text: str, expected: str) -> None:
    with pytest.raises(UnreadableManifest, match=expected):
        read(text, ManifestLimits(size=65536, documents=50, values=1000, depth=30))


def test_objects_in_a_list_count_one_by_one() -> None:
    text = "items:\n" + "".join(f"- n: {n}\n  l: [{'x,' * 90}]\n" for n in range(40))
    (document,) = read(text, ManifestLimits(size=65536, documents=50, values=1000, depth=30))
    assert len(document.data["items"]) == 40
