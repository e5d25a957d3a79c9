"""Binding plug-ins of a cluster: registered, and behind a feature gate in older releases."""

from typing import Any

import pytest

from paddock.dialects.stakater.plan.plugins import usable


def installation(version: str = "", gates: list[str] | None = None, binding: Any = None) -> dict[str, Any]:
    configuration = {"developerConfiguration": {"featureGates": gates}, "network": {"binding": binding}}
    return {"spec": {"configuration": configuration}, "status": {"observedKubeVirtVersion": version}}


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        ({}, frozenset()),
        (installation("v1.9.0", None, {"l2bridge": {}}), {"l2bridge"}),
        (installation("v1.5.0", [], {"l2bridge": {}}), {"l2bridge"}),
        (installation("v1.4.1", [], {"l2bridge": {}}), None),
        (installation("v1.3.0", ["Snapshot"], {"l2bridge": {}}), None),
        (installation("1.3.0", ["Snapshot", "NetworkBindingPlugins"], {"l2bridge": {}}), {"l2bridge"}),
        (installation("", [], {"l2bridge": {}}), {"l2bridge"}),
        (installation("devel", [], {"l2bridge": {}}), {"l2bridge"}),
        (installation("v1.9.0", [], None), frozenset()),
    ],
)
def test_plugins(seen: dict[str, Any], found: Any) -> None:
    assert usable(seen) == found
