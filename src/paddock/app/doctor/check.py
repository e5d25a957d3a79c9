"""The outcome of one check of the host, and the change that would mend it."""

from typing import Literal

import msgspec

from paddock.app.doctor.facts import DoctorFacts

CheckState = Literal["ok", "limited", "broken"]


class HostChange(msgspec.Struct, frozen=True):
    """A change that `paddock doctor --fix` may make: the words of a command, and what it does, as a clause after "would"."""

    argv: tuple[str, ...]
    text: str


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """A judgement of the facts."""

    state: CheckState = "ok"
    # the fact, in a clause without a full stop
    found: str
    # what it means for machines; "" when all is well
    effect: str = ""
    # one way to mend it; "" when all is well
    fix: str = ""
    # what is missing, as a noun for the line that `paddock up` prints; "" where only speed or safety suffers
    missing: str = ""
    change: HostChange | None = None


class HostCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One check with its outcome. The identifier is stable."""

    id: str
    subject: str
    outcome: Judgement

    @property
    def sentence(self) -> str:
        """The outcome on one line."""
        given = self.outcome
        return "; ".join(part for part in (given.found, given.effect, f"to mend it: {given.fix}" if given.fix else "") if part)


def ok(found: str) -> Judgement:
    return Judgement(found=found)


def limited(found: str, effect: str, fix: str, missing: str = "", change: HostChange | None = None) -> Judgement:
    """Machines run, with a limit."""
    return Judgement(state="limited", found=found, effect=effect, fix=fix, missing=missing, change=change)


def broken(found: str, effect: str, fix: str, missing: str = "", change: HostChange | None = None) -> Judgement:
    """Machines do not run, or the server does not."""
    return Judgement(state="broken", found=found, effect=effect, fix=fix, missing=missing, change=change)


def load(facts: DoctorFacts, *names: str) -> HostChange | None:
    """Return the change that loads modules of the kernel; None if it has none of these."""
    there = [name for name in names if name in facts.kernel.loadable]
    return HostChange(("modprobe", "-a", *there), f"load the kernel modules {', '.join(there)}") if there else None
