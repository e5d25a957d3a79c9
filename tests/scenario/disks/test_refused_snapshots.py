"""The server refuses what a snapshot, a restore or a clone makes: users see why, and the machine is as it was."""

import asyncio
from typing import Any

import pytest

from paddock.client.errors import StatusDetails, Unavailable
from paddock.controllers.snapshots.machinesnapshots import MachineSnapshotReconciler
from tests.fakehost import Data, FakeHost
from tests.scenario.hosts.conftest import Play
from tests.scenario.hosts.snapshotting import conditions, snapshot, taken, web

QUOTAS = "/api/v1/namespaces/default/resourcequotas"


def quota(**hard: str) -> Data:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}


@pytest.mark.spec("kubevirt", 79)
def test_a_snapshot_that_a_quota_refuses_ends_at_its_deadline(play: Play) -> None:
    async def script(host: FakeHost) -> None:
        await web(host, "Halted")
        await host.api.post(QUOTAS, quota(**{"count/volumesnapshots.snapshot.storage.k8s.io": "0"}))
        await host.make(snapshot(failureDeadline="1m"))
        await asyncio.sleep(30)
        status = await taken(host)
        assert status["phase"] == "InProgress" and "exceeded quota: q" in status["conditions"][1]["reason"]
        await asyncio.sleep(60)
        status = await taken(host)
        assert status["phase"] == "Failed" and "exceeded quota: q" in status["error"]["message"]
        assert conditions(status) == {"Ready": "False", "Progressing": "False", "Failure": "True"}
        assert "snapshotInProgress" not in (await host.vm())["status"]

    play(script)


@pytest.mark.spec("kubevirt", 79)
def test_a_snapshot_that_a_webhook_keeps_from_its_end_ends_at_its_deadline(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    async def script(host: FakeHost) -> None:
        async def fail(*arguments: Any) -> None:
            raise Unavailable(500, StatusDetails("failed calling webhook"))

        monkeypatch.setattr(MachineSnapshotReconciler, "_volume_snapshot", fail)
        await web(host, "Halted")
        await host.make(snapshot(failureDeadline="1m"))
        await asyncio.sleep(90)
        status = await taken(host)
        assert status["phase"] == "Failed" and "failed calling webhook" in status["error"]["message"]
        assert "snapshotInProgress" not in (await host.vm())["status"]

    play(script)
