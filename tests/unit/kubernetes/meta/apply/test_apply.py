"""Server-side apply as scripts: who writes what, what the object is then, who owns which field (docs/spec/kube-api.md 4.3-4.5)."""

import gc
from typing import Any, NamedTuple

import pytest

from paddock.kubernetes.meta.apply import applying, differences, ownership, places, types, values
from paddock.kubernetes.meta.apply.applying import ApplyRequest
from paddock.kubernetes.meta.apply.ownership import Manager
from paddock.kubernetes.meta.failure import Failure, FailureTarget

TEXT = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "numeric": {"type": "integer"},
                "string": TEXT,
                "list": {"type": "array", "items": TEXT},
                "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
                "map": {"type": "object", "additionalProperties": TEXT},
                "atomic": {"type": "object", "additionalProperties": TEXT, "x-kubernetes-map-type": "atomic"},
                "inner": {"type": "object", "properties": {"a": TEXT, "b": TEXT}},
                "items": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "required": ["name"], "properties": {"name": TEXT, "a": TEXT, "b": TEXT}},
                },
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {
                        "type": "object",
                        "properties": {"port": {"type": "integer"}, "protocol": {**TEXT, "default": "TCP"}, "name": TEXT},
                    },
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {"type": "object", "properties": {"phase": TEXT}},
    },
}
ABOUT = FailureTarget(name="o", group="example.com", kind="things")
Data = dict[str, Any]


class Step(NamedTuple):
    """One write. `applies` by server-side apply, otherwise as an update of the whole spec."""

    manager: str
    spec: Data | None
    applies: bool = True
    force: bool = False
    # the conflicting fields, when the write is refused
    conflicts: tuple[str, ...] = ()


def applied(manager: str, *conflicts: str, force: bool = False, **spec: Any) -> Step:
    return Step(manager, spec, True, force, conflicts)


def updated(manager: str, **spec: Any) -> Step:
    return Step(manager, spec, False)


def whole(spec: Data | None) -> Data:
    data: Data = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "o"}}
    return data if spec is None else data | {"spec": spec}


def run(steps: tuple[Step, ...]) -> Data:
    """The object after all steps."""
    live: Data | None = None
    for number, step in enumerate(steps):
        now = f"2026-01-01T00:00:{number:02d}Z"
        manager = Manager(step.manager, "example.com/v1")
        if not step.applies:
            new = whole(step.spec)
            if live is not None and "managedFields" in live["metadata"]:
                new["metadata"]["managedFields"] = live["metadata"]["managedFields"]
            ownership.record(live, new, SCHEMA, manager, now)
            live = new
        elif live is None:
            live = whole(step.spec)
            applying.claim(whole(step.spec), live, SCHEMA, manager, now)
        else:
            live = apply(live, step, ApplyRequest(manager, ABOUT, now, step.force))
    assert live is not None
    return live


def apply(live: Data, step: Step, asked: ApplyRequest) -> Data:
    if not step.conflicts:
        return applying.apply(live, whole(step.spec), SCHEMA, asked)
    with pytest.raises(Failure) as refused:
        applying.apply(live, whole(step.spec), SCHEMA, asked)
    assert refused.value.code == 409
    assert tuple(cause.field for cause in refused.value.causes) == step.conflicts
    return live


def owners(live: Data) -> dict[str, Any]:
    """Manager (with ! for an applier) -> the fields below spec."""
    found = {}
    for entry in live["metadata"].get("managedFields", []):
        mark = "!" if entry["operation"] == "Apply" else ""
        found[entry["manager"] + mark] = entry["fieldsV1"].get("f:spec", {})
    return found


class Case(NamedTuple):
    """A script and what it leaves."""

    name: str
    steps: tuple[Step, ...]
    spec: Data
    owners: dict[str, Any]


def names(*items: str, **fields: str) -> list[Data]:
    return [{"name": item, **fields} for item in items]


def item(name: str, *fields: str) -> Data:
    below: Data = {".": {}, "f:name": {}, **{f"f:{field}": {} for field in fields}}
    return {f'k:{{"name":"{name}"}}': below}


