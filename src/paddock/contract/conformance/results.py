"""Results of cases, and the errors that end one."""

from typing import Literal

import msgspec

from paddock.base.errors import Terminal
from paddock.contract.messages import GetCapabilitiesResponse

Status = Literal["passed", "failed", "skipped"]


class ConformanceFailure(Terminal):
    """A provider does not do what the contract demands."""


class CaseNotApplicable(Terminal):
    """A case that cannot judge this provider, with the reason."""


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a case, with the reason unless it passed."""

    name: str
    status: Status
    reason: str = ""
    seconds: float = 0.0


class SuiteResult(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a run."""

    results: tuple[CaseResult, ...] = ()
    # what the suite made and could not delete
    leftovers: tuple[str, ...] = ()
    # why no case could be run
    unreachable: str = ""
    # what the provider says that it can do
    capabilities: GetCapabilitiesResponse = GetCapabilitiesResponse()
    features: tuple[str, ...] = ()

    def count(self, status: Status) -> int:
        """The number of cases with this result."""
        return sum(each.status == status for each in self.results)

    @property
    def ran(self) -> bool:
        """Return True if at least one case was decided."""
        return bool(self.count("passed") + self.count("failed"))

    @property
    def good(self) -> bool:
        """Return True if cases ran, none failed, and nothing was left behind."""
        return self.ran and not self.count("failed") and not self.leftovers and not self.unreachable
