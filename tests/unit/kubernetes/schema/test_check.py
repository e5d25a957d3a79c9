"""The findings of the check about a document, their places, and the resulting value."""

from typing import Annotated, Any

import pytest

from paddock.kubernetes.meta.wire import from_data
from paddock.kubernetes.schema import finding
from paddock.kubernetes.schema.check import Checked, check, drop_unread, settle
from paddock.kubernetes.schema.field import Field, Object
from paddock.kubernetes.schema.finding import CauseType, Path, Severity
from paddock.kubernetes.schema.messages import REQUIRED, TYPE
from paddock.kubernetes.schema.scalars import BareWord
from tests.kit.declarations import documents
from tests.unit.kubernetes.schema.sample import SAMPLE, Sample, Spec

BASE = {"apiVersion": "test.paddock.dev/v1", "kind": "Sample", "metadata": {"name": "web"}}
DISK = {"name": "root", "size": "1Gi"}


def _check(spec: Any, **others: Any) -> Checked:
    return check(Sample, {**BASE, "spec": spec, **others})


def _said(checked: Checked) -> list[str]:
    return [f"{found.field}: {found.message}" for found in checked.findings]


def test_a_good_document_gets_its_defaults_and_no_finding() -> None:
    checked = _check({"disks": [DISK]})
    assert checked.findings == []
    assert checked.value["spec"] == {
        "count": 1,
        "running": True,
        "memory": "1Gi",
        "disks": [{"name": "root", "size": "1Gi", "bus": "virtio"}],
        "modes": ["a", "b"],
    }


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ([], "spec: Invalid value: []: must be an object, such as {memory: 10Gi}"),
        ({"count": "7"}, 'spec.count: Invalid value: "7": must be an integer'),
        ({"count": 1.5}, "spec.count: Invalid value: 1.5: must be an integer"),
        ({"count": True}, "spec.count: Invalid value: true: must be an integer"),
        ({"count": 1e300}, "spec.count: Invalid value: 1e300: must be an integer"),
        ({"count": 0}, "spec.count: Invalid value: 0: must be greater than or equal to 1"),
        ({"small": 2**31}, "spec.small: Invalid value: 2147483648: must fit into 32 bits"),
        ({"small": -(2**31) - 1}, "spec.small: Invalid value: -2147483649: must fit into 32 bits"),
        ({"share": 1.5}, "spec.share: Invalid value: 1.5: must be between 0 and 1, inclusive"),
        ({"share": "1"}, 'spec.share: Invalid value: "1": must be a number'),
        ({"share": float("nan")}, 'spec.share: Invalid value: "nan": must be a number'),
        ({"share": float("inf")}, 'spec.share: Invalid value: "inf": must be a number'),
        ({"running": "true"}, 'spec.running: Invalid value: "true": must be a boolean'),
        ({"running": 1}, "spec.running: Invalid value: 1: must be a boolean"),
        ({"nickname": 7}, 'spec.nickname: Invalid value: 7: must be a string; quote it: "7"'),
        ({"nickname": True}, 'spec.nickname: Invalid value: true: must be a string; quote it: "true"'),
        ({"nickname": "a"}, 'spec.nickname: Invalid value: "a": must be at least 2 characters'),
        ({"nickname": "abcdefghi"}, "spec.nickname: Too long: must be no more than 8 characters"),
        ({"nickname": "ABC"}, 'spec.nickname: Invalid value: "ABC": must be a small word'),
        ({"nickname": "abc\n"}, 'spec.nickname: Invalid value: "abc\\n": must be a small word'),
        ({"storageClass": "Fast"}, 'spec.storageClass: Invalid value: "Fast": must be a DNS-1123 subdomain'),
        ({"password": "abc"}, "spec.password: Invalid value: must be at least 4 characters"),
        ({"password": 1234}, "spec.password: Invalid value: must be a string"),
        ({"timeout": "5"}, 'spec.timeout: Invalid value: "5": must be a duration such as 30s, 5m or 1h30m'),
        ({"memory": "1Ki"}, 'spec.memory: Invalid value: "1Ki": must be at least 1Mi'),
        ({"memory": "1048576.5"}, 'spec.memory: Invalid value: "1048576.5": must be a whole number of bytes'),
        ({"memory": "lots"}, 'spec.memory: Invalid value: "lots": not a Kubernetes quantity'),
        ({"memory": 2**63}, "spec.memory: Invalid value: 9223372036854775808: a number must fit into 64 bits; a string may say more"),
        ({"limits": {"x": 1.5}}, "spec.limits.x: Invalid value: 1.5: must be a quantity: a whole number or a string such as 10Gi"),
        ({"since": "yesterday"}, 'spec.since: Invalid value: "yesterday": must be an RFC 3339 time such as 2026-01-31T12:00:00Z'),
        ({"mode": "fast"}, 'spec.mode: Unsupported value: "fast": supported values: "Fast", "Safe", "Off"'),
        ({"tags": []}, "spec.tags: Invalid value: []: must have at least 1 item"),
        ({"tags": ["a", "b", "c", "d"]}, "spec.tags: Too many: 4: must have at most 3 items"),
        ({"tags": ["a", "a"]}, 'spec.tags[1]: Duplicate value: "a"'),
        ({"tags": [""]}, 'spec.tags[0]: Invalid value: "": must not be empty'),
        ({"tags": [None]}, "spec.tags[0]: Invalid value: null: must be a string"),
        ({"tags": "a"}, 'spec.tags: Invalid value: "a": must be a list'),
        ({"disks": [DISK, DISK]}, 'spec.disks[1].name: Duplicate value: "root"'),
        ({"disks": [{"size": "1Gi"}]}, "spec.disks[0].name: Required value"),
        ({"disks": [{"name": "a"}]}, "spec.disks[0].size: Required value: say how large"),
        ({"disks": [{"name": "a", "size": None}]}, "spec.disks[0].size: Required value: say how large"),
        ({"disks": [{"name": "a", "size": "0"}]}, 'spec.disks[0].size: Invalid value: "0": must be greater than 0'),
        (
            {"disks": [{**DISK, "bus": "ide"}]},
            'spec.disks[0].bus: Unsupported value: "ide": supported values: "virtio", "sata"; use sata',
        ),
        (
            {"ports": [{"number": 1}, {"number": 1}]},
            'spec.ports[1]: Duplicate value: {"number":1,"protocol":"TCP"}',
        ),
        ({"ports": [{"number": 1, "target": 0}]}, "spec.ports[0].target: Invalid value: 0: must be between 1 and 65535, inclusive"),
        ({"ports": [{"number": 1, "target": "A"}]}, 'spec.ports[0].target: Invalid value: "A": must match ^[a-z]+$'),
        ({"ports": [{"number": 1, "target": 1.5}]}, "spec.ports[0].target: Invalid value: 1.5: must be an integer or a string"),
        ({"labels": {}}, "spec.labels: Invalid value: {}: must have at least 1 entry"),
        ({"labels": {f"k{n}": "v" for n in range(4)}}, "spec.labels: Too many: 4: must have at most 3 items"),
        ({"labels": {"-x": "v"}}, 'spec.labels.-x: Invalid value: "-x": must be a label key: name or prefix/name'),
        (
            {"labels": {"a.b/c": "-"}},
            "spec.labels[a.b/c]: Invalid value: \"-\": must be a label value: letters, digits, '-', '_' and '.', at most 63",
        ),
        ({"labels": {"x": None}}, "spec.labels.x: Invalid value: null: must be a string"),
        ({"limits": {"x": "?"}}, 'spec.limits.x: Invalid value: "?": not a Kubernetes quantity'),
        ({"extra": []}, "spec.extra: Invalid value: []: must be an object"),
        ({"owner": {"user": 7}}, 'spec.owner.user: Invalid value: 7: must be a string; quote it: "7"'),
        ({"cout": 1}, 'unknown field "spec.cout"; did you mean "count"?'),
        ({"zzz": 1}, 'unknown field "spec.zzz"'),
        ({"disks": [{**DISK, "capacity": 1}]}, 'unknown field "spec.disks[0].capacity"; use size'),
        ({7: 1}, 'unknown field "spec.7"'),
    ],
)
def test_one_mistake_gives_one_finding(spec: Any, said: str) -> None:
    (found,) = [found for found in _check(spec).findings if found.severity is Severity.ERROR]
    text = found.message if found.message.startswith("unknown field") else f"{found.field}: {found.message}"
    assert text == said


