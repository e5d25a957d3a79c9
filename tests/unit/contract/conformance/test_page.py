"""docs/contribute/writing-a-driver.md: its driver passes the suite as the page says, its script is one, and its tables are complete."""

import importlib.util
import random
import re
import tomllib
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import get_args

import msgspec

from paddock.base.clock import SystemClock
from paddock.contract.conformance import suite
from paddock.contract.conformance.results import SuiteResult
from paddock.contract.conformance.settings import ConformanceSettings
from paddock.contract.driver import Driver
from paddock.contract.errors import ErrorKind
from paddock.contract.factory import DriverContext
from paddock_drivers.fake.settings import FakeSettings, FaultEffect
from tests import virtualtime
from tests.coroutines import run_by

PAGE = Path(__file__).parents[4] / "docs" / "contribute" / "writing-a-driver.md"


def block(language: str) -> str:
    """The first code of a language."""
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def toy(folder: Path) -> AbstractAsyncContextManager[Driver]:
    """The page's driver, from a file outside of the package."""
    path = folder / "toydriver.py"
    path.write_text(block("python"), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("toydriver", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: AbstractAsyncContextManager[Driver] = module.make(DriverContext(clock=SystemClock()))
    return made


@run_by(virtualtime.run)
async def test_the_driver_of_the_page_passes(tmp_path: Path) -> None:
    found: list[SuiteResult] = []
    async with toy(tmp_path) as driver:
        found.append(await suite.judge(driver, ConformanceSettings(), chance=random.Random(1)))
    (result,) = found
    assert [(each.name, each.reason) for each in result.results if each.status == "failed"] == []
    said = f"{result.count('passed')} passed, 0 failed, {result.count('skipped')} skipped"
    assert result.good and said in PAGE.read_text(encoding="utf-8"), said


def test_the_script_of_the_page_is_one() -> None:
    settings = msgspec.convert(tomllib.loads(block("toml")), FakeSettings)
    assert settings.faults[0].effect == "lost-answer" and settings.machines[0].name == "legacy"


def test_the_tables_are_complete() -> None:
    rows = "\n".join(line.split("|")[1] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `"))
    named = set(re.findall(r"`([\w-]+)`", rows))
    assert set(get_args(FaultEffect)) <= named
    assert {str(kind) for kind in ErrorKind} <= named


def test_every_setting_is_named() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in FakeSettings.__struct_fields__ if name not in text] == []
