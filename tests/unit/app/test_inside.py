"""The client in the server's process has the rights of its user, and no more."""

import asyncio
from pathlib import Path

import pytest

from paddock.app.localtransport import door
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Forbidden, Unreachable
from paddock.kubernetes.client.localtransport import LocalTransport
from paddock.kubernetes.client.target import Key, plain
from tests.coroutines import run_by
from tests.kit.servers.apiharness import GuardedHarness

MAPS = plain("", "v1", "configmaps", "ConfigMap")
RBAC = "/apis/rbac.authorization.k8s.io/v1"


@run_by(asyncio.run)
async def test_rights_are_those_of_the_user(tmp_path: Path) -> None:
    async with GuardedHarness(tmp_path) as api, Client(LocalTransport(door(api.api, "reader", ("readers",)))) as client:
        data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}
        with pytest.raises(Forbidden, match='User "reader" cannot list resource "configmaps"'):
            await client.list(MAPS)
        with pytest.raises(Forbidden):
            async for _ in client.watch(MAPS):
                pass
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]
        role = {"metadata": {"name": "readers"}, "rules": rules}
        binding = {
            "metadata": {"name": "readers"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "readers"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "readers"}],
        }
        for plural, body in (("clusterroles", role), ("clusterrolebindings", binding)):
            assert (await api.post(f"{RBAC}/{plural}", body, authorization="Bearer root")).status == 201
        assert (await client.list(MAPS)).items == []
        with pytest.raises(Forbidden):
            await client.create(MAPS, data)


@run_by(asyncio.run)
async def test_a_client_that_is_closed_asks_nothing(tmp_path: Path) -> None:
    async with GuardedHarness(tmp_path) as api:
        client = Client(LocalTransport(door(api.api, "root", ("system:masters",))))
        events = client.watch(MAPS)
        following = asyncio.create_task(anext(events, None))
        await asyncio.sleep(0.01)
        assert api.parts.following.count == 1
        await client.close()
        assert await following is None
        assert api.parts.following.count == 0
        with pytest.raises(Unreachable):
            await client.get(MAPS, Key("default", "a"))
