"""Decides what a run that left tests out is worth: the record proves each of them, or it needs what the machine is known to lack.

`tests/gate.toml` says what is accepted, and whether the rest makes a run red.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from tools.gate.record import Code, Proof, Record

# A test that is skipped says why in one of these ways.
SLOW = "slow: "
_NEEDS = re.compile(r"needs ([\w-]+): ")
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Policy:
    """What is accepted: `absent` names needs, and why the machine that judges has them not. Slow tests may have passed on other code."""

    red: bool = False
    slow_days: int = 0
    absent: Mapping[str, str] = field(default_factory=dict)


def read_policy(path: Path) -> Policy:
    """Return the policy in a file."""
    return Policy(**tomllib.loads(path.read_text(encoding="utf-8")))


@dataclass(slots=True)
class Verdict:
    """The verdict on the tests that a run did not run: what proves them, which needs excuse them, and what is left."""

    is_strict: bool = False
    proven: list[Proof] = field(default_factory=list)
    slow: list[Proof] = field(default_factory=list)
    absent: Counter[str] = field(default_factory=Counter)
    unproven: dict[str, str] = field(default_factory=dict)

    @property
    def red(self) -> bool:
        """Return whether the run fails for what it did not run."""
        return self.is_strict and bool(self.unproven)


def judge(record: Record, skipped: Mapping[str, str], code: Code, policy: Policy, today: str) -> Verdict:
    """Judge a run by the tests that it did not run, each with the reason that it gave."""
    verdict = Verdict(policy.red)
    for node, why in sorted(skipped.items()):
        last = record.proof(node, code)
        if last and last.digest == code.digest_of(node):
            verdict.proven.append(last)
        elif (need := _NEEDS.match(why)) and need[1] in policy.absent:
            verdict.absent[need[1]] += 1
        elif last and why.startswith(SLOW) and _days(last.date, today) <= policy.slow_days:
            verdict.slow.append(last)
        else:
            verdict.unproven[node] = f"{why}; {f'passed on other code at {last.commit}, {last.date}' if last else 'never recorded'}"
    return verdict


def _days(then: str, today: str) -> int:
    return (date.fromisoformat(today) - date.fromisoformat(then)).days


def lines(verdict: Verdict, ran: int, command: str) -> Iterator[str]:
    """Yield what to tell people, with the command that mends it; `.ci/run` adds up the first line of all suites."""
    since = min((each.date for each in (*verdict.proven, *verdict.slow)), default="")
    counts = {
        "ran": ran,
        "proven by the record": len(verdict.proven),
        "slow and proven on other code": len(verdict.slow),
        "absent": verdict.absent.total(),
        "unproven": len(verdict.unproven),
    }
    needs = ", ".join(f"{need} {count}" for need, count in sorted(verdict.absent.items()))
    notes = "; ".join(part for part in (needs and f"absent: {needs}", since and f"the oldest proof is of {since}") if part)
    yield "gate: " + ", ".join(f"{count} {what}" for what, count in counts.items()) + (f" ({notes})" if notes else "")
    if not verdict.unproven:
        return
    red = "RED: nothing proves" if verdict.is_strict else "nothing proves"
    yield f"{red} {len(verdict.unproven)} tests on this code; run `{command}` and commit what it writes"
    for node, why in list(verdict.unproven.items())[:_SHOWN]:
        yield f"  {node} ({why})"
    if len(verdict.unproven) > _SHOWN:
        yield f"  and {len(verdict.unproven) - _SHOWN} more"
