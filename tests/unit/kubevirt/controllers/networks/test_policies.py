"""NetworkPolicies become what the engine holds cards to, anew with each change of machines and namespaces."""

import asyncio
from typing import Any

from paddock.engine.networks.nics import NicPeer, NicPolicy, PolicyAllowance, Ports
from tests.coroutines import played
from tests.unit.kubevirt.controllers.networks.conftest import POLICIES, Host


async def policy(host: Host, name: str, **spec: Any) -> None:
    made = await host.api.post(POLICIES, {"metadata": {"name": name}, "spec": spec})
    assert made.status == 201, made.data
    await asyncio.sleep(1)


@played
async def test_a_policy_follows_machines_and_labels(host: Host, /) -> None:
    db = (await host.machine("db", "10.112.64.5", labels={"app": "db"}))["metadata"]["uid"]
    await policy(
        host, "p", podSelector={"matchLabels": {"app": "db"}}, ingress=[{"from": [{"podSelector": {"matchLabels": {"app": "web"}}}]}]
    )
    assert host.networks.policies == (NicPolicy("default/p", (db,), (PolicyAllowance((NicPeer(owners=()),), None),), None),)
    web = (await host.machine("web", "10.112.64.6"))["metadata"]["uid"]
    assert host.networks.policies == (NicPolicy("default/p", (db,), (PolicyAllowance((NicPeer(owners=(web,)),), None),), None),)
    await host.api.delete(f"{POLICIES}/p")
    await asyncio.sleep(1)
    assert not host.networks.policies


@played
async def test_namespaces_are_selected_by_their_labels(host: Host, /) -> None:
    db = (await host.machine("db", "10.112.64.5", labels={"app": "db"}))["metadata"]["uid"]
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}, "podSelector": {}}
    await policy(host, "p", podSelector={}, ingress=[{"from": [peer], "ports": [{"port": 80, "endPort": 90}]}])
    assert host.networks.policies == (
        NicPolicy("default/p", (db,), (PolicyAllowance((NicPeer(owners=(db,)),), (Ports("tcp", 80, 90),)),), None),
    )


@played
async def test_a_status_of_a_machine_changes_no_policy(host: Host, /) -> None:
    await host.machine("db", "10.112.64.5")
    await policy(host, "p", podSelector={})
    told = 0
    real = host.networks.police

    async def police(policies: Any) -> None:
        nonlocal told
        told += 1
        await real(policies)

    host.networks.police = police  # type: ignore[method-assign]
    await host.state("db", "10.112.64.5", ready=False)
    assert told == 0
