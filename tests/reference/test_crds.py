"""Every generated CRD on a real kube-apiserver: taken, established, structural, and served as its file says."""

import pytest

from tests.reference import crds, objects, questions
from tests.reference.answers import Answers
from tests.reference.client import Json
from tests.reference.crds import Crd
from tests.reference.paddock_side import good_objects, name_of

pytestmark = pytest.mark.reference

CRDS = crds.load()
# The first good object of each kind.
OBJECTS: dict[str, Json] = {example.kind: example.document for example in reversed(list(good_objects()))}

each = pytest.mark.parametrize("crd", CRDS, ids=lambda crd: crd.name)


def each_with(subresource: str) -> pytest.MarkDecorator:
    """The CRDs with a subresource."""
    having = [crd for crd in CRDS if any(subresource in version.get("subresources", {}) for version in crd.served)]
    return pytest.mark.parametrize("crd", having, ids=lambda crd: crd.name)


def test_there_are_crds() -> None:
    """An empty directory would let everything below pass."""
    assert CRDS


def test_every_kind_that_a_server_does_not_have_is_there() -> None:
    declared = {name_of(kind) for kind in questions.kinds() if not kind.builtin}
    assert {crd.kind for crd in CRDS} == declared


def test_a_file_is_named_after_its_crd() -> None:
    assert [crd.origin for crd in CRDS] == [f"{crd.name}.yaml" for crd in CRDS]


@each
def test_it_is_served_as_declared(answers: Answers, crd: Crd) -> None:
    assert answers.remember(["served", crd.document], lambda api: list(crds.problems(api, crd))) == []


@each_with("status")
def test_its_status_is_a_subresource(answers: Answers, crd: Crd) -> None:
    thing = OBJECTS[crd.kind]
    assert answers.remember(["status", crd.document, thing], lambda api: objects.status_problems(api, crd, thing)) == []


@each_with("scale")
def test_its_scale_is_a_subresource(answers: Answers, crd: Crd) -> None:
    thing = OBJECTS[crd.kind]
    assert answers.remember(["scale", crd.document, thing], lambda api: objects.scale_problems(api, crd, thing)) == []


@each
def test_its_columns_show_what_an_object_has(answers: Answers, crd: Crd) -> None:
    thing = OBJECTS[crd.kind]
    assert answers.remember(["row", crd.document, thing], lambda api: objects.row_problems(api, crd, thing)) == []
