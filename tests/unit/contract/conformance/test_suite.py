"""The suite itself: which cases run, what skips one, and when there is no verdict."""

import asyncio
import random
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest

from paddock.contract import messages as m
from paddock.contract.conformance import suite
from paddock.contract.conformance.case import ConformanceCase
from paddock.contract.conformance.cases.catalog import CASES
from paddock.contract.conformance.context import ConformanceContext
from paddock.contract.conformance.results import CaseNotApplicable, SuiteResult
from paddock.contract.conformance.settings import ConformanceSettings
from paddock.contract.conformance.suite import CaseSelection, UnknownCase
from paddock.contract.driver import Driver
from paddock.contract.errors import ErrorKind, ProviderError
from paddock_drivers.fake.driver import FakeDriver
from paddock_drivers.fake.settings import FakeSettings, ForeignMachine, RpcFault
from tests import virtualtime
from tests.coroutines import run_by


def judged(driver: FakeSettings, *cases: ConformanceCase, **settings: Any) -> tuple[SuiteResult, FakeDriver]:
    found: list[tuple[SuiteResult, FakeDriver]] = []

    async def script() -> None:
        fake = FakeDriver(driver, virtualtime.Clock())
        chosen = cases or CASES
        found.append((await suite.judge(fake, ConformanceSettings(**settings), cases=chosen, chance=random.Random(1)), fake))

    virtualtime.run(script())
    return found[0]


def case(run: Any, **changes: Any) -> ConformanceCase:
    return ConformanceCase(name="one", text="a case", run=run, **changes)


def test_names_are_unique_and_needs_exist() -> None:
    names = [each.name for each in CASES]
    assert len(names) == len(set(names)) > 50
    assert {need for each in CASES for need in each.needs} <= set(m.GetCapabilitiesResponse.__struct_fields__)


def test_a_selection() -> None:
    names = [each.name for each in suite.select(CaseSelection(only=("power-*",), skip=("*-forced", "*-off")))]
    assert names == ["power-on", "power-cycle", "power-reboot", "power-graceful", "power-unspecified"]
    with pytest.raises(UnknownCase, match="no case is named 'pwoer-\\*'"):
        suite.select(CaseSelection(only=("pwoer-*",)))


def test_what_a_provider_does_not_have_is_skipped_with_the_reason() -> None:
    off = ("snapshots", "linked_clones", "image_import", "disk_export", "disk_import", "reconfigure_online", "disk_expansion_online")
    result, _ = judged(FakeSettings(without=off))
    skipped = {each.name: each.reason for each in result.results if each.status == "skipped"}
    assert not result.count("failed") and result.good
    assert skipped["snapshot-memory"] == "the provider does not have supports_snapshots, supports_memory_snapshots"
    assert {"snapshot-create", "clone-linked", "image-prepare", "export", "import", "reconfigure-online", "disk-grow-online"} <= set(
        skipped
    )


def test_what_was_not_named_is_skipped() -> None:
    result, _ = judged(FakeSettings())
    reasons = {each.name: each.reason for each in result.results if each.status == "skipped"}
    assert reasons == {
        "datastores": "the provider does not have datastores",
        **dict.fromkeys(("image-prepare", "image-checksum", "image-delete"), "no image to prepare was named"),
        **dict.fromkeys(("exec", "exec-off"), "no command of the guest was named"),
        **dict.fromkeys(
            ("export", "export-unknown", "import", "import-checksum", "import-missing", "transfer-delete"), "no staging URL was named"
        ),
    }


def test_only_its_own_machines_are_deleted() -> None:
    settings = FakeSettings(machines=tuple(ForeignMachine(name=name) for name in ("a", "conformance-1", "z")))
    result, fake = judged(settings)
    assert result.good
    assert [each.name for each in asyncio.run(fake.list_vms(m.ListVMsRequest())).vms] == ["a", "conformance-1", "z"]


def test_nothing_run_is_no_success() -> None:
    result, _ = judged(FakeSettings(), case(AsyncMock(side_effect=CaseNotApplicable("not today"))))
    assert result.count("skipped") == 1 and not result.ran and not result.good
    assert not SuiteResult().good


@pytest.mark.parametrize("kind", [ErrorKind.UNAVAILABLE, ErrorKind.TIMEOUT, ErrorKind.UNAUTHORIZED])
@pytest.mark.parametrize("rpc", ["Validate", "GetCapabilities"])
def test_a_provider_that_is_away_is_not_judged(kind: ErrorKind, rpc: str) -> None:
    result, _ = judged(FakeSettings(faults=(RpcFault(rpc=rpc, kind=kind, message="gone", count=0),)))
    assert result.unreachable == "gone" and not result.results and not result.good


def test_a_provider_without_capabilities_is_judged_by_the_rest() -> None:
    result, _ = judged(FakeSettings(faults=(RpcFault(rpc="GetCapabilities", kind=ErrorKind.NOT_SUPPORTED, count=0),)))
    assert {each.name for each in result.results if each.status == "failed"} == {"capabilities"}


def test_not_supported_skips_an_optional_case_and_fails_another() -> None:
    refuses = AsyncMock(side_effect=ProviderError(ErrorKind.NOT_SUPPORTED, "no disks here"))
    assert judged(FakeSettings(), case(refuses, optional=True))[0].results[0].status == "skipped"
    assert judged(FakeSettings(), case(refuses))[0].results[0].status == "failed"


def test_what_cannot_be_deleted_is_named() -> None:
    faults = (RpcFault(rpc="Delete", kind=ErrorKind.INTERNAL, message="stuck", count=0),)
    chosen = suite.select(CaseSelection(only=("create",)))
    result, _ = judged(FakeSettings(faults=faults), *chosen)
    assert result.count("passed") == 1 and not result.good
    assert result.leftovers == ("machine vm-1: stuck",)


def test_a_create_whose_answer_is_lost_leaves_nothing() -> None:
    faults = (RpcFault(rpc="Create", effect="lost-answer"),)
    result, fake = judged(FakeSettings(faults=faults), *suite.select(CaseSelection(only=("create",))))
    assert result.count("failed") == 1 and not result.leftovers
    assert not asyncio.run(fake.list_vms(m.ListVMsRequest())).vms


@run_by(virtualtime.run)
async def test_a_cancelled_run_cleans_up() -> None:
    async def waits(context: ConformanceContext) -> None:
        await context.create()
        await asyncio.sleep(3600)

    fake: Driver = FakeDriver(FakeSettings(), virtualtime.Clock())
    run = asyncio.create_task(suite.judge(fake, ConformanceSettings(), cases=(case(waits),), chance=random.Random(1)))
    await asyncio.sleep(60)
    assert len((await fake.list_vms(m.ListVMsRequest())).vms) == 1
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    assert not (await fake.list_vms(m.ListVMsRequest())).vms


def test_exported_files_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "claim" / "run"
    chosen = suite.select(CaseSelection(only=("export", "import")))
    result, _ = judged(FakeSettings(directory=str(tmp_path)), *chosen, transfer_url="pvc://claim/run", transfer_directory=str(folder))
    assert result.count("passed") == 2
    assert list(folder.iterdir()) == []