@pytest.mark.parametrize(
    ("spec", "cause"),
    [
        ({"count": "x"}, CauseType.TYPE_INVALID),
        ({"count": 0}, CauseType.INVALID),
        ({"mode": "x"}, CauseType.NOT_SUPPORTED),
        ({"nickname": "abcdefghi"}, CauseType.TOO_LONG),
        ({"tags": ["a", "b", "c", "d"]}, CauseType.TOO_MANY),
        ({"tags": ["a", "a"]}, CauseType.DUPLICATE),
        ({"disks": [{"name": "a"}]}, CauseType.REQUIRED),
        ({"multiqueue": True, "multiQueue": True}, CauseType.FORBIDDEN),
    ],
)
def test_the_cause_is_the_one_clients_match_on(spec: Any, cause: CauseType) -> None:
    assert [found.cause for found in _check(spec).findings] == [cause]


def test_all_mistakes_come_in_one_answer() -> None:
    checked = _check({"count": 0, "disks": [{"name": "A"}, "x", {**DISK, "bus": "ide"}], "zzz": 1})
    assert [found.field for found in checked.findings] == [
        "spec.count",
        "spec.disks[0].name",
        "spec.disks[0].size",
        "spec.disks[1]",
        "spec.disks[2].bus",
        "spec.zzz",
    ]


