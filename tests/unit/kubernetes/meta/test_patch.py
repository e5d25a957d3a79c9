"""JSON patches, merge patches and strategic merge patches."""

import copy
import json
from typing import Any

import pytest

from paddock.kubernetes.meta import patch, strategic

APPLIED = [
    ({}, [{"op": "add", "path": "/a", "value": 1}], {"a": 1}),
    ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
    ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
    ({"a": 1}, [{"op": "add", "path": "", "value": {"b": 2}}], {"b": 2}),
    ({"a": {"b": 1}}, [{"op": "remove", "path": "/a/b"}], {"a": {}}),
    ({"a": [1, 2]}, [{"op": "remove", "path": "/a/0"}], {"a": [2]}),
    ({"a": 1}, [{"op": "replace", "path": "/a", "value": [1]}], {"a": [1]}),
    ({"a": {"b": 1}}, [{"op": "replace", "path": "/a/c", "value": 2}], {"a": {"b": 1, "c": 2}}),
    ({"a": 1, "b": {}}, [{"op": "move", "from": "/a", "path": "/b/c"}], {"b": {"c": 1}}),
    ({"a": [1]}, [{"op": "copy", "from": "/a", "path": "/b"}, {"op": "add", "path": "/b/-", "value": 2}], {"a": [1], "b": [1, 2]}),
    ({"a/b": 1, "c~d": 2}, [{"op": "test", "path": "/a~1b", "value": 1}, {"op": "remove", "path": "/c~0d"}], {"a/b": 1}),
    ({"a": None}, [{"op": "test", "path": "/a", "value": None}], {"a": None}),
    ({"a": 1.0}, [{"op": "test", "path": "/a", "value": 1}], {"a": 1.0}),
]


@pytest.mark.spec("kube-api", 72, 163)
@pytest.mark.parametrize(("document", "operations", "result"), APPLIED)
def test_json_patches(document: Any, operations: list[Any], result: Any) -> None:
    before = copy.deepcopy(document)
    assert patch.apply_json_patch(document, operations) == result
    assert document == before


def test_a_copy_of_what_operations_have_nested_deep_is_refused() -> None:
    nested: Any = {}
    for _ in range(150):
        nested = {"a": nested}
    deepen = [{"op": "add", "path": "/z" + "/a" * 150 * times, "value": nested} for times in range(4)]
    with pytest.raises(patch.BadPatch, match="operation 4: Unable to complete the copy, the value is nested too deep"):
        patch.apply_json_patch({}, [*deepen, {"op": "copy", "from": "/z", "path": "/y"}])


@pytest.mark.spec("kube-api", 72)
@pytest.mark.parametrize(
    ("document", "operation"),
    [
        ({"a": 1}, {"op": "test", "path": "/a", "value": 2}),
        ({"a": 1}, {"op": "test", "path": "/a", "value": True}),
        ({"a": {"b": 0}}, {"op": "test", "path": "/a", "value": {"b": False}}),
        ({}, {"op": "remove", "path": "/a"}),
        ({}, {"op": "replace", "path": "/a/b", "value": 1}),
        ({"a": [1]}, {"op": "replace", "path": "/a/1", "value": 2}),
        ({"a": [1]}, {"op": "replace", "path": "/a/-", "value": 2}),
        ({}, {"op": "add", "path": "/a/b", "value": 1}),
        ({"a": []}, {"op": "add", "path": "/a/1", "value": 1}),
        ({"a": [1]}, {"op": "add", "path": "/a/01", "value": 1}),
        ({"a": [1]}, {"op": "remove", "path": "/a/-"}),
        ({"a": [1]}, {"op": "remove", "path": "/a/x"}),
        ({"a": 1}, {"op": "add", "path": "/a/b", "value": 1}),
        ({"a": {}}, {"op": "move", "from": "/a", "path": "/a/b"}),
        ({}, {"op": "copy", "from": "/a", "path": "/b"}),
        ({}, {"op": "add", "path": "a", "value": 1}),
        ({}, {"op": "add", "path": "/a"}),
        ({}, {"op": "jump", "path": "/a"}),
        ({}, {"path": "/a"}),
        ({}, {"op": "add", "path": 5, "value": 1}),
        ({}, "add"),
        ({"a": 1}, {"op": "remove", "path": ""}),
    ],
)
def test_json_patches_that_do_not_fit(document: Any, operation: Any) -> None:
    with pytest.raises(patch.BadPatch):
        patch.apply_json_patch(document, [operation])