CASES = [
    Case(
        "an applier owns exactly what it sent",
        (applied("one", numeric=1, map={"x": "1"}, inner={"a": "1"}, list=["a"], atomic={"k": "v"}),),
        {"numeric": 1, "map": {"x": "1"}, "inner": {"a": "1"}, "list": ["a"], "atomic": {"k": "v"}},
        {"one!": {"f:numeric": {}, "f:map": {"f:x": {}}, "f:inner": {"f:a": {}}, "f:list": {}, "f:atomic": {}}},
    ),
    Case(
        "an updater owns the containers it makes, too",
        (updated("one", numeric=1, map={"x": "1"}, items=names("a")),),
        {"numeric": 1, "map": {"x": "1"}, "items": names("a")},
        {"one": {".": {}, "f:numeric": {}, "f:map": {".": {}, "f:x": {}}, "f:items": {".": {}, **item("a")}}},
    ),
    Case(
        "two appliers side by side",
        (applied("one", numeric=1), applied("two", string="s")),
        {"numeric": 1, "string": "s"},
        {"one!": {"f:numeric": {}}, "two!": {"f:string": {}}},
    ),
    Case(
        "the same value is shared",
        (applied("one", numeric=1, string="s"), applied("two", string="s")),
        {"numeric": 1, "string": "s"},
        {"one!": {"f:numeric": {}, "f:string": {}}, "two!": {"f:string": {}}},
    ),
    Case(
        "one of two owners lets go, the value stays",
        (applied("one", string="s"), applied("two", string="s"), applied("one", numeric=1)),
        {"numeric": 1, "string": "s"},
        {"one!": {"f:numeric": {}}, "two!": {"f:string": {}}},
    ),
    Case(
        "both let go, the value goes",
        (applied("one", string="s"), applied("two", string="s", numeric=1), applied("one", map={"a": "b"}), applied("two", numeric=1)),
        {"numeric": 1, "map": {"a": "b"}},
        {"one!": {"f:map": {"f:a": {}}}, "two!": {"f:numeric": {}}},
    ),
    Case(
        "another value is a conflict",
        (applied("one", string="s"), applied("two", ".spec.string", string="t")),
        {"string": "s"},
        {"one!": {"f:string": {}}},
    ),
    Case(
        "force takes the field",
        (applied("one", string="s", numeric=1), applied("two", force=True, string="t")),
        {"string": "t", "numeric": 1},
        {"one!": {"f:numeric": {}}, "two!": {"f:string": {}}},
    ),
    Case(
        "an update takes the field silently, and then it conflicts",
        (
            applied("one", string="s", numeric=1),
            updated("two", string="t", numeric=1),
            applied("one", ".spec.string", string="s", numeric=1),
        ),
        {"string": "t", "numeric": 1},
        {"one!": {"f:numeric": {}}, "two": {"f:string": {}}},
    ),
    Case(
        "an update that changes nothing takes nothing",
        (applied("one", string="s"), updated("two", string="s", numeric=1)),
        {"string": "s", "numeric": 1},
        {"one!": {"f:string": {}}, "two": {"f:numeric": {}}},
    ),
    Case(
        "an update removes a field from everybody",
        (applied("one", string="s", numeric=1), updated("two", numeric=1)),
        {"numeric": 1},
        {"one!": {"f:numeric": {}}},
    ),
    Case(
        "keyed lists are merged by their keys, in the applier's order",
        (applied("one", items=names("a", "b")), applied("two", items=names("c", "b"))),
        {"items": names("a", "c", "b")},
        {
            "one!": {"f:items": {**item("a"), **item("b")}},
            "two!": {"f:items": {**item("b"), **item("c")}},
        },
    ),
    Case(
        "an entry that its only owner no longer sends goes",
        (applied("one", items=names("a", "b", a="1")), applied("one", items=names("b", a="1"))),
        {"items": names("b", a="1")},
        {"one!": {"f:items": item("b", "a")}},
    ),
    Case(
        "an entry that somebody else holds stays",
        (
            applied("one", items=[{"name": "a", "a": "1"}]),
            applied("two", items=[{"name": "a", "b": "2"}]),
            applied("one", numeric=1),
        ),
        {"items": [{"name": "a", "b": "2"}], "numeric": 1},
        {"one!": {"f:numeric": {}}, "two!": {"f:items": item("a", "b")}},
    ),
    Case(
        "fields of an entry conflict at their place",
        (applied("one", items=[{"name": "a", "a": "1"}]), applied("two", '.spec.items[name="a"].a', items=[{"name": "a", "a": "2"}])),
        {"items": [{"name": "a", "a": "1"}]},
        {"one!": {"f:items": item("a", "a")}},
    ),
    Case(
        "defaults of keys count",
        (applied("one", ports=[{"port": 80, "protocol": "TCP", "name": "a"}]), applied("two", ports=[{"port": 80, "name": "a"}])),
        {"ports": [{"port": 80, "protocol": "TCP", "name": "a"}]},
        {
            "one!": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:protocol": {}, "f:name": {}}}},
            "two!": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:name": {}}}},
        },
    ),
    Case(
        "sets are merged by value",
        (applied("one", set=["a", "b"]), applied("two", set=["c", "b"]), applied("one", set=["b"])),
        {"set": ["c", "b"]},
        {"one!": {"f:set": {'v:"b"': {}}}, "two!": {"f:set": {'v:"b"': {}, 'v:"c"': {}}}},
    ),
    Case(
        "atomic lists and maps are one value",
        (
            applied("one", list=["a"], atomic={"k": "v"}),
            applied("two", ".spec.atomic", ".spec.list", list=["b"], atomic={"l": "w"}),
        ),
        {"list": ["a"], "atomic": {"k": "v"}},
        {"one!": {"f:list": {}, "f:atomic": {}}},
    ),
    Case(
        "members of maps are owned one by one",
        (applied("one", map={"a": "1"}), applied("two", map={"b": "2"}), applied("one", map={"c": "3"})),
        {"map": {"b": "2", "c": "3"}},
        {"one!": {"f:map": {"f:c": {}}}, "two!": {"f:map": {"f:b": {}}}},
    ),
    Case(
        "what has no schema is merged as it looks",
        (applied("one", free={"a": {"b": 1}, "l": [1]}), applied("two", free={"a": {"c": 2}})),
        {"free": {"a": {"b": 1, "c": 2}, "l": [1]}},
        {
            "one!": {"f:free": {"f:a": {".": {}, "f:b": {}}, "f:l": {}}},
            "two!": {"f:free": {"f:a": {".": {}, "f:c": {}}}},
        },
    ),
    Case(
        "an applier that sends nothing gives everything up",
        (updated("zero", numeric=1), applied("one", string="s"), Step("one", None)),
        {"numeric": 1},
        {"zero": {".": {}, "f:numeric": {}}},
    ),
    Case(
        "an applied null is owned",
        (applied("one", string=None, numeric=1),),
        {"string": None, "numeric": 1},
        {"one!": {"f:string": {}, "f:numeric": {}}},
    ),
    Case(
        "an applier that was an updater before owns twice",
        (updated("one", string="s"), applied("one", string="s")),
        {"string": "s"},
        {"one!": {"f:string": {}}, "one": {".": {}, "f:string": {}}},
    ),
    Case(
        "changing the key of an entry is another entry",
        (applied("one", items=names("a", a="1")), applied("one", items=names("b", a="1"))),
        {"items": names("b", a="1")},
        {"one!": {"f:items": item("b", "a")}},
    ),
]


