"""The harness itself, proved on a CRD made by hand: what it asks, what it reads, and that it sees what it must not overlook."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from paddock.kubernetes.schema.messages import TYPE
from tests.reference import crds, differences, objects, verdict
from tests.reference.client import Api, Json, Kubectl, Resource
from tests.reference.crds import Crd
from tests.reference.differences import Case, Difference, Shown, Side
from tests.reference.verdict import Complaint, Question, Verdict

pytestmark = pytest.mark.reference

KIND = "Crate.reference.paddock.example"
CRATES = Resource("reference.paddock.example", "v1", "crates", "Crate", namespaced=True)
GOOD: Json = {
    "apiVersion": "reference.paddock.example/v1",
    "kind": "Crate",
    "metadata": {"name": "one", "namespace": "default"},
    "spec": {"color": "red", "items": [{"name": "a", "weight": "2kg"}]},
}
REFUSED = Verdict(False, (Complaint("spec.color", "crate/color"),))


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
    answer = verdict.ask(api, Question(thing, CRATES))
    assert not answer.accepted
    assert (field, rule) in [(complaint.field, complaint.rule) for complaint in answer.complaints]


def test_a_good_object_is_accepted_and_not_stored(api: Api, crate: Crd) -> None:
    assert verdict.ask(api, Question(GOOD, CRATES)) == Verdict(True)
    assert api.request("GET", CRATES.path("default", "one")).status == 404


def test_a_change_is_judged_against_the_old_form(api: Api, crate: Crd) -> None:
    blue = changed("spec.color", "blue")
    assert verdict.ask(api, Question(blue, CRATES)).accepted
    answer = verdict.ask(api, Question(blue, CRATES, old=GOOD))
    assert [(each.field, each.rule) for each in answer.complaints] == [("spec.color", "FieldValueInvalid")]
    assert verdict.ask(api, Question(changed("spec.replicas", 3), CRATES, old=GOOD)).accepted
    assert api.request("GET", CRATES.path("default", "one")).status == 404


def test_an_answer_that_judges_nothing_is_no_verdict(api: Api, crate: Crd) -> None:
    with objects.stored(api, CRATES, GOOD), pytest.raises(verdict.NoVerdict, match="already exists"):
        verdict.ask(api, Question(GOOD, CRATES))
    nowhere = Resource("reference.paddock.example", "v1", "cradles", "Cradle", namespaced=True)
    with pytest.raises(verdict.NoVerdict, match="404"):
        verdict.ask(api, Question(GOOD, nowhere))


@pytest.mark.parametrize(
    ("status", "complaints"),
    [
        ({"replicas": 3}, []),
        ({"replicas": "3"}, [("status.replicas", "FieldValueTypeInvalid")]),
        ({"replica": 3}, [("status.replica", verdict.UNKNOWN)]),
        (7, [("status", "FieldValueTypeInvalid")]),
    ],
)
def test_a_status_is_judged_where_it_is_written(api: Api, crate: Crd, status: Any, complaints: list[tuple[str, str]]) -> None:
    with objects.stored(api, CRATES, GOOD) as one:
        answer = verdict.ask(api, Question({**GOOD, "status": status}, CRATES, status_of=one))
        assert [(each.field, each.rule) for each in answer.complaints][:1] == complaints
        assert "status" not in api.request("GET", one.path).body


def test_an_object_is_asked_about_where_its_kind_is_served(api: Api, crate: Crd) -> None:
    answer = verdict.ask(api, Question({**GOOD, "kind": "Cradle"}, CRATES))
    assert [complaint.field for complaint in answer.complaints] == ["kind"]


def test_many_questions_are_answered_in_order(api: Api, crate: Crd) -> None:
    sizes = [number % 20 for number in range(200)]
    answers = verdict.ask_all(api, (Question(changed("spec.replicas", size), CRATES) for size in sizes))
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


def refusal(field: str, rule: str = "FieldValueInvalid") -> Verdict:
    """A verdict with one complaint."""
    return Verdict(False, (Complaint(field, rule),))


def difference(side: Side, rule: str, field: str, kind: str = KIND) -> Difference:
    """A difference of an object whose mistake is of no special sort."""
    return Difference(side, rule, "", f"{kind} {field}")


@pytest.mark.parametrize(
    ("ours", "server", "wanted"),
    [
        pytest.param(Verdict(True), Verdict(True), [], id="both accept"),
        pytest.param(REFUSED, refusal("spec.color"), [], id="both refuse the field"),
        pytest.param(REFUSED, refusal(""), [], id="the server says it less exactly"),
        pytest.param(refusal("spec.color", TYPE), refusal("spec.color.hue"), [], id="a wrong type around it"),
        pytest.param(REFUSED, refusal("spec"), [], id="the server says it of the field around"),
        pytest.param(refusal("spec.labels[a.b/c]"), refusal("spec.labels.a.b/c"), [], id="two spellings"),
        pytest.param(
            REFUSED, Verdict(True), [difference(Side.ONLY_PADDOCK, "crate/color", "spec.color")], id="only we refuse"
        ),
        pytest.param(refusal("spec", "crate/own"), Verdict(True), [], id="only a rule of our own refuses"),
        pytest.param(
            Verdict(True),
            refusal("spec.items[3].name"),
            [difference(Side.ONLY_SERVER, "FieldValueInvalid", "spec.items[*].name")],
            id="only the server refuses",
        ),
        pytest.param(
            REFUSED,
            refusal("spec.color.hue"),
            [difference(Side.ELSEWHERE, "FieldValueInvalid", "spec.color.hue")],
            id="the server means a field below",
        ),
        pytest.param(
            REFUSED,
            refusal("spec.col"),
            [
                difference(Side.ELSEWHERE, "FieldValueInvalid", "spec.col"),
                difference(Side.ONLY_PADDOCK, "crate/color", "spec.color"),
            ],
            id="the server means another field, and not the broken one",
        ),
        pytest.param(
            refusal("metadata.labels[a]", "crate/label"),
            Verdict(True),
            [difference(Side.ONLY_PADDOCK, "crate/label", "metadata.labels[a]", "every kind")],
            id="metadata is the same for every kind",
        ),
    ],
)  # fmt: skip
def test_two_verdicts_compared(ours: Verdict, server: Verdict, wanted: list[Difference]) -> None:
    case = Case(KIND, Question(GOOD, CRATES), ours, broken="spec.color", own=frozenset({"crate/own"}))
    assert list(differences.compare(case, server)) == wanted


@pytest.mark.parametrize(
    ("field", "wanted"),
    [
        ("spec.labels[a.b/c]", "spec.labels{*}"),
        ("spec.labels.a.b/c.d", "spec.labels{*}.d"),
        ("spec.a.b/cd", "spec.a.b/cd"),
        ("spec.items[12].ports[0]", "spec.items[*].ports[*]"),
    ],
)
def test_a_place_is_without_accidents(field: str, wanted: str) -> None:
    assert differences.place(Case(KIND, Question(GOOD, CRATES), REFUSED, keys=("a.b/c",)), field) == f"{KIND} {wanted}"


@pytest.fixture
def found() -> dict[Difference, Shown]:
    """One difference, seen twice."""
    case = Case(KIND, Question(GOOD, CRATES), REFUSED, what="not in the enum")
    return differences.compare_all([case, case], [Verdict(True), Verdict(True)])


def entry(where: str = f"{KIND} spec.color", why: str = "a matter of taste", what: str = "not in the enum") -> str:
    """An entry of a file of known differences."""
    lines = ['side = "only-paddock"', 'rule = "crate/color"', f'what = "{what}"', f'places = ["{where}"]', f'why = "{why}"']
    return "\n".join(["[[difference]]", *lines, ""])


@pytest.mark.parametrize(
    ("text", "explained"),
    [
        (entry(), True),
        (entry(where=f"{KIND} spec.*"), True),
        (entry(where="*"), True),
        (entry(what="*"), True),
        (entry(where=f"{KIND} spec.colo"), False),
        (entry(where=f"{KIND} spec"), False),
        (entry(what="null"), False),
        (entry().replace("only-paddock", "only-server"), False),
        (entry().replace("crate/color", "crate/size"), False),
        ("", False),
    ],
)
def test_an_entry_covers_what_it_says(tmp_path: Path, found: dict[Difference, Shown], text: str, explained: bool) -> None:
    file = tmp_path / "differences.toml"
    file.write_text(text)
    known = differences.read(file)
    assert (differences.unexplained(found, known) == "") is explained
    assert (differences.stale(found, known) == []) is (explained or not known)


def test_what_is_proposed_covers_what_was_found_once_it_is_explained(tmp_path: Path, found: dict[Difference, Shown]) -> None:
    file = tmp_path / "differences.toml"
    file.write_text(differences.unexplained(found, []).replace('why = ""', 'why = "because"'))
    assert differences.unexplained(found, differences.read(file)) == ""


def test_a_file_without_explanation_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "differences.toml"
    file.write_text(entry(why=" "))
    with pytest.raises(differences.BadFile):
        differences.read(file)
