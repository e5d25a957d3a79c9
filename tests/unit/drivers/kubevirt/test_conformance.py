"""The conformance suite on the KubeVirt driver: each case with a whole host of its own, because objects age on one."""

import random
from collections.abc import Callable

import pytest

from paddock.contract.conformance import suite
from paddock.contract.conformance.case import ConformanceCase
from paddock.contract.conformance.cases.catalog import CASES
from paddock.contract.conformance.results import SuiteResult
from paddock.contract.conformance.settings import ConformanceSettings
from tests.coroutines import played
from tests.kit.providers import providerruns
from tests.unit.drivers.kubevirt.conftest import IMAGE, Target

# KubeVirt plugs memory into machines of at least 1 GiB.
SETTINGS = ConformanceSettings(
    image=IMAGE, disk_gib=2, memory_mib=1024, poll_seconds=1, settle_seconds=10, prepare={"source": {"http": {"url": IMAGE.url}}}
)
# The fake host has no bytes of images, and the sizes of its guests' disks do not follow those of their volumes.
UNKNOWN_TO_THE_HOST = {"image-checksum", "disk-grow-online"}
# What the driver does not have.
SKIPPED = {
    "clone-linked",
    "export",
    "export-unknown",
    "import",
    "import-checksum",
    "import-missing",
    "exec",
    "exec-off",
    "transfer-delete",
    "datastores",
}


@pytest.mark.parametrize("case", [each for each in CASES if each.name not in UNKNOWN_TO_THE_HOST], ids=lambda case: case.name)
@played
async def test_the_driver_keeps_the_contract(
    target: Target, /, case: ConformanceCase, record_property: Callable[[str, object], None]
) -> None:
    found: list[SuiteResult] = []
    found.append(await suite.judge(target.driver, SETTINGS, cases=(case,), chance=random.Random(1)))
    (run,) = found
    (result,) = run.results
    providerruns.keep(record_property, "kubevirt", "Paddock's server, without guests", run)
    assert (result.status, run.leftovers) == ("skipped" if case.name in SKIPPED else "passed", ()), result.reason
