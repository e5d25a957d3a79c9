"""The findings of a driver about its hypervisor, for somebody who sets it up: not a call of the contract, but a help beside it.

A driver that has more to say than `validate`, of rights, templates, storage or versions, has a coroutine `examine` that returns findings.
"""

from typing import Literal, Protocol, runtime_checkable

import msgspec

Grade = Literal["good", "warning", "bad"]


class ProviderFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was checked: its name, how it stands, what was found, and what to do about it."""

    check: str
    grade: Grade = "good"
    text: str = ""
    fix: str = ""


@runtime_checkable
class Examiner(Protocol):
    """A driver that examines its hypervisor."""

    async def examine(self) -> tuple[ProviderFinding, ...]:
        """Return what is there and what is missing. Trouble that hides the rest is a `ProviderError`."""
