"""Both judges on the same objects: what Paddock refuses a real kube-apiserver refuses, and the other way round.

What differs is listed and explained in `differences.toml`.
"""

import json

import pytest

from paddock.kubernetes.schema.kind import Kind
from tests.kit.declarations import documents
from tests.reference import crds, differences, questions
from tests.reference.answers import Answers
from tests.reference.client import Json
from tests.reference.differences import Case, Difference, Shown
from tests.reference.paddock_side import good_objects, judge, name_of, resource_of
from tests.reference.verdict import Question, Stored

pytestmark = [pytest.mark.reference, pytest.mark.long]

INSTALLED = {crd.kind for crd in crds.load()}
KINDS = tuple(kind for kind in questions.kinds() if kind.builtin or name_of(kind) in INSTALLED)
CUSTOM = tuple(kind for kind in KINDS if not kind.builtin)
DRAWN = 50

each_kind = pytest.mark.parametrize("kind", KINDS, ids=name_of)


each_custom = pytest.mark.parametrize("kind", CUSTOM, ids=name_of)


@pytest.fixture(scope="module")
def known() -> list[differences.Entry]:
    """Return the explained differences."""
    return differences.read()


@pytest.fixture(scope="module")
def found() -> dict[Difference, Shown]:
    """Collect the differences of this module."""
    return {}


@pytest.fixture(scope="module")
def asked() -> set[str]:
    """The tests of this module that have asked everything they ask."""
    return set()


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """The objects of the dialects' own tests."""
    return list(questions.recorded(tmp_path_factory.mktemp("recorded") / "admissions", set(map(name_of, KINDS))))


@pytest.fixture(scope="module")
def bases(answers: Answers, cases: list[Case]) -> dict[str, Stored]:
    """A good object of each kind, as the server stores it."""
    return {name_of(kind): base for kind in KINDS if (base := _base(answers, kind, cases))}


def _base(answers: Answers, kind: Kind, cases: list[Case]) -> Stored | None:
    """A good object that both judges accept: the least document, an example, or one from the dialects' tests."""
    resource = resource_of(kind)
    for thing in _good(kind, cases):
        named: Json = {**thing, "metadata": {"name": "base", "namespace": "bases"}}
        named.pop("status", None)
        if judge(Question(named, resource)).accepted and answers.ask(Question(named, resource)).accepted:
            return answers.stored(resource, named)
    return None


def _good(kind: Kind, cases: list[Case]) -> list[Json]:
    """Objects to try, the smallest first, because whatever else they say takes time to judge."""
    things = [documents.least(kind)]
    things += [example.document for example in good_objects() if example.kind == name_of(kind)]
    things += [case.question.thing for case in cases if case.kind == name_of(kind) and case.ours.accepted]
    return sorted(things, key=lambda thing: len(json.dumps(thing)))


def _compare(answers: Answers, cases: list[Case], known: list[differences.Entry], found: dict[Difference, Shown]) -> None:
    seen = differences.compare_all(cases, answers.ask_all(case.question for case in cases))
    found |= seen
    unexplained = differences.unexplained(seen, known)
    assert not unexplained, unexplained


@each_kind
def test_there_is_a_good_object_to_break(bases: dict[str, Stored], kind: Kind) -> None:
    """Without one, both would refuse a broken object for another reason."""
    assert name_of(kind) in bases


@each_kind
def test_broken_objects_get_the_same_verdict(
    answers: Answers, bases: dict[str, Stored], known: list[differences.Entry], found: dict[Difference, Shown], asked: set[str], kind: Kind
) -> None:
    _compare(answers, list(questions.mutated(kind, bases.get(name_of(kind)))), known, found)
    asked.add(name_of(kind))


@each_custom
def test_good_objects_get_the_same_verdict(
    answers: Answers, known: list[differences.Entry], found: dict[Difference, Shown], asked: set[str], kind: Kind
) -> None:
    """A server accepts every document that the declarations accept; or both refuse it by the same rule across fields."""
    _compare(answers, list(questions.drawn(kind, DRAWN)), known, found)
    asked.add(f"good {name_of(kind)}")


def test_every_sort_of_scalar_gets_the_same_verdict(
    answers: Answers, bases: dict[str, Stored], known: list[differences.Entry], found: dict[Difference, Shown], asked: set[str]
) -> None:
    """Also of what Paddock accepts: texts, numbers and quantities on both sides of every edge."""
    seen: set[object] = set()
    _compare(answers, [case for kind in CUSTOM for case in questions.probed(kind, bases.get(name_of(kind)), seen)], known, found)
    asked.add("scalars")


def test_the_objects_of_the_dialects_tests_get_the_same_verdict(
    answers: Answers, cases: list[Case], known: list[differences.Entry], found: dict[Difference, Shown], asked: set[str]
) -> None:
    """Among them is an object against every rule across fields that the server has a form of."""
    _compare(answers, cases, known, found)
    asked.add("recorded")


def test_every_form_of_a_rule_refuses_something(answers: Answers, cases: list[Case]) -> None:
    refused = [case for case in cases if not case.ours.accepted]
    verdicts = answers.ask_all(case.question for case in refused)
    seen = {rule for case, answer in zip(refused, verdicts, strict=True) for rule in differences.agreed(case, answer)}
    assert {rule for kind in KINDS for rule in questions.shared_rules(kind)} - seen == set()


def test_no_explanation_is_stale(known: list[differences.Entry], found: dict[Difference, Shown], asked: set[str]) -> None:
    if asked != {"scalars", "recorded", *map(name_of, KINDS), *(f"good {name_of(kind)}" for kind in CUSTOM)}:
        pytest.skip("needs whole-module: only part of the objects was asked about")
    assert differences.stale(found, known) == []
