"""JSON Schemas for editors, as an independent validator reads them."""

import json
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from paddock.kubernetes.meta.objects import Resource
from paddock.kubernetes.schema.generate import jsonschema
from paddock.kubernetes.schema.kind import Kind
from tests.golden import Golden
from tests.kit.declarations import documents
from tests.unit.kubernetes.schema.sample import SAMPLE, Disk, Sample, declare

DOCUMENT = jsonschema.document(SAMPLE)


def _validator(document: dict[str, Any]) -> jsonschema_rs.Validator:
    jsonschema_rs.meta.validate(document)
    return jsonschema_rs.Draft202012Validator(document, validate_formats=True, pattern_options=jsonschema_rs.RegexOptions())


def test_the_whole_schema(golden: Golden) -> None:
    golden("sample.schema.json", json.dumps(DOCUMENT, indent=2) + "\n")


@pytest.mark.parametrize("document", [documents.fullest(SAMPLE), documents.least(SAMPLE)], ids=["fullest", "least"])
def test_good_documents_pass(document: dict[str, Any]) -> None:
    assert [error.message for error in _validator(DOCUMENT).iter_errors(document)] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"apiVersion": "test.paddock.dev/v2"},
        {"kind": "Other"},
        {"sepc": {}},
        {"spec": {"multiqueue": True, "multiQueue": True}},
        {"spec": {"labels": {"-x": "v"}}},
        {"spec": {"tags": ["a", "a"]}},
    ],
)
def test_an_editor_marks_what_a_crd_cannot_say(wrong: dict[str, Any]) -> None:
    assert not _validator(DOCUMENT).is_valid({**documents.least(SAMPLE), **wrong})


def test_every_served_version_is_allowed() -> None:
    validator = _validator(DOCUMENT)
    for version in ("v1", "v1beta1"):
        assert validator.is_valid({**documents.least(SAMPLE), "apiVersion": f"test.paddock.dev/{version}"})


def test_classes_of_one_name_stay_apart() -> None:
    other = declare("Disk", speed=int | None)
    spec = declare("Spec", a=Disk | None, b=other | None)
    cls = declare("Pair", base=Resource, spec=spec | None)
    definitions = jsonschema.document(Kind(group="x.dev", kind="Pair", plural="pairs", cls=cls, dialect="x"))["$defs"]
    assert set(definitions["Disk"]["properties"]) == {"name", "size", "bus"}
    assert set(definitions["Disk2"]["properties"]) == {"speed"}


def test_an_object_stands_once() -> None:
    again = declare("Again", base=Sample, more=Disk | None)
    document = jsonschema.document(Kind(group="x.dev", kind="Again", plural="agains", cls=again, dialect="x"))
    assert [name for name in document["$defs"] if name.startswith("Disk")] == ["Disk"]


def test_one_schema_for_all_chooses_by_kind() -> None:
    other = msgspec.structs.replace(SAMPLE, kind="Other")
    document = jsonschema.selection([(SAMPLE, "sample.json"), (other, "other.json")])
    jsonschema_rs.meta.validate(document)
    assert [choice["then"]["$ref"] for choice in document["allOf"]] == ["sample.json", "other.json"]
    assert document["allOf"][1]["if"]["properties"]["kind"] == {"const": "Other"}


def test_the_schema_may_have_a_name() -> None:
    assert jsonschema.document(SAMPLE, "https://example.com/sample.json")["$id"] == "https://example.com/sample.json"
    assert "$id" not in DOCUMENT
