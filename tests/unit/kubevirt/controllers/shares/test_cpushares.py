"""The shares of Namespaces become the weights of the engine; a value that is none is refused."""

import asyncio
from collections.abc import Mapping

import pytest

from paddock.base.cpushares import ANNOTATION
from paddock.fleet.tenants import tenant
from paddock.fleet.tenants.tenant import TenantShares, WrongShare
from paddock.kubernetes.runtime.machinery import Machinery
from paddock.kubernetes.runtime.program import ControllerManager
from paddock.kubevirt.controllers.shares import controller
from tests.coroutines import run_by
from tests.kit.servers.apiclient import inside
from tests.kit.servers.apiharness import Harness

NAMESPACES = "/api/v1/namespaces"


class Shares:
    """An engine that keeps the weights it gets."""

    weights: Mapping[str, int] | None = None

    def weigh(self, weights: Mapping[str, int]) -> None:
        self.weights = dict(weights)


@pytest.mark.spec("kubevirt", 256)
@run_by(asyncio.run)
async def test_the_engine_follows_the_annotations_of_namespaces() -> None:
    async with Harness() as api, inside(api) as client:
        shares = Shares()
        program = ControllerManager(client, component="paddock", instance="test", machinery=Machinery())
        controller.add(program, shares)
        running = asyncio.create_task(program.run())

        async def become(wanted: Mapping[str, int]) -> None:
            async with asyncio.timeout(10):
                while shares.weights != wanted:
                    await asyncio.sleep(0.02)

        await become({})
        acme = {"metadata": {"name": "acme", "annotations": {ANNOTATION: "300"}}}
        assert (await api.post(NAMESPACES, acme)).status == 201
        await become({"acme": 300})
        await api.merge(f"{NAMESPACES}/acme", {"metadata": {"annotations": {ANNOTATION: "50"}}})
        await become({"acme": 50})
        await api.merge(f"{NAMESPACES}/acme", {"metadata": {"annotations": {ANNOTATION: None}}})
        await become({})
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.spec("kubevirt", 256)
@pytest.mark.parametrize("share", ["", "0", "-1", "10001", "1.5", "many", "007"])
@run_by(asyncio.run)
async def test_a_share_that_is_none_is_refused(share: str) -> None:
    async with Harness() as api:
        reply = await api.post(NAMESPACES, {"metadata": {"name": "acme", "annotations": {ANNOTATION: share}}})
        assert reply.status == 422 and "must be a whole number from 1 to 10000" in reply.data["message"]
    if share:
        with pytest.raises(WrongShare, match="--cpu-shares"):
            tenant.objects("acme", TenantShares("1", "1Gi", "1Gi", "1", share))


def test_a_tenant_has_the_share_that_its_maker_names() -> None:
    named, plain = (tenant.objects("acme", TenantShares("1", "1Gi", "1Gi", "1", share))[0] for share in ("200", ""))
    assert named["metadata"]["annotations"] == {ANNOTATION: "200"} and "annotations" not in plain["metadata"]
