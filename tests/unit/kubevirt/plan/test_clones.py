"""The differences of a clone from its source."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.kubernetes.meta.patch import apply_json_patch
from paddock.kubevirt.kinds.clone import VirtualMachineClone
from paddock.kubevirt.plan.snapshots import clones

SOURCE = {
    "metadata": {
        "name": "web",
        "labels": {"app": "web", "team.example.com/a": "x"},
        "annotations": {"keep": "1", "drop.example.com/b": "2"},
    },
    "spec": {
        "template": {
            "metadata": {"labels": {"kubevirt.io/vm": "web", "tier": "front"}},
            "spec": {"domain": {"devices": {"interfaces": [{"name": "a", "macAddress": "02:00:00:00:00:01"}, {"name": "b"}]}}},
        }
    },
}


def clone(**spec: object) -> VirtualMachineClone:
    source = {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web"}
    document = {"metadata": {"name": "c", "namespace": "default", "uid": "12345678-x"}, "spec": {"source": source, **spec}}
    return msgspec.convert(document, VirtualMachineClone)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("web", "clone-web-12345"),
        ("a" * 51, f"clone-{'a' * 51}-12345"),
        ("a" * 63, f"clone-{'a' * 51}-12345"),
        (f"{'a' * 50}-b", f"clone-{'a' * 50}-12345"),
        (f"{'a' * 49}.-b", f"clone-{'a' * 49}-12345"),
    ],
)
def test_a_clone_without_a_name_is_called_after_its_source_and_itself(source: str, target: str) -> None:
    assert clones.target_name(clone(source={"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": source})) == target


def cloned(**spec: object) -> dict[str, object]:
    found: dict[str, object] = apply_json_patch(SOURCE, list(clones.patches(clone(**spec), SOURCE)))
    return found


def at(found: object, *path: str | int) -> object:
    for step in path:
        found = found[step] if not isinstance(found, dict) else found.get(step)  # type: ignore[index]
    return found


INTERFACES = ("spec", "template", "spec", "domain", "devices", "interfaces")


def test_a_clone_has_cards_of_its_own() -> None:
    found = cloned()
    assert at(found, *INTERFACES) == [{"name": "a"}, {"name": "b"}]
    assert at(found, "metadata", "labels") == at(SOURCE, "metadata", "labels")


def test_macs_and_serial_may_be_chosen() -> None:
    found = cloned(newMacAddresses={"b": "02:00:00:00:00:09"}, newSMBiosSerial="S1")
    assert at(found, *INTERFACES) == [{"name": "a"}, {"name": "b", "macAddress": "02:00:00:00:00:09"}]
    assert at(found, "spec", "template", "spec", "domain", "firmware", "serial") == "S1"


def test_filters_say_which_keys_are_copied() -> None:
    found = cloned(labelFilters=["*", "!team.example.com/*"], annotationFilters=["keep"], template={"labelFilters": ["!kubevirt.io/*"]})
    assert at(found, "metadata", "labels") == {"app": "web"}
    assert at(found, "metadata", "annotations") == {"keep": "1"}
    assert at(found, "spec", "template", "metadata", "labels") == {"tier": "front"}


def test_the_user_has_the_last_word() -> None:
    patch = json.dumps({"op": "replace", "path": "/metadata/labels/app", "value": "other"})
    assert at(cloned(patches=[patch]), "metadata", "labels", "app") == "other"


@pytest.mark.parametrize(
    ("key", "filters", "kept"),
    [
        ("a", None, True),
        ("a", [], True),
        ("a", ["*"], True),
        ("x/a", ["x/*"], True),
        ("y/a", ["x/*"], False),
        ("x/a", ["*", "!x/*"], False),
        ("x/a", ["!x/a"], False),
        ("b", ["!x/a"], True),
    ],
)
def test_a_filter(key: str, filters: list[str] | None, kept: bool) -> None:
    assert clones.is_kept(key, filters) is kept


@given(
    st.dictionaries(st.text("abc/~.", min_size=1), st.text(), max_size=6), st.lists(st.sampled_from(["*", "!a*", "b*", "!*/*"]), max_size=3)
)
def test_filters_never_make_a_patch_that_fails(labels: dict[str, str], filters: list[str]) -> None:
    source = {"metadata": {"labels": labels}, "spec": {}}
    found = apply_json_patch(source, list(clones.patches(clone(labelFilters=filters), source)))
    assert set(found["metadata"]["labels"]) == {key for key in labels if clones.is_kept(key, filters)}


def test_names_of_what_is_in_between_are_its_own() -> None:
    one = clone()
    assert clones.target_name(one) == "clone-web-12345"
    assert clones.snapshot(one, {})["metadata"]["ownerReferences"][0]["uid"] == "12345678-x"
    given_snapshot = clone(source={"apiGroup": "snapshot.kubevirt.io", "kind": "VirtualMachineSnapshot", "name": "monday"})
    assert clones.snapshot_name(given_snapshot) == "monday"