@pytest.mark.spec("kube-api", 78, 79, 80, 81, 82, 84)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_scripts(case: Case) -> None:
    live = run(case.steps)
    assert live.get("spec", {}) == case.spec
    assert owners(live) == case.owners


@pytest.mark.spec("kube-api", 77)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_applying_the_same_again_changes_nothing(case: Case) -> None:
    step = case.steps[-1]
    if not step.applies or step.conflicts:
        return
    once = run(case.steps)
    again = applying.apply(
        once, whole(step.spec), SCHEMA, ApplyRequest(Manager(step.manager, "example.com/v1"), ABOUT, "2030-01-01T00:00:00Z")
    )
    assert again == once
    assert ownership.same(again, once)


@pytest.mark.spec("kube-api", 83)
@pytest.mark.parametrize(
    "spec",
    [{"items": names("a", "a")}, {"set": ["x", "x"]}, {"items": [{"a": "1"}]}, {"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}],
)
def test_lists_that_cannot_be_merged(spec: Data) -> None:
    live = run((updated("zero", numeric=1),))
    with pytest.raises(Failure) as refused:
        applying.apply(live, whole(spec), SCHEMA, ApplyRequest(Manager("one", "example.com/v1"), ABOUT, "2026-01-01T00:00:00Z"))
    assert refused.value.code in (400, 500)


@pytest.mark.spec("kube-api", 84)
def test_entries_are_in_order_and_hold_no_identity() -> None:
    live = run(
        (
            updated("z", numeric=1),
            applied("b", string="s"),
            applied("a", map={"x": "1"}),
            updated("y", numeric=2, string="s", map={"x": "1"}),
        )
    )
    assert [(each["operation"], each["manager"]) for each in live["metadata"]["managedFields"]] == [
        ("Apply", "b"),
        ("Apply", "a"),
        ("Update", "z"),
        ("Update", "y"),
    ]
    assert all("f:metadata" not in each["fieldsV1"] for each in live["metadata"]["managedFields"])


@pytest.mark.spec("kube-api", 90)
def test_many_updaters_become_history() -> None:
    live = run(tuple(updated(f"u{number:02d}", map={f"k{each}": "v" for each in range(number + 1)}) for number in range(15)))
    managers = [each["manager"] for each in live["metadata"]["managedFields"]]
    assert len(managers) == 10
    assert "ancient-changes" in managers
    owned: set[str] = set()
    for each in live["metadata"]["managedFields"]:
        owned |= {step for step in each["fieldsV1"]["f:spec"]["f:map"] if step != "."}
    assert owned == {f"f:k{each}" for each in range(15)}


def test_what_was_there_before_books_were_kept() -> None:
    live = whole({"string": "s"})
    asked = ApplyRequest(Manager("one", "example.com/v1"), ABOUT, "2026-01-01T00:00:00Z")
    with pytest.raises(Failure) as refused:
        applying.apply(live, whole({"string": "t"}), SCHEMA, asked)
    assert 'conflict with "before-first-apply"' in refused.value.message
    made = applying.apply(live, whole({"string": "s"}), SCHEMA, asked)
    assert owners(made) == {"one!": {"f:string": {}}, "before-first-apply": {".": {}, "f:string": {}}}


@pytest.mark.spec("kube-api", 87)
def test_ownership_can_be_given_up_and_rubbish_is_ignored() -> None:
    live = run((applied("one", string="s"),))
    new = whole({"string": "s"})
    new["metadata"]["managedFields"] = []
    ownership.record(live, new, SCHEMA, Manager("two", "example.com/v1"), "2026-01-01T00:00:09Z")
    assert "managedFields" not in new["metadata"]
    new = whole({"string": "s"})
    new["metadata"]["managedFields"] = [{"manager": 5}]
    ownership.record(live, new, SCHEMA, Manager("two", "example.com/v1"), "2026-01-01T00:00:09Z")
    assert owners(new) == {"one!": {"f:string": {}}}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_everything_is_the_difference_from_nothing(case: Case) -> None:
    root = types.of_schema(SCHEMA)
    made = {key: value for key, value in run(case.steps).items() if key != "metadata"}
    assert values.everything(root, made) == differences.difference(root, {}, made).added


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("metadata", [{}, {"labels": {"a": "b"}, "finalizers": ["x/y"]}], ids=("bare", "labelled"))
@pytest.mark.parametrize("subresource", ["", "status"])
def test_a_new_object_is_owned_by_who_made_it(case: Case, metadata: dict[str, Any], subresource: str) -> None:
    made = {**run(case.steps), "metadata": {"name": "a", "uid": "b", "creationTimestamp": "2026-01-01T00:00:00Z", **metadata}}
    expected = ownership.owned(values.everything(types.of_schema(SCHEMA), made), subresource)
    ownership.record(None, made, SCHEMA, Manager("one", "example.com/v1", subresource), "2026-01-01T00:00:00Z")
    assert [entry["fieldsV1"] for entry in made["metadata"].get("managedFields", ())] == ([expected] if expected else [])


@pytest.mark.parametrize("keys", [("name",), ("it's",)])
@pytest.mark.parametrize("value", ["plain", 'a "quoted" \\ one', "\u00e4\u2028\U0001f600", "", 5, None, True, ["x"]])
def test_the_step_to_an_entry_with_one_key_is_that_of_its_keys(keys: tuple[str, ...], value: Any) -> None:
    kind = types.MergeType(types.KEYED, keys=keys)
    key = kind.key_of({keys[0]: value})
    assert list(values.live_entries(kind, [{keys[0]: value}])) == ["i:0" if key is None else places.keyed(key)]


def test_what_is_made_of_a_schema_is_made_once_and_goes_with_it() -> None:
    def count() -> int:
        gc.collect()
        return sum(isinstance(each, types.MergeType) for each in gc.get_objects())

    schema = types.MergeSchema(SCHEMA)
    assert types.of_schema(schema) is types.of_schema(schema)
    before = count()
    for _ in range(3):
        types.of_schema(types.MergeSchema(SCHEMA))
    assert count() == before
