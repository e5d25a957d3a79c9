"""Every generated CRD on a real kube-apiserver: taken, established, structural, and served as its file says."""

import pytest

from tests.reference import crds, objects, questions
from tests.reference.client import Api, Json
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
def test_it_is_served_as_declared(api: Api, installed: list[Crd], crd: Crd) -> None:
    assert crds.problems(api, crd) == []


@each_with("status")
def test_its_status_is_a_subresource(api: Api, installed: list[Crd], crd: Crd) -> None:
    assert objects.status_problems(api, crd, OBJECTS[crd.kind]) == []


@each_with("scale")
def test_its_scale_is_a_subresource(api: Api, installed: list[Crd], crd: Crd) -> None:
    assert objects.scale_problems(api, crd, OBJECTS[crd.kind]) == []


@each
def test_its_columns_show_what_an_object_has(api: Api, installed: list[Crd], crd: Crd) -> None:
    assert objects.row_problems(api, crd, OBJECTS[crd.kind]) == []
