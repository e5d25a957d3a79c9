"""Keeps runs of the providers' conformance suite for docs/reference/providers.md."""

from collections.abc import Callable

import msgspec

from paddock.contract.conformance.results import SuiteResult
from tools.conformance.plugin import RUN_PROPERTY
from tools.conformance.results import ProviderRun, as_text


def keep(record_property: Callable[[str, object], None], driver: str, against: str, result: SuiteResult) -> None:
    """Keep a run, or a part of one: `driver` is a type of Provider, `against` names what stood behind it, with its version.

    `record_property` is pytest's fixture. The page counts the run only if its test passes.
    """
    said = msgspec.structs.asdict(result.capabilities)
    names = (*(name for name, value in said.items() if value is True), *result.features)
    cases = tuple(sorted((each.name, each.status) for each in result.results))
    record_property(RUN_PROPERTY, as_text(ProviderRun(driver, against, tuple(sorted(names)), cases)))
