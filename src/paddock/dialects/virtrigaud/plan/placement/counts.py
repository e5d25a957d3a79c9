"""The uses of a policy, each counted exactly once whatever happens.

The decision for a machine, and the numbers that the policy has after it, are one write of the machine's status. The policy's own numbers
are the highest that it and its machines have, so whoever writes them, and however often, they are the same.
"""

import msgspec

from paddock.base import duration
from paddock.dialects.virtrigaud.kinds.virtualmachine import VirtrigaudMachineStatus
from paddock.dialects.virtrigaud.kinds.vmplacementpolicy import PlacementStats
from paddock.dialects.virtrigaud.plan import marks

_MEMBER = f"{marks.OWN_PREFIX}placement-counts"


class PlacementCounts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The numbers of a policy after an event."""

    # UID of the policy
    policy: str = ""
    successful: int = 0
    failed: int = 0
    violations: int = 0
    # of all placements together
    milliseconds: int = 0
    # the time of the last event
    at: str = ""
    # the machine waits for a place, and its failure is counted
    waiting: bool = False

    def joined(self, other: "PlacementCounts") -> "PlacementCounts":
        """The higher numbers of both."""
        return msgspec.structs.replace(
            self,
            successful=max(self.successful, other.successful),
            failed=max(self.failed, other.failed),
            violations=max(self.violations, other.violations),
            milliseconds=max(self.milliseconds, other.milliseconds),
            at=max(self.at, other.at),
        )

    def succeeded(self, now: str, milliseconds: int) -> "PlacementCounts":
        """The numbers after a machine found its place."""
        return msgspec.structs.replace(
            self, successful=self.successful + 1, milliseconds=self.milliseconds + milliseconds, at=now, waiting=False
        )

    def refused(self, now: str, violations: int) -> "PlacementCounts":
        """The numbers after a machine found none."""
        return msgspec.structs.replace(self, failed=self.failed + 1, violations=self.violations + violations, at=now, waiting=True)


def of_status(status: VirtrigaudMachineStatus | None, policy: str) -> PlacementCounts:
    """The numbers that a machine took with it, if they are of this policy."""
    text = ((status.provider if status is not None else None) or {}).get(_MEMBER)
    try:
        found = msgspec.json.decode(text, type=PlacementCounts) if text else PlacementCounts()
    except msgspec.MsgspecError:
        found = PlacementCounts()
    return found if found.policy == policy else PlacementCounts(policy)


def recorded(status: VirtrigaudMachineStatus, counts: PlacementCounts) -> VirtrigaudMachineStatus:
    """The status with the numbers."""
    provider = {**(status.provider or {}), _MEMBER: msgspec.json.encode(counts).decode()}
    return msgspec.structs.replace(status, provider=provider)


def of_stats(stats: PlacementStats | None, policy: str) -> PlacementCounts:
    """The numbers that a policy has."""
    found = stats or PlacementStats()
    successful = found.successfulPlacements or 0
    average = duration.parse(found.averagePlacementTime) / duration.SECOND if found.averagePlacementTime else 0.0
    return PlacementCounts(
        policy,
        successful,
        found.failedPlacements or 0,
        found.constraintViolations or 0,
        round(average * 1000) * successful,
        found.lastPlacementTime or "",
    )


def stats(counts: PlacementCounts, distribution: dict[str, int]) -> PlacementStats | None:
    """The numbers as a policy has them; None for a policy that was never used."""
    if not counts.successful and not counts.failed:
        return None
    average = counts.milliseconds // counts.successful if counts.successful else None
    return PlacementStats(
        totalPlacements=counts.successful + counts.failed,
        successfulPlacements=counts.successful,
        failedPlacements=counts.failed,
        averagePlacementTime=f"{average}ms" if average is not None else None,
        constraintViolations=counts.violations,
        lastPlacementTime=counts.at or None,
        placementDistribution=dict(sorted(distribution.items())) or None,
    )
