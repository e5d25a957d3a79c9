"""Roles and bindings of the start: a later start gives back what they lost, keeps what was added, and writes nothing else."""

from typing import Any

import pytest

from paddock.server.housekeeping import bootstrap
from tests.coroutines import played
from tests.kit.servers.apiharness import Harness

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ADDED = {"apiGroups": ["example.com"], "resources": ["things"], "verbs": ["get"]}
OFF = {"rbac.authorization.kubernetes.io/autoupdate": "false"}
SOMEBODY = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "somebody"}


@pytest.mark.parametrize(
    ("place", "change", "member", "kept", "is_completed"),
    [
        (f"{RBAC}/clusterroles/system:discovery", {"rules": [ADDED]}, "rules", [ADDED], True),
        (f"{RBAC}/clusterroles/system:discovery", {"rules": [ADDED], "metadata": {"annotations": OFF}}, "rules", [ADDED], False),
        (f"{RBAC}/clusterrolebindings/system:discovery", {"subjects": [SOMEBODY]}, "subjects", [SOMEBODY], True),
    ],
)
@played
async def test_what_was_lost_comes_back(
    api: Harness, /, place: str, change: dict[str, Any], member: str, kept: list[dict[str, Any]], is_completed: bool
) -> None:
    await bootstrap.ensure(api.parts)
    before = (await api.get(place)).data[member]
    assert (await api.merge(place, change)).status == 200
    await bootstrap.ensure(api.parts)
    assert (await api.get(place)).data[member] == (kept + before if is_completed else kept)


@played
async def test_what_is_whole_is_not_written(api: Harness, /, monkeypatch: pytest.MonkeyPatch) -> None:
    await bootstrap.ensure(api.parts)
    monkeypatch.setattr(api.parts, "writer", None)
    await bootstrap.ensure(api.parts)
