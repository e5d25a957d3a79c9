"""Metadata that is refused, with the cause of each field."""

from typing import Any

import pytest

from tests.coroutines import played
from tests.kit.servers.apiharness import Harness
from tests.unit.server.verbs.test_objects import MAPS, config_map

OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "1"}


@pytest.mark.parametrize(
    ("fields", "causes"),
    [
        pytest.param(
            {"annotations": {"a": "x" * (256 * 1024)}},
            {"metadata.annotations": "Too long: may not be more than 262144 bytes"},
            marks=pytest.mark.spec("kube-api", 27, "annotation size"),
        ),
        pytest.param(
            {"finalizers": ["a.b/c", "-x"]},
            {"metadata.finalizers": 'Invalid value: "-x": name part must consist of alphanumeric characters'},
            marks=pytest.mark.spec("kube-api", 27, "finalizer names"),
        ),
        pytest.param(
            {"finalizers": ["plain"]},
            {"metadata.finalizers": 'Invalid value: "plain": name is neither a standard finalizer name nor is it fully qualified'},
            marks=pytest.mark.spec("kube-api", 27, "finalizer names"),
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "name": ""}, {**OWNER, "uid": ""}]},
            {
                "metadata.ownerReferences.name": 'Invalid value: "": name must not be empty',
                "metadata.ownerReferences.uid": 'Invalid value: "": uid must not be empty',
            },
            marks=pytest.mark.spec("kube-api", 27, "owner references"),
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "kind": "Event"}]},
            {"metadata.ownerReferences": 'Invalid value: "Event": is disallowed from being an owner'},
            marks=pytest.mark.spec("kube-api", 27, "owner references"),
        ),
    ],
    ids=["annotations", "finalizer", "undotted", "owner", "event"],
)
@played
async def test_metadata_is_checked_with_its_causes(api: Harness, /, fields: dict[str, Any], causes: dict[str, str]) -> None:
    sent = config_map()
    sent["metadata"] |= fields
    refused = await api.post(MAPS, sent)
    assert (refused.status, refused.reason, set(refused.causes)) == (422, "Invalid", set(causes)), refused.data
    for field, words in causes.items():
        assert refused.causes[field].startswith(words)