@pytest.mark.spec("kube-api", 72)
@pytest.mark.parametrize(
    ("document", "change", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patches(document: Any, change: Any, result: Any) -> None:
    before = copy.deepcopy(document)
    assert patch.apply_merge_patch(document, change) == result
    assert document == before


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ({"a": 1, "b": {"c": [1], "d": 2}}, {"a": 1, "b": {"c": [1], "d": 2}}, {}),
        ({"a": 1}, {"b": 2}, {"a": None, "b": 2}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, {"a": {"c": None}}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
        ({"a": {"b": 1}}, {"a": "c"}, {"a": "c"}),
        ({"a": 1}, {"a": True}, {"a": True}),
        ({}, {"a": None}, {}),
    ],
)
def test_the_merge_patch_between_two_documents(before: Any, after: Any, change: Any) -> None:
    found = patch.merge_patch_between(before, after)
    assert copied_types(found) == copied_types(change)
    assert patch.apply_merge_patch(before, found) == {key: value for key, value in after.items() if value is not None}


def copied_types(value: Any) -> Any:
    """Values with their types, as 1 equals True."""
    return {key: (type(each), each) for key, each in value.items()}


KEYED = {"type": "array", "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"}
SCHEMA: dict[str, Any] = {
    "properties": {
        "items": KEYED | {"items": {"properties": {"inner": KEYED}}},
        "words": {"type": "array", "x-kubernetes-patch-strategy": "merge"},
        "plain": {"type": "array"},
    }
}


@pytest.mark.spec("kube-api", 73)
@pytest.mark.parametrize(
    ("document", "change", "result"),
    [
        ({"items": [{"name": "a", "x": 1}]}, {"items": [{"name": "a", "y": 2}]}, {"items": [{"name": "a", "x": 1, "y": 2}]}),
        ({"items": [{"name": "a"}]}, {"items": [{"name": "b"}]}, {"items": [{"name": "b"}, {"name": "a"}]}),
        ({"items": [{"name": "a"}, {"name": "b"}]}, {"items": [{"name": "a", "$patch": "delete"}]}, {"items": [{"name": "b"}]}),
        ({"items": [{"name": "a"}]}, {"items": [{"name": "b"}, {"$patch": "replace"}]}, {"items": [{"name": "b"}]}),
        ({"items": [{"name": "a", "x": 1}]}, {"items": [{"name": "a", "x": None}]}, {"items": [{"name": "a"}]}),
        (
            {"items": [{"name": "a", "inner": [{"name": "i", "x": 1}]}]},
            {"items": [{"name": "a", "inner": [{"name": "i", "y": 2}]}]},
            {"items": [{"name": "a", "inner": [{"name": "i", "x": 1, "y": 2}]}]},
        ),
        (
            {"items": [{"name": "a"}, {"name": "b"}]},
            {"items": [{"name": "c"}], "$setElementOrder/items": [{"name": "c"}, {"name": "b"}, {"name": "a"}]},
            {"items": [{"name": "c"}, {"name": "b"}, {"name": "a"}]},
        ),
        ({"words": ["a", "b"]}, {"words": ["b", "c"]}, {"words": ["a", "b", "c"]}),
        ({"words": ["a", "b"]}, {"$deleteFromPrimitiveList/words": ["a"]}, {"words": ["b"]}),
        ({"words": ["a", "b"]}, {"$setElementOrder/words": ["b", "a"]}, {"words": ["b", "a"]}),
        ({"plain": [1, 2]}, {"plain": [3]}, {"plain": [3]}),
        ({"map": {"a": 1, "b": 2}}, {"map": {"$retainKeys": ["a", "c"], "c": 3}}, {"map": {"a": 1, "c": 3}}),
        ({"map": {"a": 1}}, {"map": {"$patch": "replace", "b": 2}}, {"map": {"b": 2}}),
        ({"map": {"a": 1}}, {"map": {"$patch": "delete"}}, {"map": {}}),
        ({"a": 1, "b": {"c": 1}}, {"a": None, "b": {"d": 2}}, {"b": {"c": 1, "d": 2}}),
    ],
)
def test_strategic_patches(document: Any, change: Any, result: Any) -> None:
    before = copy.deepcopy(document)
    assert strategic.apply(document, change, SCHEMA) == result
    assert document == before


# The results are those of k8s.io/apimachinery v0.36.3.
@pytest.mark.spec("kube-api", 73)
@pytest.mark.parametrize(
    ("live", "patched", "order", "result"),
    [
        ("ab", "c", None, "cab"),
        ("ab", "bc", None, "abc"),
        ("abc", "ca", None, "bca"),
        ("axb", "", "ba", "xba"),
        ("abx", "", "ba", "bax"),
        ("xab", "", "ba", "xba"),
        ("ax", "c", "ca", "cax"),
        ("aeg", "-ghd", "hdb", "aehd"),
        ("fhde", "-ec", "c", "fhdc"),
        ("dh", "-de", "he", "he"),
    ],
)
def test_the_order_of_a_list_that_a_strategic_patch_changes(live: str, patched: str, order: str | None, result: str) -> None:
    """A letter is an entry; the one behind a minus is deleted."""
    gone, new = (patched[1], patched[2:]) if patched.startswith("-") else ("", patched)
    change: dict[str, Any] = {"items": [{"name": each, "$patch": "delete"} for each in gone] + [{"name": each} for each in new]}
    if not patched:
        del change["items"]
    if order is not None:
        change["$setElementOrder/items"] = [{"name": each} for each in order]
    made = strategic.apply({"items": [{"name": each} for each in live]}, change, SCHEMA)
    assert "".join(each["name"] for each in made["items"]) == result


@pytest.mark.spec("kube-api", 73)
@pytest.mark.parametrize("change", [{"items": [{"x": 1}]}, {"map": {"$patch": "sideways"}}, {"$retainKeys": 5}])
def test_strategic_patches_that_mean_nothing(change: Any) -> None:
    with pytest.raises(patch.BadPatch):
        strategic.apply({"items": [], "map": {}}, change, SCHEMA)


@pytest.mark.spec("kube-api", 73)
@pytest.mark.parametrize(
    ("document", "change", "result"),
    [
        ({"words": [1, "1"]}, {"words": [True, 1.0, "1", True]}, {"words": [True, 1.0, 1, "1"]}),
        ({"words": [1, True]}, {"$deleteFromPrimitiveList/words": [True]}, {"words": [1]}),
        (
            {"items": [{"name": 1}, {"name": True}]},
            {"items": [{"name": True, "$patch": "delete"}]},
            {"items": [{"name": 1}]},
        ),
    ],
)
def test_strategic_patches_tell_true_from_one(document: Any, change: Any, result: Any) -> None:
    assert json.dumps(strategic.apply(document, change, SCHEMA)) == json.dumps(result)


@pytest.mark.spec("kube-api", 73)
def test_strategic_patches_of_entries_that_stand_twice() -> None:
    twice = {"items": [{"name": "a"}, {"name": "b"}, {"name": "a"}, {"name": "c"}]}
    deleted = {"items": [{"name": "a", "$patch": "delete"}, {"name": "a", "x": 1}, {"name": "a", "y": 2}]}
    assert strategic.apply(twice, deleted, SCHEMA) == {"items": [{"name": "a", "x": 1, "y": 2}, {"name": "b"}, {"name": "c"}]}


# A search of a list for each of its entries would take minutes, and for each pair of them days.
MANY = 40_000


@pytest.mark.spec("kube-api", 73)
@pytest.mark.parametrize(
    ("document", "change", "result"),
    [
        ({"words": []}, {"words": [*map(str, range(MANY))] * 2}, {"words": [*map(str, range(MANY))]}),
        (
            {"words": [*map(str, range(MANY))]},
            {"$setElementOrder/words": [*map(str, reversed(range(MANY)))]},
            {"words": [*map(str, reversed(range(MANY)))]},
        ),
        (
            {"words": [*map(str, range(MANY))]},
            {"$deleteFromPrimitiveList/words": [*map(str, reversed(range(1, MANY)))]},
            {"words": ["0"]},
        ),
        (
            {"items": [{"name": str(each)} for each in range(MANY)]},
            {
                "items": [{"name": str(each), "x": 1} for each in range(MANY)],
                "$setElementOrder/items": [{"name": str(each)} for each in reversed(range(MANY))],
            },
            {"items": [{"name": str(each), "x": 1} for each in reversed(range(MANY))]},
        ),
        (
            {"items": [{"name": str(each)} for each in range(MANY)]},
            {"items": [{"name": str(each), "$patch": "delete"} for each in reversed(range(1, MANY))]},
            {"items": [{"name": "0"}]},
        ),
        (
            {"map": {str(each): each for each in range(MANY)}},
            {"map": {"$retainKeys": ["0", *(f"x{each}" for each in range(MANY))]}},
            {"map": {"0": 0}},
        ),
    ],
    ids=["unite", "order", "delete-values", "merge-and-order", "delete-entries", "retain"],
)
def test_strategic_patches_of_long_lists(document: Any, change: Any, result: Any) -> None:
    assert strategic.apply(document, change, SCHEMA) == result


def test_a_test_for_null_holds_where_there_is_no_such_member() -> None:
    test, add = {"op": "test", "path": "/a/b", "value": None}, {"op": "add", "path": "/a/b", "value": 1}
    assert patch.apply_json_patch({"a": {}}, [test, add]) == {"a": {"b": 1}}
    with pytest.raises(patch.BadPatch):
        patch.apply_json_patch({"a": {"b": 2}}, [test])
    with pytest.raises(patch.BadPatch):
        patch.apply_json_patch({}, [test])


def doublings(count: int) -> list[Any]:
    seed = {"op": "add", "path": "/data", "value": {"a": "b"}}
    return [seed, *({"op": "copy", "from": "/data", "path": f"/data/k{number}"} for number in range(count))]


@pytest.mark.spec("kube-api", 72)
def test_copies_that_double_a_document_end_at_three_mebibytes() -> None:
    # Each copy doubles the document: the next one to fit would be copied no more.
    assert len(json.dumps(patch.apply_json_patch({}, doublings(17)))) < patch.MOST_COPIED
    with pytest.raises(patch.BadPatch, match=r"operation 18: Unable to complete the copy, .* is 3\d{6}, exceeding the limit 3145728"):
        patch.apply_json_patch({}, doublings(40))


def test_ten_thousand_operations_are_read_and_no_more() -> None:
    one = {"op": "add", "path": "/a", "value": 1}
    assert patch.apply_json_patch({}, [one] * 10_000) == {"a": 1}
    with pytest.raises(patch.PatchTooLarge, match="The allowed maximum operations in a JSON patch is 10000, got 10001"):
        patch.apply_json_patch({}, [one] * 10_001)


@pytest.mark.parametrize(
    "operation", [{"op": "add", "path": "/a/0", "value": 0}, {"op": "remove", "path": "/a/0"}, {"op": "move", "from": "/a/0", "path": "/b"}]
)
def test_a_long_list_is_not_shifted_thousands_of_times(operation: Any) -> None:
    with pytest.raises(patch.BadPatch, match="shift more than"):
        patch.apply_json_patch({"a": [0] * 1_000_000}, [operation] * 100)


@pytest.mark.parametrize("changed", ["/left", "/right"])
def test_a_copy_and_its_source_change_apart(changed: str) -> None:
    original = {"left": {"deep": {"a": [1, {"b": 2}]}}}
    operations = [
        {"op": "replace", "path": "/left/deep/a/0", "value": 3},
        {"op": "copy", "from": "/left", "path": "/right"},
        {"op": "add", "path": f"{changed}/deep/a/1/c", "value": 4},
        {"op": "remove", "path": f"{changed}/deep/a/0"},
    ]
    other = {"/left": "right", "/right": "left"}[changed]
    made = patch.apply_json_patch(original, operations)
    assert made == {changed[1:]: {"deep": {"a": [{"b": 2, "c": 4}]}}, other: {"deep": {"a": [3, {"b": 2}]}}}
    assert original == {"left": {"deep": {"a": [1, {"b": 2}]}}}


def test_what_moved_can_be_copied_and_changed() -> None:
    operations = [
        {"op": "add", "path": "/a/b", "value": {"c": []}},
        {"op": "move", "from": "/a", "path": "/d"},
        {"op": "copy", "from": "/d/b", "path": "/e"},
        {"op": "add", "path": "/d/b/c/-", "value": 1},
        {"op": "copy", "from": "/d", "path": "/d/f"},
        {"op": "add", "path": "/d/f/b/c/-", "value": 2},
    ]
    assert patch.apply_json_patch({"a": {}}, operations) == {"d": {"b": {"c": [1]}, "f": {"b": {"c": [1, 2]}}}, "e": {"c": []}}