def test_what_is_wrong_is_repaired_just_enough_to_convert() -> None:
    """So that the rules can look at the rest; indices do not shift."""
    checked = _check({"count": "x", "memory": "?", "disks": ["x", DISK], "tags": [None, "a"], "ports": 7})
    value = from_data(checked.value, Sample)
    assert value.spec.count == 1
    assert value.spec.memory == "1Gi"
    assert [disk.name for disk in value.spec.disks] == ["", "root"]
    assert value.spec.tags == ["", "a"]
    assert value.spec.ports is None


def test_a_document_that_is_no_object() -> None:
    strange: tuple[Any, ...] = (None, [], "x", 7)
    for raw in strange:
        checked = check(Sample, raw)
        assert checked.value == {}
        assert [(found.path, found.cause) for found in checked.findings] == [((), CauseType.TYPE_INVALID)]


def test_null_is_the_same_as_absent() -> None:
    checked = _check({"count": None, "tags": None, "owner": None, "multiQueue": None})
    assert checked.findings == []
    assert checked.value["spec"]["count"] == 1
    assert not {"tags", "owner", "multiqueue"} & checked.value["spec"].keys()


def test_null_is_kept_where_it_means_something() -> None:
    checked = _check({"since": None, "mode": None})
    assert checked.findings == []
    assert checked.value["spec"]["since"] is None
    assert checked.value["spec"]["mode"] is None
    assert from_data(checked.value, Sample).spec.mode is None


def test_empty_is_unset_where_the_field_says_so() -> None:
    checked = _check({"storageClass": "", "owner": {}})
    assert checked.findings == []
    assert not {"storageClass", "owner"} & checked.value["spec"].keys()


def test_another_name_of_a_field_is_stored_under_the_field() -> None:
    checked = _check({"multiQueue": True})
    assert checked.findings == []
    assert checked.value["spec"]["multiqueue"] is True
    assert "multiQueue" not in checked.value["spec"]


def test_a_mistake_under_another_name_is_reported_where_it_stands() -> None:
    assert _said(_check({"multiQueue": "x"})) == ['spec.multiQueue: Invalid value: "x": must be a boolean']


@pytest.mark.parametrize("spec", [{"multiqueue": True, "multiQueue": False}, {"multiQueue": False, "multiqueue": True}])
def test_a_field_under_two_names_is_refused(spec: Any) -> None:
    checked = _check(spec)
    assert _said(checked) == ['spec.multiQueue: Forbidden: it is another name of "multiqueue", which is given, too']
    assert checked.value["spec"]["multiqueue"] is True


def test_an_integral_float_is_an_integer() -> None:
    checked = _check({"count": 3.0})
    assert checked.findings == []
    assert checked.value["spec"]["count"] == 3
    assert type(checked.value["spec"]["count"]) is int


def test_what_has_no_effect_is_named_and_kept() -> None:
    checked = _check({"extra": {"a": [1]}, "legacy": "x"})
    assert [(found.severity, found.field, found.message) for found in checked.findings] == [
        (Severity.NOTE, "spec.extra", "accepted and kept, not honoured: nobody reads it"),
        (Severity.WARNING, "spec.legacy", "deprecated: use nickname"),
    ]
    assert checked.value["spec"]["extra"] == {"a": [1]}


def test_open_objects_keep_what_they_do_not_know() -> None:
    checked = _check({"template": {"labels": {"a": "b"}, "managedBy": {"x": BareWord("on")}}})
    assert checked.findings == []
    assert checked.value["spec"]["template"] == {"labels": {"a": "b"}, "managedBy": {"x": True}}


@pytest.mark.parametrize("word", ["Off", "on", "yes", "n"])
def test_a_bare_word_is_what_its_field_wants(word: str) -> None:
    checked = _check({"running": BareWord(word), "extra": {"x": [BareWord(word)]}})
    assert [found for found in checked.findings if found.severity is Severity.ERROR] == []
    assert checked.value["spec"]["running"] is (word in ("on", "yes"))
    assert checked.value["spec"]["extra"]["x"] == [checked.value["spec"]["running"]]
    (found,) = _check({"nickname": BareWord(word)}).findings
    assert found.message == (f'Invalid value: "{word}": must be a string; kubectl reads a bare {word} as a boolean, quote it: "{word}"')


