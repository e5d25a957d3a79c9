"""The conformance suite on Paddock's own machines, with real guests."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from paddock.base.images.build import tiny
from paddock.contract import payloads as p
from paddock.contract.conformance import suite
from paddock.contract.conformance.results import SuiteResult
from paddock.contract.conformance.settings import ConformanceSettings
from paddock.dialects.virtrigaud.translate import described
from paddock_drivers.kit.staging import StagingSettings
from paddock_drivers.kubevirt.driver import KubeVirtDriver
from paddock_drivers.kubevirt.settings import KubeVirtDriverSettings
from tests.coroutines import played
from tests.host.guests import Shelf
from tests.host.runs.conftest import Talk
from tests.kit.providers import providerruns

pytestmark = [pytest.mark.needs("qemu"), pytest.mark.slow]
# What the driver does not have.
SKIPPED = {"clone-linked", "datastores"}


@played
async def test_the_driver_keeps_the_contract_with_real_guests(
    talk: Talk, /, web: Shelf, tiny_guest: tiny.TinyImage, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    found: list[SuiteResult] = []
    url = web.put(tiny_guest.disk)
    (tmp_path / "claim").mkdir()
    settings = ConformanceSettings(
        image=p.ImagePayload(url=url, format="qcow2"),
        memory_mib=1024,
        disk_gib=1,
        poll_seconds=0.3,
        settle_seconds=20,
        prepare={"source": {"http": {"url": url}}},
        transfer_url="pvc://claim/run",
        transfer_directory=str(tmp_path / "claim" / "run"),
        command=("/bin/true",),
    )
    # The server makes these a moment after its start.
    for kind in ("storage.k8s.io/v1/storageclasses", "snapshot.storage.k8s.io/v1/volumesnapshotclasses"):
        await talk.until(f"/apis/{kind}", lambda seen: seen.get("items"), f"there are {kind}")
    reach = KubeVirtDriverSettings(
        translation=described.translate, image_size="1Gi", staging=StagingSettings(claims=tmp_path), scratch=tmp_path
    )
    found.append(await suite.judge(KubeVirtDriver(talk.client, reach), settings, chance=random.Random(1)))
    (result,) = found
    providerruns.keep(record_property, "qemu", "Paddock with real guests", result)
    assert {each.name: each.reason for each in result.results if each.status == "failed"} == {}
    assert not result.leftovers and {each.name for each in result.results if each.status == "skipped"} <= SKIPPED
