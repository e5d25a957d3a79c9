"""ConversionReview: what is asked, and which answers are believed."""

from typing import Any

import pytest

from paddock.server.custom import review

UID = "u-1"
META = {"name": "a", "namespace": "default", "uid": "x", "labels": {"l": "1"}, "generation": 3}


def thing(version: str = "v1", **members: Any) -> dict[str, Any]:
    return {"apiVersion": f"example.com/{version}", "kind": "Widget", "metadata": dict(META), **members}


def asked(count: int = 1, understood: tuple[str, ...] = ("v1",)) -> dict[str, Any]:
    return review.question([thing() for _ in range(count)], "example.com/v2", UID, understood)


def answer(*objects: Any, **response: Any) -> dict[str, Any]:
    said = {"uid": UID, "result": {"status": "Success"}, "convertedObjects": list(objects), **response}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": said}


def test_the_first_version_that_both_understand() -> None:
    assert asked(understood=("v9", "v1beta1", "v1"))["apiVersion"] == "apiextensions.k8s.io/v1beta1"
    with pytest.raises(review.BadConversion, match="no supported conversion review versions"):
        asked(understood=("v9",))


def test_metadata_stays_but_for_labels_and_annotations() -> None:
    meta = {**META, "labels": {"l": "2"}, "annotations": {"a": "b"}, "generation": 9, "finalizers": ["x/y"]}
    (made,) = review.converted(asked(), answer({**thing("v2", spec={"a": 1}), "metadata": meta}))
    assert made["metadata"] == {**META, "labels": {"l": "2"}, "annotations": {"a": "b"}}
    assert made["spec"] == {"a": 1}
    (bare,) = review.converted(asked(), answer({**thing("v2"), "metadata": {**META, "labels": None}}))
    assert "labels" not in bare["metadata"]


FAILED = "conversion webhook for example.com/v1, Kind=Widget failed: "
RETURNED = "conversion webhook for example.com/v1, Kind=Widget returned "


def other(**changed: Any) -> dict[str, Any]:
    return {**thing("v2"), "metadata": {**META, **changed}}


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ([], FAILED + "the answer is no JSON object"),
        (
            {"kind": "X", "apiVersion": "v1"},
            FAILED + "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got v1, Kind=X",
        ),
        ({**answer(), "response": None}, FAILED + "no response provided"),
        (answer(uid="other"), FAILED + 'expected response.uid="u-1", got "other"'),
        (answer(result={"status": "Failure", "message": "no thanks"}), FAILED + "no thanks"),
        (answer(result={"status": "Failure"}), FAILED + "response.result.status was 'Failure', not 'Success'"),
        (answer(result=None), FAILED + "response.result.status was '', not 'Success'"),
        (answer(convertedObjects=None), RETURNED + "0 objects, expected 1"),
        (answer(thing("v2"), thing("v2")), RETURNED + "2 objects, expected 1"),
        (answer(7), RETURNED + "invalid object at index 0: it is no JSON object"),
        (
            answer(thing("v1")),
            RETURNED + "invalid object at index 0: invalid groupVersion (expected example.com/v2, received example.com/v1)",
        ),
        (
            answer({**thing("v2"), "kind": "Gadget"}),
            RETURNED + "invalid object at index 0: invalid kind (expected Widget, received Gadget)",
        ),
        (answer(other(uid="y")), RETURNED + "invalid object: must have the same UID: x != y"),
        (answer(other(name="b")), RETURNED + "invalid object: must have the same name: a != b"),
        (answer(other(namespace="b")), RETURNED + "invalid object: must have the same namespace: default != b"),
        (answer(other(labels=["a"])), RETURNED + "invalid metadata: invalid metadata.labels in converted object"),
        (answer(other(labels={"a": 1})), RETURNED + "invalid metadata: metadata.labels[a] must be a string in converted object"),
        (answer(other(labels={"a b": "c"})), RETURNED + 'invalid metadata: metadata.labels: Invalid value: "a b": is no qualified name'),
        (answer(other(labels={"a": "c d"})), RETURNED + 'invalid metadata: metadata.labels: Invalid value: "c d": is no value of a label'),
    ],
)
def test_answers_that_are_not_believed(said: Any, wrong: str) -> None:
    with pytest.raises(review.BadConversion) as error:
        review.converted(asked(), said)
    assert error.value.what == wrong


def test_of_several_the_one_that_is_wrong_is_named() -> None:
    with pytest.raises(review.BadConversion) as error:
        review.converted(asked(2), answer(thing("v2"), other(uid="y")))
    assert error.value.what == RETURNED + "invalid converted object at index 1: must have the same UID: x != y"


def test_the_old_review_says_neither_its_kind_nor_its_question() -> None:
    said = {"response": {"result": {"status": "Success"}, "convertedObjects": [thing("v2")]}}
    assert review.converted(asked(understood=("v1beta1",)), said) == [thing("v2")]
