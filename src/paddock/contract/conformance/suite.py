"""Runs cases one after another."""

import asyncio
import random
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

import msgspec

from paddock.base.errors import PaddockError, Terminal
from paddock.contract import extensionmessages as x
from paddock.contract import features
from paddock.contract import messages as m
from paddock.contract.conformance.case import ConformanceCase
from paddock.contract.conformance.cases.catalog import CASES
from paddock.contract.conformance.context import ConformanceContext
from paddock.contract.conformance.results import CaseNotApplicable, CaseResult, SuiteResult
from paddock.contract.conformance.settings import ConformanceSettings
from paddock.contract.driver import Driver, extensions
from paddock.contract.errors import ErrorKind, ProviderError

Observer = Callable[[CaseResult], None]
_AWAY = (ErrorKind.UNAVAILABLE, ErrorKind.TIMEOUT, ErrorKind.UNAUTHORIZED)


class UnknownCase(Terminal):
    """A pattern that no case's name matches."""


class CaseSelection(msgspec.Struct, frozen=True, kw_only=True):
    """The cases of a run, by names with * and ?."""

    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()


def select(selection: CaseSelection, cases: Sequence[ConformanceCase] = CASES) -> list[ConformanceCase]:
    """Return the chosen cases in their order. Raises `UnknownCase` for a pattern that matches none."""
    for pattern in (*selection.only, *selection.skip):
        if not any(fnmatchcase(each.name, pattern) for each in cases):
            raise UnknownCase(f"no case is named {pattern!r}", fix="`paddock provider conformance --list` prints the names")
    chosen = [each for each in cases if not selection.only or any(fnmatchcase(each.name, one) for one in selection.only)]
    return [each for each in chosen if not any(fnmatchcase(each.name, one) for one in selection.skip)]


async def judge(
    driver: Driver,
    settings: ConformanceSettings,
    *,
    cases: Sequence[ConformanceCase] = CASES,
    chance: random.Random,
    observe: Observer | None = None,
) -> SuiteResult:
    """Run the cases and return their results. A provider that cannot be reached is not judged."""
    try:
        await driver.validate(m.ValidateRequest())
    except ProviderError as error:
        if error.kind in _AWAY:
            return SuiteResult(unreachable=str(error))
    try:
        capabilities = await driver.get_capabilities(m.GetCapabilitiesRequest())
    except ProviderError as error:
        if error.kind in _AWAY:
            return SuiteResult(unreachable=str(error))
        capabilities = m.GetCapabilitiesResponse()
    context = ConformanceContext(driver, settings, capabilities, chance)
    try:
        context.features = frozenset((await extensions(driver).get_features(x.GetFeaturesRequest())).features)
    except ProviderError as error:
        if error.kind in _AWAY:
            return SuiteResult(unreachable=str(error))
    results: list[CaseResult] = []
    leftovers: list[str] = []
    for case in cases:
        try:
            result = await _decide(case, context)
        finally:
            # A cancelled run cleans up, too.
            leftovers += [*await context.clean_up(), *context.remove_transfers()]
        results.append(result)
        if observe is not None:
            observe(result)
    return SuiteResult(
        results=tuple(results), leftovers=tuple(leftovers), capabilities=capabilities, features=tuple(sorted(context.features))
    )


async def _decide(case: ConformanceCase, context: ConformanceContext) -> CaseResult:
    missing = [each for each in case.needs if not getattr(context.capabilities, each)]
    missing += [each for each in case.features if not features.has(context.features, each)]
    if missing:
        return CaseResult(name=case.name, status="skipped", reason=f"the provider does not have {', '.join(missing)}")
    start = asyncio.get_running_loop().time()

    def result(status: str, reason: str) -> CaseResult:
        seconds = asyncio.get_running_loop().time() - start
        return msgspec.convert({"name": case.name, "status": status, "reason": reason, "seconds": round(seconds, 3)}, CaseResult)

    try:
        await case.run(context)
    except CaseNotApplicable as error:
        return result("skipped", str(error))
    except ProviderError as error:
        if error.kind is ErrorKind.NOT_SUPPORTED and case.optional:
            return result("skipped", str(error))
        return result("failed", f"{error.kind}: {error}")
    except PaddockError as error:
        return result("failed", str(error))
    return result("passed", "")
