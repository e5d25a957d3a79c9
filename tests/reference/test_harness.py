"""The harness itself, proved on a CRD made by hand: what it asks, what it reads, and that it sees what it must not overlook."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.reference import crds, differences, objects, verdict
from tests.reference.client import Api, Json, Kubectl, UnknownKind
from tests.reference.crds import Crd
from tests.reference.differences import Case, Difference, Side
from tests.reference.verdict import Complaint, Question, Verdict

pytestmark = pytest.mark.reference

KIND = "Crate.reference.paddock.example"
GOOD: Json = {
    "apiVersion": "reference.paddock.example/v1",
    "kind": "Crate",
    "metadata": {"name": "one", "namespace": "default"},
    "spec": {"color": "red", "items": [{"name": "a", "weight": "2kg"}]},
}
REFUSED = Verdict(False, (Complaint("spec.color", "crate/color"),))


@pytest.fixture(scope="module")
def crate(api: Api) -> Iterator[Crd]:
    """The hand-made CRD, installed."""
    (crd,) = crds.load(Path(__file__).parent / "harness")
    crds.install(api, [crd])
    yield crd
    api.request("DELETE", f"{crds.PATH}/{crd.name}")


def changed(path: str, value: Any) -> Json:
    """The good object with one value at a plain path."""
    return objects.with_value(GOOD, path, value)


def edited(crd: Crd, edit: str, value: Any) -> Crd:
    """The CRD with one member of its first version, or of its spec, replaced."""
    document = copy.deepcopy(crd.document)
    target = document["spec"]["versions"][0] if edit in document["spec"]["versions"][0] else document["spec"]
    target[edit] = value
    return Crd(crd.origin, document)


def test_a_good_crd_has_no_problems(api: Api, crate: Crd) -> None:
    assert crds.problems(api, crate) == []


@pytest.mark.parametrize(
    ("edit", "value", "said"),
    [
        ("additionalPrinterColumns", [], "columns declared"),
        ("subresources", {"status": {}}, "subresources declared"),
        ("scope", "Cluster", "discovery has namespaced"),
        ("names", {"plural": "crates", "kind": "Crate", "shortNames": ["box"]}, "names.shortNames"),
    ],
)
def test_a_server_that_serves_something_else_is_noticed(api: Api, crate: Crd, edit: str, value: Any, said: str) -> None:
    assert any(said in problem for problem in crds.problems(api, edited(crate, edit, value)))


def test_a_crd_that_is_not_structural_is_refused_with_its_field(api: Api, crate: Crd) -> None:
    bad = edited(crate, "schema", {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"properties": {}}}}})
    bad.document["metadata"]["name"] = "crates.refused.paddock.example"
    bad.document["spec"]["group"] = "refused.paddock.example"
    with pytest.raises(crds.Refused, match=r"openAPIV3Schema\.properties\[spec\]\.type: Required value"):
        crds.install(api, [bad])


def test_a_crd_with_an_unknown_member_is_refused(api: Api, crate: Crd) -> None:
    with pytest.raises(crds.Refused, match="unknown field"):
        crds.install(api, [edited(crate, "sope", "Namespaced")])


@pytest.mark.parametrize(
    ("thing", "field", "rule"),
    [
        pytest.param(changed("spec.color", "green"), "spec.color", "FieldValueNotSupported", id="enum"),
        pytest.param(changed("spec.color", 7), "spec.color", "FieldValueTypeInvalid", id="type"),
        pytest.param(changed("spec.replicas", 10), "spec.replicas", "FieldValueInvalid", id="maximum"),
        pytest.param(changed("spec", {}), "spec.color", "FieldValueRequired", id="required"),
        pytest.param(changed("spec.lid", "NO"), "spec.lid", "FieldValueInvalid", id="pattern"),
        pytest.param(changed("spec.items", [{"name": x} for x in "abc"]), "spec.items", "FieldValueTooMany", id="max-items"),
        pytest.param(changed("spec.items", [{"name": "a"}] * 2), "spec.items[1]", "FieldValueDuplicate", id="map-key"),
        pytest.param(changed("spec.labels", {"a.b/c": "x" * 6}), "spec.labels.a.b/c", "FieldValueTooLong", id="map-value"),
        pytest.param(changed("spec", {"color": "glass", "lid": "flat"}), "spec", "FieldValueInvalid", id="rule"),
        pytest.param(changed("spec.colour", "red"), "spec.colour", verdict.UNKNOWN, id="unknown-field"),
        pytest.param(changed("spec.items", [{"name": "a", "nmae": ""}]), "spec.items[0].nmae", verdict.UNKNOWN, id="unknown-item"),
        pytest.param(changed("metadata.name", "No_Name"), "metadata.name", "FieldValueInvalid", id="name"),
        pytest.param(changed("metadata.labels", 5), "", verdict.UNREADABLE, id="unreadable"),
    ],
)  # fmt: skip
def test_a_refusal_names_the_field(api: Api, crate: Crd, thing: Json, field: str, rule: str) -> None:
    answer = verdict.ask(api, Question(thing))
    assert not answer.accepted
    assert (field, rule) in [(complaint.field, complaint.rule) for complaint in answer.complaints]


def test_a_good_object_is_accepted_and_not_stored(api: Api, crate: Crd) -> None:
    assert verdict.ask(api, Question(GOOD)) == Verdict(True)
    assert api.request("GET", f"{api.collection(GOOD)}/one").status == 404


def test_a_change_is_judged_against_the_old_form(api: Api, crate: Crd) -> None:
    blue = changed("spec.color", "blue")
    assert verdict.ask(api, Question(blue)).accepted
    answer = verdict.ask(api, Question(blue, old=GOOD))
    assert [(each.field, each.rule) for each in answer.complaints] == [("spec.color", "FieldValueInvalid")]
    assert verdict.ask(api, Question(changed("spec.replicas", 3), old=GOOD)).accepted
    assert api.request("GET", f"{api.collection(GOOD)}/one").status == 404


def test_an_answer_that_judges_nothing_is_no_verdict(api: Api, crate: Crd) -> None:
    with objects.stored(api, GOOD), pytest.raises(verdict.NoVerdict, match="already exists"):
        verdict.ask(api, Question(GOOD))
    with pytest.raises(UnknownKind):
        verdict.ask(api, Question({**GOOD, "kind": "Cradle"}))


def test_many_questions_are_answered_in_order(api: Api, crate: Crd) -> None:
    sizes = [number % 20 for number in range(200)]
    answers = verdict.ask_all(api, (Question(changed("spec.replicas", size)) for size in sizes))
    assert [answer.accepted for answer in answers] == [size <= 9 for size in sizes]


@pytest.mark.parametrize("check", [objects.status_problems, objects.scale_problems, objects.row_problems])
def test_the_subresources_and_columns_of_a_good_crd_work(api: Api, crate: Crd, check: Any) -> None:
    assert check(api, crate, GOOD) == []


def test_wrong_expectations_of_an_object_are_noticed(api: Api, crate: Crd) -> None:
    (version,) = copy.deepcopy(crate.spec["versions"])
    version["subresources"]["scale"]["specReplicasPath"] = ".spec.count"
    version["additionalPrinterColumns"][0]["jsonPath"] = ".spec.replicas"
    wrong = edited(crate, "versions", [version])
    with pytest.raises(objects.NotStored, match=r"spec\.count"):
        objects.scale_problems(api, wrong, GOOD)
    assert objects.row_problems(api, wrong, GOOD) == ["column Color shows 'red', the object has 1"]


def test_kubectl_applies_strictly_and_prints_the_columns(kubectl: Kubectl, crate: Crd) -> None:
    applied = kubectl.run("apply", "--validate=strict", "-f", "-", stdin=yaml.safe_dump(GOOD))
    assert (applied.code, applied.output) == (0, "crate.reference.paddock.example/one created\n"), applied.errors
    table = kubectl.run("get", "crt", "-o", "wide").output.split()
    assert table[:4] + table[4:7] == ["NAME", "COLOR", "REPLICAS", "AGE", "one", "red", "1"]
    assert kubectl.run("delete", "crt", "one").code == 0
    misspelled = kubectl.run("apply", "--validate=strict", "-f", "-", stdin=yaml.safe_dump(changed("spec.colour", "red")))
    assert misspelled.code == 1
    assert 'unknown field "spec.colour"' in misspelled.errors


def test_kubectl_sees_nothing_of_the_user(kubectl: Kubectl) -> None:
    config = json.loads(kubectl.run("config", "view", "-o", "json").output)
    assert [cluster["name"] for cluster in config["clusters"]] == ["oracle"]


@pytest.mark.parametrize(
    ("ours", "server", "wanted"),
    [
        (Verdict(True), Verdict(True), []),
        (REFUSED, Verdict(False, (Complaint("spec.color", "FieldValueInvalid"),)), []),
        (REFUSED, Verdict(False, (Complaint("", verdict.UNREADABLE),)), []),
        (REFUSED, Verdict(True), [Difference(Side.ONLY_PADDOCK, "crate/color", f"{KIND} spec.color")]),
        (
            Verdict(True),
            Verdict(False, (Complaint("spec.items[3].name", "FieldValueRequired"),)),
            [Difference(Side.ONLY_SERVER, "FieldValueRequired", f"{KIND} spec.items[*].name")],
        ),
        (
            REFUSED,
            Verdict(False, (Complaint("spec", "FieldValueInvalid"),)),
            [Difference(Side.ELSEWHERE, "FieldValueInvalid", f"{KIND} spec")],
        ),
        (
            Verdict(False, (Complaint("spec.labels[a.b/c]", "crate/label"),)),
            Verdict(False, (Complaint("spec.labels.a.b/c", "FieldValueTooLong"),)),
            [],
        ),
    ],
)
def test_two_verdicts_compared(ours: Verdict, server: Verdict, wanted: list[Difference]) -> None:
    assert list(differences.compare(Case(KIND, Question(GOOD), ours), server)) == wanted


ENTRY = '[[difference]]\nside = "only-paddock"\nrule = "crate/color"\nplaces = ["{kind} spec.color"]\nwhy = "{why}"\n'


def test_a_report_names_what_is_new_and_what_is_gone(tmp_path: Path) -> None:
    case = Case(KIND, Question(GOOD), REFUSED)
    found = differences.compare_all([case, case], [Verdict(True), Verdict(True)])
    file = tmp_path / "differences.toml"
    file.write_text(ENTRY.format(kind=KIND, why="the color is a matter of taste"))
    known = differences.read(file)
    assert differences.report(found, known) == ""
    assert f'"{KIND} spec.color"' in differences.report(found, {})
    assert "not seen any more: only-paddock crate/color" in differences.report({}, known)


def test_what_a_report_proposes_is_readable_once_explained(tmp_path: Path) -> None:
    case = Case(KIND, Question(GOOD), REFUSED)
    found = differences.compare_all([case], [Verdict(True)])
    file = tmp_path / "differences.toml"
    file.write_text(differences.report(found, {}).replace('why = ""', 'why = "because"'))
    assert set(differences.read(file)) == set(found)


@pytest.mark.parametrize("entries", [ENTRY.format(kind=KIND, why=" "), ENTRY.format(kind=KIND, why="x") * 2])
def test_a_file_without_explanation_or_with_a_repetition_is_refused(tmp_path: Path, entries: str) -> None:
    file = tmp_path / "differences.toml"
    file.write_text(entries)
    with pytest.raises(differences.BadFile):
        differences.read(file)