def test_a_bare_word_of_the_enum_is_taken_with_a_warning() -> None:
    checked = _check({"mode": BareWord("Off")})
    assert [(found.severity, found.field) for found in checked.findings] == [(Severity.WARNING, "spec.mode")]
    assert 'write "Off"' in checked.findings[0].message
    assert checked.value["spec"]["mode"] == "Off"
    assert type(checked.value["spec"]["mode"]) is str


def test_a_bare_word_is_no_quantity_and_no_number() -> None:
    assert [found.field for found in _check({"memory": BareWord("y"), "count": BareWord("n")}).findings] == ["spec.memory", "spec.count"]


def test_the_value_of_a_secret_is_never_repeated() -> None:
    for raw in ("abc", 1234, ["hunter2"], {"x": "hunter2"}):
        (found,) = _check({"password": raw}).findings
        assert "abc" not in found.message
        assert "1234" not in found.message
        assert "hunter2" not in found.message


def test_the_document_itself_is_left_alone() -> None:
    raw = {**BASE, "spec": {"disks": [dict(DISK)], "extra": {"x": [BareWord("on")]}}}
    before = repr(raw)
    value = check(Sample, raw).value
    assert repr(raw) == before
    value["spec"]["disks"][0]["name"] = "other"
    value["spec"]["modes"].append("c")
    assert check(Sample, raw).value["spec"]["modes"] == ["a", "b"]


def test_a_checked_document_passes_again_unchanged() -> None:
    once = check(Sample, documents.fullest(SAMPLE))
    twice = check(Sample, once.value)
    assert twice.value == once.value
    assert [found for found in twice.findings if found.severity is Severity.ERROR] == []


def test_defaults_are_themselves_without_a_mistake() -> None:
    assert check(Spec, {}).findings == []


class Bare(Object):
    """A declaration without a `Field`."""

    port: int | None = None


def test_a_class_without_fields_texts_is_checked_by_its_types() -> None:
    assert check(Bare, {"port": "x"}).findings[0].message == 'Invalid value: "x": must be an integer'


def test_settling_reaches_everything() -> None:
    assert settle({"a": [BareWord("on"), {"b": BareWord("off")}], "c": 1}) == {"a": [True, {"b": False}], "c": 1}


class Switched(Object):
    """An object with a switch."""

    power: Annotated[str | None, Field("Power.", enum=("On", "Off"))] = None


@pytest.mark.parametrize(("raw", "word"), [(True, "On"), (False, "Off"), ("Off", "Off")])
def test_what_kubectl_makes_of_a_bare_switch_is_the_switch(raw: object, word: str) -> None:
    checked = check(Switched, {"power": raw})
    assert checked.value == {"power": word}
    assert [found.severity for found in checked.findings] == ([] if isinstance(raw, str) else [Severity.WARNING])


def test_a_number_in_place_of_a_word_is_answered_with_the_words() -> None:
    assert _said(check(Switched, {"power": 1})) == ['power: Invalid value: 1: must be a string; write one of "On", "Off"']


@pytest.mark.parametrize(
    ("place", "unread", "is_dropped"),
    [
        (("a", 0), ("a", 0), True),
        (("a", 0, "b"), ("a", 0), True),
        (("a",), ("a", 0), True),
        ((), ("a", 0), True),
        (("a", 0), (), True),
        (("a", 1), ("a", 0), False),
        (("a", 1, "b"), ("a", 0, "b"), False),
        (("ab",), ("a",), False),
    ],
)
def test_what_could_not_be_read_is_not_missing(place: Path, unread: Path, is_dropped: bool) -> None:
    missing, wrong = finding.required(place, REQUIRED), finding.invalid(place, 1, "is wrong", "x")
    read = [finding.invalid(unread, 1, "must be a string", TYPE)]
    assert list(drop_unread([missing, wrong], read)) == ([wrong] if is_dropped else [missing, wrong])
    assert list(drop_unread([missing], [finding.invalid(unread, 1, "is wrong", "x")])) == [missing]


def test_thousands_of_missing_and_unread_places() -> None:
    # To hold each against each would take minutes.
    read = [finding.invalid(("a", each, "b"), 1, "must be a string", TYPE) for each in range(30_000)]
    missing = [finding.required(("a", each, "c"), REQUIRED) for each in range(30_000)]
    dropped = [finding.required(("a", each), REQUIRED) for each in range(30_000)]
    assert list(drop_unread([*missing, *dropped], read)) == missing
