"""The conformance suite on the Proxmox VE driver, against the simulated API."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from paddock.contract import payloads
from paddock.contract.conformance import suite
from paddock.contract.conformance.case import ConformanceCase
from paddock.contract.conformance.cases.catalog import CASES
from paddock.contract.conformance.results import SuiteResult
from paddock.contract.conformance.settings import ConformanceSettings
from tests.coroutines import played_by
from tests.kit.providers import providerruns
from tests.unit.drivers.proxmox.conftest import IMAGE_URL, TEMPLATE, Stage, play_in, qcow2

# What the driver does not have: Proxmox VE links clones to templates only, and hands out no disks.
SKIPPED = {"clone-linked", "export", "export-unknown", "import", "import-checksum", "transfer-delete"}
AGAINST = "a simulator of its published API"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@played_by(play_in, "tmp_path")
async def test_the_driver_keeps_the_contract(
    stage: Stage, /, case: ConformanceCase, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    found: list[SuiteResult] = []
    settings = ConformanceSettings(
        image=payloads.ImagePayload(template_name=str(TEMPLATE)),
        # Proxmox VE plugs memory into machines of at least 1 GiB.
        memory_mib=1024,
        prepare={"source": {"http": {"url": IMAGE_URL}}},
        command=("/bin/true",),
        transfer_url="pvc://claim/run",
        transfer_directory=str(tmp_path / "claim" / "run"),
    )
    (tmp_path / "claim").mkdir()
    stage.simulator.park.fetch = lambda url: qcow2()
    found.append(await suite.judge(stage.driver, settings, cases=(case,), chance=random.Random(1)))
    (result,) = found
    providerruns.keep(record_property, "proxmox", AGAINST, result)
    (judged,) = result.results
    assert (judged.status, result.leftovers) == ("skipped" if case.name in SKIPPED else "passed", ()), judged.reason
