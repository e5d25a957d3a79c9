"""Requirements for every declaration: texts, sound defaults, names and paths that exist."""

import json
from collections import Counter
from collections.abc import Iterator

import jsonschema_rs
import pytest

from paddock.kubernetes import catalog
from paddock.kubernetes.schema import shape
from paddock.kubernetes.schema.finding import Path, format_path
from paddock.kubernetes.schema.formats import FORMATS
from paddock.kubernetes.schema.generate import crd, files, jsonschema, structural, words
from paddock.kubernetes.schema.generate.structural import Schema
from paddock.kubernetes.schema.kind import Kind
from tests.kit.declarations import documents
from tests.kit.declarations import structural as rules
from tests.kit.declarations.mutations import mutations

KINDS = catalog.every()
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind.kind}.{kind.group}".rstrip("."))


def _properties(kind: Kind) -> Iterator[tuple[Path, shape.Property]]:
    for place in documents.places(kind):
        if isinstance(place.shape, shape.ObjectShape):
            yield from (((*place.path, prop.name), prop) for prop in place.shape.properties.values())


@each_kind
def test_every_field_has_a_text(kind: Kind) -> None:
    assert [format_path(path) for path, prop in _properties(kind) if not words.own_text(prop.shape)] == []


@each_kind
def test_texts_are_sentences(kind: Kind) -> None:
    texts = [(format_path(path), prop.field.text) for path, prop in _properties(kind) if prop.field.text]
    assert [path for path, text in texts if not text.endswith((".", "...", ")"))] == []
    assert [path for path, text in texts if "  " in text or "\n" in text] == []


@each_kind
def test_every_rule_has_a_text_and_an_id_of_its_dialect(kind: Kind) -> None:
    found = [*((rule.id, rule.text) for rule in kind.rules), *((rule.id, rule.text) for rule in kind.transitions)]
    assert [name for name, text in found if not text] == []
    assert [name for name, count in Counter(name for name, _ in found).items() if count > 1] == []
    assert [name for name, _ in found if "/" not in name] == []


@each_kind
def test_names_in_declarations_are_known(kind: Kind) -> None:
    for place in documents.places(kind):
        field = place.shape.field
        assert field.format is None or field.format in FORMATS
        assert field.key_format is None or field.key_format in FORMATS
        if isinstance(place.shape, shape.ListShape) and field.keys:
            assert isinstance(place.shape.item, shape.ObjectShape)
            assert set(field.keys) <= place.shape.item.properties.keys()
        if isinstance(place.shape, shape.ObjectShape):
            assert not place.shape.aliases.keys() & place.shape.properties.keys()
            assert not set(place.shape.cls.STRANGERS) & place.shape.properties.keys()
        for word, hint in field.hints.items():
            assert word not in field.enum
            assert hint


@each_kind
def test_columns_and_scale_look_at_fields_that_there_are(kind: Kind) -> None:
    schema = structural.root(shape.shape_of(kind.cls))
    paths = [column.path for column in kind.columns]
    if kind.scale:
        paths += [kind.scale.replicas, kind.scale.status_replicas, kind.scale.selector]
    assert [path for path in paths if not _exists(schema, path)] == []


def _exists(schema: Schema, path: str) -> bool:
    """Return whether a JSONPath can find something; brackets select among the entries of a list or a map."""
    for step in path.lstrip(".").replace("[", ".[").split("."):
        if step.startswith("[") or step.endswith("]"):
            inner = schema.get("items") or schema.get("additionalProperties")
            # A condition such as [?(@.type=='Ready')] has dots of its own.
            schema = inner if step.startswith("[") and inner else schema
        elif schema.get("x-kubernetes-preserve-unknown-fields") or step == "metadata":
            return True
        elif "additionalProperties" in schema:
            schema = schema["additionalProperties"]
        elif step not in schema.get("properties", {}):
            return False
        else:
            schema = schema["properties"][step]
    return True


CRDS = [kind for kind in KINDS if crd.wanted(kind)]
each_crd = pytest.mark.parametrize("kind", CRDS, ids=crd.name_of)


@each_crd
def test_the_crd_is_structural(kind: Kind) -> None:
    assert rules.problems(crd.schema(kind)) == []


@each_crd
def test_the_crd_fits_into_a_request(kind: Kind) -> None:
    """etcd takes 1.5 MiB, and the CRD's own fields need some of it."""
    assert len(json.dumps(crd.manifest(kind))) < 1_200_000


# What a schema for editors cannot say; everything else that breaks a constraint is marked in the editor, too.
UNSAID = ("more than 64 bits", "two entries with the same", "against duration", "against cidr", "against namespaced-name", "below ")


@each_kind
def test_the_json_schema_takes_what_is_good_and_refuses_what_is_not(kind: Kind) -> None:
    document = jsonschema.document(kind)
    jsonschema_rs.meta.validate(document)
    # These patterns are read by an engine without lookaround and backreferences, as a kube-apiserver's is.
    options = jsonschema_rs.RegexOptions()
    validator = jsonschema_rs.Draft202012Validator(document, validate_formats=True, pattern_options=options)
    for good in (documents.fullest(kind), documents.least(kind)):
        assert [error.message for error in validator.iter_errors(good)] == []
    taken = [mutation for mutation in mutations(kind) if validator.is_valid(mutation.thing)]
    assert [f"{format_path(each.path)}: {each.what}" for each in taken if not each.what.startswith(UNSAID)] == []


def test_everything_generated_comes_out_the_same_again() -> None:
    for make in (files.crds, files.openapi_documents, files.json_schemas):
        assert make(KINDS) == make(KINDS)
    texts = {kind.dialect: kind.dialect for kind in KINDS}
    assert files.reference_pages(KINDS, texts) == files.reference_pages(KINDS, texts)
